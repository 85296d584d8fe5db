"""What the predictive distribution says of each row with a known target; metrics average it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfbnn.data.training_inputs import trust_levels
from tfbnn.posterior.averages import log_mean_exp, moments
from tfbnn.posterior.calibration.misfit_features import scale_factors
from tfbnn.posterior.calibration.record import Calibration
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.noise import mean_of_target, noise_spread, sample_noisy
from tfbnn.posterior.prediction import TargetTile, target_tiles
from tfbnn.spec.distributions import LEAST_LEVEL, normal_quantile
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array

# Quantiles that stand for a calibrated distribution in its score.
_NUM_LEVELS = 1000


class RowScores(NamedTuple):
    """Of each row and target [N, K], on the scale the network sees where nothing else is said.

    Attributes:
        mean: Mean of the function in original units.
        expected: Mean of the target there, noise included where it is wanted and the mean exists;
            known noise of rows, in the units of targets, has the mean zero.
        centre, stddev: Mean and standard deviation of the prediction.
        pull: By how many standard deviations the target is above the mean; of a calibrated
            prediction the normal quantile of `pit`.
        pit: Predictive probability of a smaller target.
        crps: Continuous ranked probability score, original units.
        log_density: Of the targets of a row together [N]; NaN without noise, where it is one of
            points. That of the likelihood, which has known noise at the target; all the rest is of
            what is predicted, which has it at the prediction.
    """

    mean: Array
    expected: Array
    centre: Array
    stddev: Array
    pull: Array
    pit: Array
    crps: Array
    log_density: Array

    def assign(self, rows: slice, found: RowScores) -> None:
        """Takes over what was found of some rows."""
        for mine, new in zip(self, found):
            mine[rows] = new


def row_scores(
    ensemble: Ensemble,
    y: Array,
    rows: NetworkRows,
    *,
    include_noise: bool = True,
    calibrated: bool = True,
) -> RowScores:
    """The RowScores of the mixture of all draws.

    Args:
        ensemble: Ensemble of a regression.
        y: Targets [N, K], original units.
        rows: The rows on the scale the network sees.
        include_noise: Whether of a new observation, or of the function alone.
        calibrated: Whether under the ensemble's calibration, if it has one; with noise alone.
    """
    fitted, ensemble = ensemble, ensemble.weighted.mirrored
    calibration = ensemble.calibration if include_noise and calibrated else None
    numbers = [np.empty(rows.y.shape) for _ in RowScores._fields[:-1]]
    found = RowScores._make([*numbers, np.empty(len(y))])
    for tile in target_tiles(ensemble, rows):
        place, target = tile.place, rows.y[tile.place]
        of_tile = _plain(ensemble, y[place], target, tile, include_noise, rows.noise is not None)
        if calibration is not None:
            trust = trust_levels(ensemble.training_inputs, rows.x[place])
            factors = scale_factors(fitted, rows.x[place])
            of_tile = calibrated_scores(
                ensemble, calibration, of_tile, y[place], target, trust, factors
            )
        found.assign(place, of_tile)
    return found


def log_jacobian(ensemble: Ensemble, y: Array) -> Array:
    """What a log density of transformed targets gains in original units: y [N, K] -> [N]."""
    gain: Array = np.log(np.abs(ensemble.y_pipeline.derivative(y))).sum(axis=1)
    return gain


def _plain(
    ensemble: Ensemble,
    y: Array,
    target: Array,
    tile: TargetTile,
    include_noise: bool,
    has_row_noise: bool,
) -> RowScores:
    location = tile.location
    weights, inverse = ensemble.draw_weights, ensemble.y_pipeline.inverse
    centre, stddev = moments(location, weights)
    log_density = np.full(len(y), np.nan)
    mean = expected = np.einsum("s,snk->nk", weights, inverse(location))
    if not include_noise:
        points, point_weights = location, weights
    else:
        stddev = np.hypot(stddev, noise_spread(tile.predicted, weights))
        densities = ensemble.spec.likelihood.log_density(target, location, tile.fitted)
        log_density = log_mean_exp(densities, weights)
        points, point_weights = sample_noisy(ensemble, location, tile.predicted)
        if not has_row_noise and ensemble.has_mean_of_target and not ensemble.y_pipeline.is_affine:
            expected = mean_of_target(ensemble, location, tile.predicted)
    return RowScores(
        mean=mean,
        expected=expected,
        centre=centre,
        stddev=stddev,
        pull=(target - centre) / stddev,
        pit=np.einsum("m,mnk->nk", point_weights, points < target),
        crps=crps(inverse(points), point_weights, y),
        log_density=log_density,
    )


def calibrated_scores(
    ensemble: Ensemble,
    calibration: Calibration,
    plain: RowScores,
    y: Array,
    target: Array,
    trust: Array,
    factors: Array,
) -> RowScores:
    """The RowScores under a calibration, but for rows outside the training inputs that keep theirs.

    Args:
        ensemble: Ensemble, for the transform of its targets.
        calibration: Calibration.
        plain: RowScores without it.
        y: Targets [N, K], original units.
        target: The same, transformed.
        trust: Trust levels [N].
        factors: `scale_factors` of the rows [N, K].
    """
    spread = plain.stddev * factors
    groups = calibration.groups_of(spread, trust)
    left = calibration.is_left(groups, trust, factors)
    score = (target - plain.centre) / spread
    pit = calibration.probability(score, groups)
    levels = (np.arange(_NUM_LEVELS) + 0.5) / _NUM_LEVELS
    low, high = calibration.central(1, groups)
    points = plain.centre + spread * calibration.quantiles(levels, groups)
    equal = np.full(_NUM_LEVELS, 1.0 / _NUM_LEVELS)
    # Targets of one row are taken for independent, given their predictions.
    densities = calibration.log_density(score, groups) - np.log(spread)
    chosen = {
        "stddev": 0.5 * (high - low) * spread,
        "pull": normal_quantile(np.clip(pit, LEAST_LEVEL, 1.0 - LEAST_LEVEL)),
        "pit": pit,
        "crps": crps(ensemble.y_pipeline.inverse(points), equal, y),
    }
    chosen = {name: np.where(left, getattr(plain, name), new) for name, new in chosen.items()}
    log_density = np.where(left.any(axis=1), plain.log_density, densities.sum(axis=1))
    return plain._replace(log_density=log_density, **chosen)


def crps(points: Array, weights: Array, y: Array) -> Array:
    """Continuous ranked probability score of weighted points [M, n, K] against y [n, K].

    E|X - y| - E|X - X'| / 2 (Gneiting and Raftery 2007, JASA 102, 359, equation 21), the second
    term from sorted points.
    """
    distance = np.einsum("m,mnk->nk", weights, np.abs(points - y))
    order = np.argsort(points, axis=0)
    ordered, spread = np.take_along_axis(points, order, axis=0), weights[order]
    below = np.cumsum(spread, axis=0)
    with np.errstate(invalid="ignore"):  # infinite points have no finite score
        score: Array = distance - np.sum(spread * ordered * (2.0 * below - spread - 1.0), axis=0)
    return score
