"""Scores of a predictive distribution against known targets."""

from typing import Any

import numpy as np

from tfbnn.diagnostics.statistics import bulk_ess
from tfbnn.posterior.averages import log_mean_exp, moments, root_mean_square
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import function_draws, noise_tiles
from tfbnn.posterior.row_scores import RowScores, log_jacobian, row_scores
from tfbnn.spec.rows import NetworkRows, evenly_spaced
from tfbnn.system.arrays import Array

_COVERAGE_LEVELS = (1, 2, 3, 4, 5)
_CENTRAL_INTERVALS = (0.5, 0.683, 0.9, 0.954)
_MAX_ESS_ROWS = 200


def evaluate(
    ensemble: Ensemble,
    y: Array,
    transformed: NetworkRows,
    *,
    include_noise: bool = True,
    calibrated: bool = True,
) -> dict[str, Any]:
    """Scores the mixture of all draws on rows.

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
        "pull_width": np.std(pull, axis=0),
        "n_effective": effective_draws(ensemble.weighted, transformed.x),
        "num_rows": len(y),
    }
    if "log10" in ensemble.y_pipeline.names:
        predicted = np.log10(ensemble.y_pipeline.inverse(rows.centre))
        scores |= _errors("_log10", np.log10(y), predicted)
    return {name: simplify(value) for name, value in scores.items()}


def _log_densities(ensemble: Ensemble, y: Array, target: Array, rows: RowScores) -> dict[str, Any]:
    off = (target - rows.centre) / rows.stddev
    normal = -0.5 * off**2 - np.log(rows.stddev) - 0.5 * np.log(2 * np.pi)
    return {
        "log_predictive_density": np.mean(rows.log_density + log_jacobian(ensemble, y)),
        "log_predictive_density_transformed": np.mean(rows.log_density),
        "log_predictive_density_moment_matched": np.mean(normal.sum(axis=1)),
    }


def effective_draws(ensemble: Ensemble, x: Array) -> float:
    """Median bulk effective sample size of the predictions at up to 200 of transformed inputs x.

    NaN where there are no chains, of a compressed ensemble say.
    """
    if ensemble.no_chains is not None:
        return np.nan
    draws = function_draws(ensemble, x[evenly_spaced(len(x), _MAX_ESS_ROWS)])
    draws = draws.reshape(ensemble.num_chains, ensemble.num_results, -1)
    sizes = bulk_ess(draws)
    return np.median(sizes[np.isfinite(sizes)]) if np.isfinite(sizes).any() else np.nan


def _errors(scale: str, y: Array, predicted: Array) -> dict[str, Array]:
    """RMSE and R2 on one scale; R2 is NaN where the targets are constant."""
    equal = np.full(len(y), 1.0 / len(y))
    _, spread = moments(y - y[0], equal)  # which is exactly zero where all are the same
    rmse = root_mean_square(y - predicted, equal)
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(spread > 0, 1.0 - (rmse / spread) ** 2, np.nan)
    return {f"rmse{scale}": rmse, f"r2{scale}": r2}


def _relative_errors(y: Array, predicted: Array) -> dict[str, Array]:
    """|predicted / y - 1|: mean, median and 90 % quantile; nothing unless all targets are positive."""
    if not (y > 0).all():
        return {}
    errors = np.abs(predicted / y - 1.0)
    return {
        "relative_error_mean": np.mean(errors, axis=0),
        "relative_error_median": np.median(errors, axis=0),
        "relative_error_q90": np.quantile(errors, 0.9, axis=0),
    }


def simplify(value: Any) -> Any:
    """Arrays with one entry become floats, so that results of one target read and print plainly."""
    if isinstance(value, dict):
        return {key: simplify(entry) for key, entry in value.items()}
    if np.size(value) == 1:
        entry = np.asarray(value).reshape(())
        return int(entry) if entry.dtype.kind == "i" else float(entry)
    return value


_NUM_BINS = 15


def evaluate_classes(ensemble: Ensemble, rows: NetworkRows) -> dict[str, Any]:
    """Scores the class probabilities averaged over all draws on rows.

    Args:
        ensemble: Ensemble of a class likelihood.
        rows: NetworkRows, their y the class numbers [N, K].

    Returns:
        Dict; see `BayesianMLP.evaluate` for the keys. Bernoulli targets count as two classes.
    """
    ensemble = ensemble.weighted
    probabilities, log_density = _class_row_scores(ensemble, rows.x, rows.y)
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
    """Mean absolute gap of confidence and accuracy over 15 bins of equal width, by their rows.

    Args:
        confidence: Probability of the predicted class [N, K].
        correct: Whether the predicted class is the true one [N, K].

    Returns:
        Array [K].
    """
    # Bins are open below and closed above, as in Guo et al. 2017.
    bins = np.clip(np.ceil(confidence * _NUM_BINS).astype(int) - 1, 0, _NUM_BINS - 1)
    gaps = [
        np.abs(np.bincount(place, weights=gap)).sum()
        for place, gap in zip(bins.T, (correct - confidence).T)
    ]
    return np.array(gaps) / len(confidence)


def _class_row_scores(ensemble: Ensemble, x: Array, y: Array) -> tuple[Array, Array]:
    """(probabilities [N, K, classes] averaged over draws, log density of each row [N])."""
    likelihood, weights = ensemble.spec.class_likelihood, ensemble.draw_weights
    shape = (*y.shape, ensemble.spec.num_classes)
    probabilities, log_density = np.empty(shape), np.empty(len(y))
    for rows, logits, _ in noise_tiles(ensemble, x):
        mean = np.einsum("s,snk->nk", weights, likelihood.inverse_link(logits))
        probabilities[rows] = likelihood.class_probabilities(mean)
        values = likelihood.log_density(y[rows], logits)
        log_density[rows] = log_mean_exp(values, weights)
    return probabilities, log_density
