"""Constants of a calibration for a graph, as columns, since rows are innermost there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tfbnn.data.training_inputs import TrainingInputs
from tfbnn.posterior.averages import root_mean_square
from tfbnn.posterior.calibration.calibration import central_levels
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.likelihoods import LocationScale
from tfbnn.system.arrays import Array
from tfbnn.system.words import warn


@dataclass(frozen=True, eq=False)
class BarConstants:
    """Constants of calibrated error bars; for groups the value of the first and the increments.

    Attributes:
        names: Names of the outputs of a graph, besides mean and spread of the function.
        plain: Scores of the ends and the middle of uncalibrated error bars, of a normal
            distribution [3, 1, 1].
        noise: Standard deviation of the noise [K, 1].
        scores: Ends and middle of the central 68.27 % of each group's scores [B, 3, K, 1].
        narrower: 1 if calibrated error bars are narrower than those of the posterior, else 0
            [B, K, 1].
        edges: Standard deviations from which on a further group begins [B - 1, K, 1].
        is_by_trust: Whether the second group is that at the edge of the training inputs.
        inputs: TrainingInputs, not in columns.
    """

    names: ClassVar[tuple[str, str, str]] = ("lower", "median", "upper")
    plain: ClassVar[Array] = np.array([-1.0, 0.0, 1.0]).reshape(3, 1, 1)

    noise: Array
    scores: Array
    narrower: Array
    edges: Array
    is_by_trust: bool
    inputs: TrainingInputs


def bar_constants(ensemble: Ensemble) -> BarConstants | None:
    """Return the BarConstants of a calibrated ensemble; None without a calibration.

    Warns:
        UserWarning: If a graph has no calibrated error bars, as the noise differs from row to row,
            or as they are scaled by the misfit.
    """
    calibration = ensemble.calibration
    if calibration is None:
        return None
    likelihood = ensemble.spec.likelihood
    if ensemble.row_noise or not isinstance(likelihood, LocationScale):
        _warn("the noise differs from row to row")
        return None
    if calibration.misfit is not None:
        _warn("they are scaled by the misfit, which takes derivatives of networks")
        return None
    outputs = np.zeros((ensemble.num_draws, 1, ensemble.spec.num_outputs))
    scale = np.broadcast_to(
        likelihood.scale(outputs, ensemble.log_noise_scale, None), outputs.shape
    )
    low, high = central_levels(1)
    levels = np.array([low, 0.5, high])
    scores = np.swapaxes(calibration.table(lambda one: one.quantile(levels)), 1, 2)[..., None]
    return BarConstants(
        noise=root_mean_square(scale, ensemble.draw_weights)[0][:, None],
        scores=np.diff(scores, axis=0, prepend=0.0),
        narrower=np.diff((calibration.bars[..., :1] < 1.0).astype(float), axis=0, prepend=0.0),
        edges=calibration.edges[..., None],
        is_by_trust=calibration.by == "trust",
        inputs=_with_rounding(ensemble),
    )


def _with_rounding(ensemble: Ensemble) -> TrainingInputs:
    """Return the training inputs; those that were constant may be rounded to float32."""
    inputs, rounding = ensemble.training_inputs, ensemble.rounding
    return replace(inputs, low=inputs.low - rounding, high=inputs.high + rounding)


def _warn(reason: str) -> None:
    warn(f"The calibrated bars are not exported, as {reason}. Use predict for them.")
