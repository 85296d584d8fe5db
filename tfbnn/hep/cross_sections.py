"""Cross sections of many points and processes at once, and where they come from."""

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from tfbnn.exceptions import DataWarning
from tfbnn.hep.process import FB, Pids, Process
from tfbnn.hep.slha import place_text
from tfbnn.system.arrays import Array
from tfbnn.system.warn import warn

# The central value, and the two that errors reach to.
_QUANTILES = [0.16, 0.5, 0.84]


class Predicted(NamedTuple):
    """What the network of one process says of N points, each [N]; in fb but for the trust level."""

    central: Array
    down: Array
    up: Array
    trust: Array


def predicted(process: Process, x: Array) -> Predicted:
    """Predicts a process at inputs [N, D], in the order of the columns of the fit."""
    _warn_of_signed_masses(process, x)
    prediction = process.model.predict(
        x, include_noise=process.include_noise, quantiles=_QUANTILES, return_trust=True
    )
    quantiles = cast(Array, prediction.columns.quantiles)
    low, central, high = quantiles[:, :, 0] * FB[process.unit]
    return Predicted(central, central - low, high - central, cast(Array, prediction.trust))


def _warn_of_signed_masses(process: Process, x: Array) -> None:
    """Warns of masses below zero where the fit had none: tables often have absolute values."""
    negative = np.any(x < 0, axis=0)
    if not negative.any():
        return
    ensemble = process.model.posterior
    low = ensemble.x_pipeline.inverse(ensemble.training_inputs.low[None])[0]
    for (name, place), signed in zip(process.inputs.items(), negative & (low >= 0)):
        if signed and place[0] == "MASS":
            warn(
                f"{name} ({place_text(place)}) is negative, which it never was in the fit: spectra "
                f"give Majorana particles signed masses. Pass abs({name}) where the table of the fit "
                "has absolute values.",
                DataWarning,
            )


@dataclass(frozen=True, eq=False)
class CrossSections:
    """Cross sections of N points and P processes: arrays [N, P], in fb where nothing else is said.

    Attributes:
        pids: The processes, P sorted pairs of PDG codes.
        central: Medians of the predictive distributions.
        err_down, err_up: Distances from there to the 16 % and 84 % quantiles, >= 0: the network's
            errors.
        other_down, other_up: Errors of other origin, those of the folder and of the call added in
            quadrature; 0 where there are none.
        trust: 1 inside the training data, 0 at their edge, -1 outside (`tfbnn.trust`).
    """

    pids: tuple[Pids, ...]
    central: Array
    err_down: Array
    err_up: Array
    other_down: Array
    other_up: Array
    trust: Array

    @property
    def total_down(self) -> Array:
        """The network's errors and the others downwards, added in quadrature."""
        return np.hypot(self.err_down, self.other_down)

    @property
    def total_up(self) -> Array:
        """The network's errors and the others upwards, added in quadrature."""
        return np.hypot(self.err_up, self.other_up)

    def __len__(self) -> int:
        return len(self.central)
