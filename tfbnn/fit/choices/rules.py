"""The rules of what is "auto", one table: pure functions that return (setting, why).

They see sizes, the targets and what a pilot found, never a clock: the same rows have the same
choices on every machine.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.kernels.hmc import HMC
from tfbnn.engine.kernels.nuts import NUTS
from tfbnn.fit.choices.pilot import Pilot
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array

# Targets that span more than this factor are modelled on a log scale.
_WIDE = 100.0
# Up to so many parameters trees are short, and a fixed length would be too long or too short.
_FEW_PARAMETERS = 30
# Up to this N P a long trajectory is affordable.
_LONG_WORK, _LONG, _SHORT = 5e6, 64, 32
# Of warm-up: transitions of a chain, and N P times gradients that it may take at most.
_WARMUP, _LEAST_WARMUP, _WARMUP_WORK = 1000, 100, 1.6e11
# Of ADAM: steps of a chain, and rows in each.
_STEPS, _SMALLEST_BATCH, _LARGEST_BATCH, _BATCHES = 12_000, 32, 512, 64

# Residuals of held-out rows up to which starts are polished: where there is more noise, a polished
# network follows the noise of its rows, and its own noise collapses.
_NEARLY_NO_NOISE = 0.03


class Sizes(NamedTuple):
    """What rules know of a fit besides a pilot.

    Attributes:
        num_rows: N.
        num_inputs: D.
        num_targets: K.
        num_parameters: P.
        has_classes: Whether targets are class labels.
    """

    num_rows: int
    num_inputs: int
    num_targets: int
    num_parameters: int
    has_classes: bool = False

    @property
    def work(self) -> float:
        """N P, about what a gradient costs."""
        return float(self.num_rows) * self.num_parameters


def y_transform(targets: Array) -> tuple[tuple[str, ...], str]:
    """Transform of targets [N, K] that are numbers, by all rows that there are."""
    low, high = targets.min(axis=0), targets.max(axis=0)
    if np.any(low <= 0):
        return ("standardize",), "not all targets are positive"
    with np.errstate(over="ignore"):
        span = float(np.min(high / low))
    told = f"all targets are positive and span a factor of {span:.3g}"
    if span > _WIDE:
        return ("log10", "standardize"), f"{told}, more than {_WIDE:g}"
    return ("standardize",), f"{told}, at most {_WIDE:g}"


def kernel(sizes: Sizes, pilot: Pilot | None) -> tuple[Any, str]:
    """Settings of the kernel."""
    del pilot  # step sizes adapt to the noise
    if sizes.num_parameters <= _FEW_PARAMETERS:
        return NUTS(), f"P = {sizes.num_parameters}, where trees are short"
    if sizes.work <= _LONG_WORK:
        return HMC(
            num_leapfrog_steps=_LONG
        ), f"{_LONG} leapfrog steps, as N P = {sizes.work:.2g} affords"
    why = f"{_SHORT} leapfrog steps, as N P = {sizes.work:.2g} is above {_LONG_WORK:.2g}"
    return HMC(num_leapfrog_steps=_SHORT), why


def num_burnin_steps(sizes: Sizes, pilot: Pilot | None, gradients: int) -> tuple[int, str]:
    """Transitions of warm-up, for a kernel that takes so many gradients per transition."""
    del pilot
    affordable = _WARMUP_WORK / (sizes.work * gradients)
    told = f"N P = {sizes.work:.2g} with {gradients} gradients each"
    if affordable >= _WARMUP:
        return _WARMUP, f"{told} affords them"
    # In steps of 50, so that neighbouring tables share compiled programs.
    return max(_LEAST_WARMUP, 50 * int(affordable / 50)), f"{told} affords no more"


def pretraining(sizes: Sizes, pilot: Pilot | None) -> tuple[Pretraining, str]:
    """Settings of the search for starts."""
    batch_size = _SMALLEST_BATCH
    while batch_size < min(_LARGEST_BATCH, sizes.num_rows / _BATCHES):
        batch_size *= 2
    batches = ceil(sizes.num_rows / batch_size)
    epochs = ceil(_STEPS / batches)
    settings = Pretraining(epochs=epochs, batch_size=batch_size)
    why = f"{epochs * batches} steps of {min(batch_size, sizes.num_rows)} rows out of N = {sizes.num_rows}"
    if pilot is None:
        return settings, why
    noise = float(np.max(pilot.noise))
    told = f"held-out rows of the pilot are off by {noise:.2g} standard deviations"
    if noise <= _NEARLY_NO_NOISE:
        return settings, f"{why}; then Levenberg-Marquardt, as {told} only"
    return replace(settings, newton_iterations=0), f"{why}; no Levenberg-Marquardt, as {told}"
