"""Scores of a predictive distribution against known targets, for each row and on average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfbnn.diagnostics.ranks import rank_correlation
from tfbnn.diagnostics.statistics import bulk_ess
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.posterior.averages import log_mean_exp, moments, root_mean_square
from tfbnn.posterior.calibration.calibration import Calibrated, central_levels
from tfbnn.posterior.calibration.misfit_features import calibrated_at
from tfbnn.posterior.distribution import RowsDistribution
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.function_moments import moment_networks, moments_of_target
from tfbnn.posterior.mixture import Mixture
from tfbnn.posterior.prediction import TargetTile, function_of_chains, target_tiles
from tfbnn.spec.distributions import LEAST_LEVEL, normal_quantile
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.rows import NetworkRows, evenly_spaced
from tfbnn.system.arrays import Array

_COVERAGE_LEVELS = (1, 2, 3, 4, 5)
_CENTRAL_INTERVALS = (0.5, 0.683, 0.9, 0.954)
_MAX_ESS_ROWS = 200
# Probability and ends of the interval that is scored; thirds of the rows by their error bars.
_INTERVAL = 0.9
_ENDS = (0.5 - 0.5 * _INTERVAL, 0.5 + 0.5 * _INTERVAL)
_THIRDS = ("smallest", "middle", "largest")


def evaluate(
    ensemble: Ensemble,
    y: Array,
    transformed: NetworkRows,
    *,
    include_noise: bool = True,
    calibrated: bool = True,
) -> dict[str, Any]:
    """Score the mixture of all draws on rows.

    Args:
        ensemble: Ensemble.
        y: Targets [N, K], original units.
        transformed: NetworkRows.
        include_noise, calibrated: As in `row_scores`.

    Returns:
        Dict. Scores per target are floats for one target and arrays [K] for several; log
        predictive densities are means per row of the joint density of all targets. See
        `BayesianMLP.evaluate` for the keys.
    """
    rows = row_scores(ensemble, y, transformed, include_noise=include_noise, calibrated=calibrated)
    target, pull = transformed.y, rows.pull
    with np.errstate(invalid="ignore"):
        pull_width = np.std(pull, axis=0)
    scores = {
        **_errors("", y, rows.expected),
        **_relative_errors(y, rows.mean),
        **_errors("_transformed", target, rows.centre),
        **(_log_densities(ensemble, y, target, rows) if include_noise else {}),
        "crps": np.mean(rows.crps, axis=0),
        "coverage": {k: np.mean(np.abs(pull) < k, axis=0) for k in _COVERAGE_LEVELS},
        "central_coverage": {
            p: np.mean(np.abs(rows.pit - 0.5) < 0.5 * p, axis=0) for p in _CENTRAL_INTERVALS
        },
        "interval_score": _interval_score(ensemble, y, rows),
        "rank_correlation": rank_correlation(rows.stddev.T, rows.error.T),
        "coverage_by_thirds": _coverage_by_thirds(rows),
        "pull_width": pull_width,
        "n_effective": effective_draws(ensemble.weighted, transformed.x),
        "num_rows": len(y),
    }
    if "log10" in ensemble.y_pipeline.names:
        predicted = np.log10(ensemble.y_pipeline.inverse(rows.centre))
        scores |= _errors("_log10", np.log10(y), predicted)
    return {name: simplify(value) for name, value in scores.items()}


def _interval_score(ensemble: Ensemble, y: Array, rows: RowScores) -> Array:
    """Compute the mean score [K] of the central 90 % interval.

    Gneiting and Raftery 2007, JASA 102, 359, equation 43.
    """
    low, high = ensemble.y_pipeline.inverse(np.stack([rows.low, rows.high]))
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return np.mean(high - low + 2.0 / (1.0 - _INTERVAL) * missed, axis=0)


def _coverage_by_thirds(rows: RowScores) -> dict[str, dict[int, Array]]:
    """Compute the shares [K] within 1 and 2 standard deviations, by thirds of the standard deviation."""
    order = np.argsort(rows.stddev, axis=0, kind="stable")
    pulls = np.array_split(np.take_along_axis(np.abs(rows.pull), order, axis=0), len(_THIRDS))
    return {
        name: {k: np.mean(part < k, axis=0) for k in _COVERAGE_LEVELS[:2]}
        for name, part in zip(_THIRDS, pulls)
        if len(part)
    }


def _log_densities(ensemble: Ensemble, y: Array, target: Array, rows: RowScores) -> dict[str, Any]:
    off = (target - rows.centre) / rows.stddev
    normal = -0.5 * off**2 - np.log(rows.stddev) - 0.5 * np.log(2 * np.pi)
    return {
        "log_predictive_density": np.mean(rows.log_density + log_jacobian(ensemble, y)),
        "log_predictive_density_transformed": np.mean(rows.log_density),
        "log_predictive_density_moment_matched": np.mean(normal.sum(axis=1)),
    }


def effective_draws(ensemble: Ensemble, x: Array) -> float:
    """Compute the median bulk ESS of the predictions at up to 200 of the transformed inputs x.

    For infinite width, where every draw takes a factorisation, it is that at the reference inputs. It is NaN
    without chains, as for a compressed ensemble.
    """
    if ensemble.no_chains is not None:
        return np.nan
    is_infinite = isinstance(ensemble.spec, InfiniteSpec)
    seen = None if is_infinite else x[evenly_spaced(len(x), _MAX_ESS_ROWS)]
    sizes = bulk_ess(function_of_chains(ensemble, seen))
    return np.median(sizes[np.isfinite(sizes)]) if np.isfinite(sizes).any() else np.nan


def _errors(scale: str, y: Array, predicted: Array) -> dict[str, Array]:
    """Compute RMSE and R2 on one scale; R2 is NaN if the targets are constant."""
    equal = np.full(len(y), 1.0 / len(y))
    _, spread = moments(y - y[0], equal)  # exactly zero if all are the same
    rmse = root_mean_square(y - predicted, equal)
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(spread > 0, 1.0 - (rmse / spread) ** 2, np.nan)
    return {f"rmse{scale}": rmse, f"r2{scale}": r2}


def _relative_errors(y: Array, predicted: Array) -> dict[str, Array]:
    """Compute mean, median and 90 % quantile of |predicted / y - 1|; empty unless all targets are > 0."""
    if not (y > 0).all():
        return {}
    errors = np.abs(predicted / y - 1.0)
    return {
        "relative_error_mean": np.mean(errors, axis=0),
        "relative_error_median": np.median(errors, axis=0),
        "relative_error_q90": np.quantile(errors, 0.9, axis=0),
    }


def simplify(value: Any) -> Any:
    """Convert arrays with one entry to floats, so that results of one target print plainly."""
    if isinstance(value, dict):
        return {key: simplify(entry) for key, entry in value.items()}
    if np.size(value) == 1:
        entry = np.asarray(value).reshape(())
        return int(entry) if entry.dtype.kind == "i" else float(entry)
    return value


_NUM_BINS = 15


def evaluate_classes(ensemble: Ensemble, rows: NetworkRows) -> dict[str, Any]:
    """Score the class probabilities averaged over all draws on rows.

    Args:
        ensemble: Ensemble of a class likelihood.
        rows: NetworkRows, whose y are class numbers [N, K].

    Returns:
        Dict; see `BayesianMLP.evaluate` for the keys. Bernoulli targets count as two classes.
    """
    ensemble = ensemble.weighted
    likelihood, weights = ensemble.spec.class_likelihood, ensemble.draw_weights
    probabilities = np.empty((*rows.y.shape, ensemble.spec.num_classes))
    log_density = np.empty(len(rows.y))
    for span, logits, *_ in target_tiles(ensemble, rows):
        mean = np.einsum("s,snk->nk", weights, likelihood.inverse_link(logits))
        probabilities[span] = likelihood.class_probabilities(mean)
        values = likelihood.log_density(rows.y[span], logits)
        log_density[span] = log_mean_exp(values, weights)
    truth = rows.y.astype(int)
    best = probabilities.argmax(axis=-1)
    one_hot = np.arange(probabilities.shape[-1]) == truth[..., None]
    scores = {
        "accuracy": np.mean(best == truth, axis=0),
        "brier": np.mean(np.square(probabilities - one_hot).sum(axis=-1), axis=0),
        "ece": expected_calibration_error(probabilities.max(axis=-1), best == truth),
        "log_predictive_density": np.mean(log_density),
        "n_effective": effective_draws(ensemble, rows.x),
        "num_rows": len(rows.x),
    }
    return {name: simplify(value) for name, value in scores.items()}


def expected_calibration_error(confidence: Array, correct: Array) -> Array:
    """Compute the mean absolute gap of confidence and accuracy over 15 bins of equal width.

    Bins are weighted by their number of rows.

    Args:
        confidence: Probability of the predicted class [N, K].
        correct: Whether the predicted class is the true one [N, K].

    Returns:
        Array [K].
    """
    # Bins are open below and closed above, as in Guo et al. 2017.
    bins = np.clip(np.ceil(confidence * _NUM_BINS).astype(int) - 1, 0, _NUM_BINS - 1)
    gaps = [
        np.abs(np.bincount(indices, weights=gap)).sum()
        for indices, gap in zip(bins.T, (correct - confidence).T)
    ]
    return np.array(gaps) / len(confidence)


class RowScores(NamedTuple):
    """Scores of each row and target [N, K], on the scale the network sees unless noted otherwise.

    Attributes:
        mean: Mean of the function in original units.
        expected: Mean of the target in original units, noise included if requested and if that mean
            exists. Known noise of rows, in the units of targets, has the mean zero.
        centre, stddev: Mean and standard deviation of the prediction.
        error: Distance of the target from that mean.
        pull: Number of standard deviations by which the target is above the mean; for a calibrated
            prediction the normal quantile of `pit`.
        pit: Predictive probability of a smaller target. For counts a random share of the
            probability of the target itself is added, by a fixed seed (Czado, Gneiting and Held
            2009, Biometrics 65, 1254).
        low, high: Ends of the central 90 % interval.
        crps: Continuous ranked probability score, original units.
        log_density: Log density of the targets of a row together [N]; NaN without noise, as the
            distribution then consists of points. It is that of the likelihood, with known noise at
            the target. All other scores are those of the prediction, with known noise at the
            prediction.
    """

    mean: Array
    expected: Array
    centre: Array
    stddev: Array
    error: Array
    pull: Array
    pit: Array
    low: Array
    high: Array
    crps: Array
    log_density: Array

    def judged(self, source: str, is_calibrated: bool, names: Sequence[str]) -> Predictions:
        """Judge the error bars by these rows; see `Predictions.judge`."""
        bars = self.pit, self.pull, self.stddev, self.error
        return Predictions.judge(*bars, source, is_calibrated, names)


def row_scores(
    ensemble: Ensemble,
    y: Array,
    rows: NetworkRows,
    *,
    include_noise: bool = True,
    calibrated: bool = True,
    pulls_alone: bool = False,
) -> RowScores:
    """Compute the RowScores of the mixture of all draws.

    Args:
        ensemble: Ensemble of a regression.
        y: Targets [N, K], original units.
        rows: The rows on the scale the network sees.
        include_noise: Whether to score a new observation, or the function alone.
        calibrated: Whether to use the ensemble's calibration, if it has one; with noise only.
        pulls_alone: Whether to leave out interval, CRPS and log density, which take most of the
            time; they are then NaN.
    """
    fitted, ensemble = ensemble, ensemble.for_averages
    is_calibrated = include_noise and calibrated and ensemble.calibration is not None
    numbers = [np.full(rows.y.shape, np.nan) for _ in RowScores._fields[:-1]]
    found = RowScores._make([*numbers, np.full(len(y), np.nan)])
    chances = np.random.default_rng(0).random(rows.y.shape)
    scored = moment_networks(fitted, "transformed")
    for tile in target_tiles(ensemble, rows):
        span, one = tile.span, None
        scale = tile.predicted if include_noise else tile.spread
        mixture = Mixture.of(ensemble, tile.location, scale)
        known = scored.moments(rows.x[span]) if scored.in_closed_form else None
        centre, stddev = mixture.moments(known)
        if is_calibrated:
            one = calibrated_at(fitted, rows.x[span], centre, stddev)
        of_tile = RowsDistribution.of(mixture.at, one, len(centre))
        error, pit = rows.y[span] - centre, of_tile.cdf(rows.y[span])
        if ensemble.spec.has_counts and include_noise:
            below = of_tile.cdf(rows.y[span] - 1.0)
            pit = below + chances[span] * (pit - below)
        with np.errstate(divide="ignore", invalid="ignore"):  # one network without noise
            pull = error / stddev
        if one is not None:
            inner_low, inner_high = one.quantiles(central_levels(1))
            level = np.clip(pit, LEAST_LEVEL, 1.0 - LEAST_LEVEL)
            pull = np.where(one.is_left, pull, normal_quantile(level))
            stddev = np.where(one.is_left, stddev, 0.5 * (inner_high - inner_low))
        if not pulls_alone:
            found.low[span], found.high[span] = of_tile.quantiles(_ENDS)
            found.crps[span] = of_tile.crps(y[span], ensemble.y_pipeline.inverse)
            found.log_density[span] = _joint_log_density(mixture, tile, rows.y[span], one)
        means = _means(ensemble, mixture, tile, rows.noise is None and include_noise)
        found.mean[span], found.expected[span] = means
        found.centre[span], found.stddev[span] = centre, stddev
        found.error[span], found.pull[span], found.pit[span] = np.abs(error), pull, pit
    return found


def _means(
    ensemble: Ensemble, mixture: Mixture, tile: TargetTile, with_noise: bool
) -> tuple[Array, Array]:
    """Compute the means of the function and of the target [n, K], original units; see `RowScores`."""
    inverse = ensemble.y_pipeline.inverse
    mean = np.einsum("s,snk->nk", mixture.weights, inverse(mixture.location))
    if tile.spread is not None:
        mean, _ = moments_of_target(ensemble, mixture._replace(scale=tile.spread))
    if with_noise and ensemble.has_mean_of_target and not ensemble.y_pipeline.is_affine:
        return mean, moments_of_target(ensemble, mixture)[0]
    return mean, mean


def _joint_log_density(
    mixture: Mixture, tile: TargetTile, target: Array, one: Calibrated | None
) -> Array:
    """Compute the log density of the targets of each row together [n], with known noise at the target.

    It is NaN without noise.
    """
    if mixture.scale is None:
        return np.full(len(target), np.nan)
    densities = mixture.likelihood.log_density(target, tile.location, tile.fitted)
    plain = log_mean_exp(densities, mixture.weights)
    if one is None:
        return plain
    # Targets of one row are taken to be independent, given their predictions.
    return np.where(one.is_left.any(axis=1), plain, one.log_density(target).sum(axis=1))


def log_jacobian(ensemble: Ensemble, y: Array) -> Array:
    """Return the log Jacobian that a log density gains in original units: y [N, K] -> [N]."""
    return np.log(np.abs(ensemble.y_pipeline.derivative(y))).sum(axis=1)
