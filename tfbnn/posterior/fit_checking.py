"""Diagnosis of an ensemble: its chains, its agreement with the rows of the fit, and its prior."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tfbnn.data.coding import TEXTS
from tfbnn.diagnostics.convergence import diagnose
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.fit_check import (
    LEVELS,
    ROUNDING,
    ClassesCheck,
    FitCheck,
    InputCheck,
    NumbersCheck,
    PriorCheck,
    RowsCheck,
    TargetCheck,
    rows_check_from_json,
)
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.posterior.basins.bridge import group_chains
from tfbnn.posterior.calibration.left_out import (
    FEWEST_JUDGED,
    LEFT_OUT,
    MOST_LEFT_OUT_TOGETHER,
    Tangents,
    left_out_tiles,
    require_moving_chains,
)
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.metrics import evaluate_classes, row_scores
from tfbnn.posterior.prediction import function_of_chains, functions_together, target_tiles
from tfbnn.posterior.stacking import weighting_note
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.network_spec import draw_parameters
from tfbnn.spec.priors import WeightPrior
from tfbnn.spec.rows import NetworkRows, Rows, evenly_spaced_groups
from tfbnn.system.arrays import Array

_MAX_ROWS = 1000
_MAX_HELD_OUT = 1000
# Levels at which the distribution of the noise is tabulated; between them it is interpolated.
_NUM_LEVELS = 2000
_OF_CLASSES = Predictions(why="this check is not for classes; evaluate held-out rows")
_MAX_DRAWS, _MIN_DRAWS = 400, 50
# Most draws x rows x parameters, a few seconds: for wide networks fewer draws are taken.
_MAX_WORK = 1e10
# Most targets that are kept: those with the lowest R2 and with the worst coverage.
_MAX_TARGETS = 20
# Networks drawn from the prior, and the most numbers that they may take together.
_PRIOR_DRAWS, _PRIOR_VALUES = 64, 4_000_000
_FEWEST_REFERENCE_ROWS = 5
# Share of a bounded prior's range that counts as an edge; probability of the tail of other priors.
_EDGE, _TAIL = 0.01, 1e-3


def diagnose_ensemble(
    ensemble: Ensemble,
    x_reference: Array | None = None,
    training_rows: NetworkRows | None = None,
    predictions: Predictions | None = None,
    row_groups: Array | None = None,
) -> Diagnosis:
    """Compute the diagnosis of an ensemble.

    Args:
        ensemble: Ensemble.
        x_reference: Transformed inputs [R, D] at which chains are compared, by default those saved
            with the ensemble.
        training_rows: The rows of the fit, transformed; by default the diagnosis keeps what was
            recorded about them at the fit.
        predictions: Verdict on the predictions by better rows, or None; see `check_fit`.
        row_groups: Groups of these rows that are left out together, as `Rows.groups`.
    """
    provenance, statistics = ensemble.provenance, dict(ensemble.sample_stats)
    if provenance.transitions_per_draw > 1:
        # E-BFMI compares successive transitions; between thinned ones it says nothing.
        del statistics["energy"]
    return diagnose(
        ensemble.draws,
        function_of_chains(ensemble, x_reference),
        statistics,
        max_tree_depth=provenance.max_tree_depth,
        num_divergent=provenance.num_divergent,
        transitions_per_draw=provenance.transitions_per_draw,
        adapts=provenance.adapts_step_size,
        is_adjusted=provenance.bias is None,
        fit=check_fit(ensemble, training_rows, predictions, row_groups),
        superchains=provenance.superchains,
    )


def check_fit(
    ensemble: Ensemble,
    rows: NetworkRows | None,
    predictions: Predictions | None = None,
    row_groups: Array | None = None,
) -> FitCheck:
    """Compare an ensemble with its data; chains count as they were sampled, without weights.

    Args:
        ensemble: Ensemble.
        rows: The training rows, of which at most 1000 are used, evenly spaced. None: the results
            that the ensemble's own diagnostics hold, if any.
        predictions: Verdict on the predictions by better rows. None: by the training rows, each
            left out, for error bars that are not calibrated and chains of equal weights; else that of
            the ensemble's own diagnostics.
        row_groups: Groups of rows that are left out together [N], numbered from 0; None: each row
            by itself.
    """
    is_calibrated = ensemble.calibration is not None
    known = ensemble.diagnostics or {}
    if rows is None:
        found = rows_check_from_json(known.get("training_rows"))
        judged = Predictions.from_json(known.get("predictions"))
    else:
        found, judged = _look_at(ensemble, rows, row_groups)
    if predictions is None and judged.coverage and judged.is_calibrated != is_calibrated:
        judged = Predictions(why="the error bars have changed since they were judged")
    if judged.coverage and not is_calibrated and weighting_note(ensemble) is not None:
        # Training rows judge the chains without weights.
        judged = Predictions(why="the chains have weights; evaluate rows that set no weights")
    prior, inputs = check_prior(ensemble), check_inputs(ensemble)
    return FitCheck(found, prior, inputs, is_calibrated, predictions or judged)


def check_held_out(ensemble: Ensemble, rows: Rows, source: str = "held-out rows") -> Predictions:
    """Judge error bars by at most 1000 rows that neither fit nor calibration has seen.

    The rows are in original units.
    """
    if ensemble.spec.has_classes:
        return _OF_CLASSES
    if ensemble.provenance.is_unfinished:
        return Predictions(why="the run ended before its first draw")
    rows = rows.part(_MAX_HELD_OUT)
    scores = row_scores(ensemble, rows.y, ensemble.transform(rows), pulls_alone=True)
    return scores.judged(source, ensemble.calibration is not None, ensemble.target_names)


def check_rows(ensemble: Ensemble, rows: NetworkRows, row_groups: Array | None = None) -> RowsCheck:
    """Compare an ensemble with at most 1000 of its training rows."""
    return _look_at(ensemble, rows, row_groups)[0]


def _look_at(
    ensemble: Ensemble, rows: NetworkRows, row_groups: Array | None
) -> tuple[RowsCheck, Predictions]:
    """Compare an ensemble with at most 1000 training rows, and judge its error bars on left-out rows."""
    whole = rows
    num_left_out = len(rows.x) if row_groups is None else len(np.unique(row_groups))
    chosen = evenly_spaced_groups(row_groups, len(rows.x), _MAX_ROWS)
    rows = rows.taken(chosen)
    ensemble = ensemble.with_chain_weights(np.full(ensemble.num_chains, 1 / ensemble.num_chains))
    ensemble = ensemble.averaged
    affordable = int(_MAX_WORK / (len(chosen) * ensemble.spec.layout.num_parameters))
    step = -(-ensemble.num_draws // min(max(affordable, _MIN_DRAWS), _MAX_DRAWS))
    ensemble = ensemble.picked(lambda values: values[:, ::step])
    if ensemble.spec.has_classes:
        return _classes(ensemble, rows), _OF_CLASSES
    row_groups = None if row_groups is None else row_groups[chosen]
    return _numbers(ensemble, rows, row_groups, Tangents.of(ensemble, whole), num_left_out)


def _classes(ensemble: Ensemble, rows: NetworkRows) -> ClassesCheck:
    scores = evaluate_classes(ensemble, rows)
    counts = [np.bincount(column.astype(int)).max() for column in rows.y.T]
    return ClassesCheck(
        num_rows=len(rows.x),
        accuracy=float(np.mean(scores["accuracy"])),
        majority=float(np.mean(counts) / len(rows.x)),
        calibration_error=float(np.max(scores["ece"])),
    )


def _numbers(
    ensemble: Ensemble,
    rows: NetworkRows,
    row_groups: Array | None,
    tangents: Tangents | None,
    num_left_out: int,
) -> tuple[NumbersCheck, Predictions]:
    weights, shape = ensemble.draw_weights, rows.y.shape
    mean, spread, noise, error, stddev, judged = (np.empty(shape) for _ in range(6))
    function = function_of_chains(ensemble)
    groups, has_counts = group_chains(function), ensemble.spec.has_counts
    tiles: Any = ((tile, None) for tile in target_tiles(ensemble, rows))
    is_too_large = len(rows.x) > MOST_LEFT_OUT_TOGETHER  # then the rows are one group
    if not (has_counts or is_too_large):  # rows of counts are not left out
        tiles = left_out_tiles(ensemble, rows, groups, row_groups, tangents)
    for tile, left_out in tiles:
        span, location, fitted, *_ = tile
        scale = np.broadcast_to(fitted, location.shape)
        # At infinite width the scale has the spread of the function in it.
        own = np.zeros(1) if tile.spread is None else np.square(tile.spread)
        mean[span] = np.einsum("s,snk->nk", weights, location)
        spread[span] = np.einsum("s,snk->nk", weights, np.square(location - mean[span]) + own)
        noise[span] = np.einsum("s,snk->nk", weights, np.square(scale) - own)
        if left_out is None:
            left_out = mean[span], np.sqrt(noise[span] + spread[span]), 0.0
        left_mean, stddev[span], judged[span] = left_out
        error[span] = rows.y[span] - left_mean
    pull = error / stddev
    quantile = ensemble.spec.regression_likelihood.noise_quantile
    ends = [float(quantile(np.array(0.5 + 0.5 * level))) for level in LEVELS]
    variance = rows.y.var(axis=0)
    varies = np.sqrt(variance) > ROUNDING * np.abs(rows.y.mean(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = 1.0 - np.mean((rows.y - mean) ** 2, axis=0) / np.where(varies, variance, np.nan)
        # The variance of a squared pull of counts is 2 plus the excess kurtosis of their likelihood,
        # 6 (v - m) / m^2 + 1 / v for the variance v and the mean m.
        kurtosis = 6.0 * np.maximum(noise - mean, 0.0) / np.square(mean) + 1.0 / noise
        chance = np.sqrt(np.mean(2.0 + kurtosis, axis=0) / len(rows.x))
    names = ensemble.target_names
    targets = [
        TargetCheck(
            name=names[index],
            mean=float(rows.y[:, index].mean()),
            stddev=float(np.sqrt(variance[index])),
            r2=float(r2[index]),
            residual=_root_mean((rows.y - mean)[:, index] ** 2),
            noise=_root_mean(noise[:, index]),
            spread=_root_mean(spread[:, index]),
            chance=float(chance[index]) if has_counts else np.nan,
            **_width(pull[:, index], judged[:, index] > 0, ends, has_counts),
        )
        for index in range(shape[1])
    ]
    check = NumbersCheck(len(rows.x), _noise_origin(ensemble), _worst(targets))
    if has_counts:
        return check, Predictions(
            why="counts are checked by validation rows alone; evaluate held-out rows"
        )
    if is_too_large:
        return check, Predictions(why="a group of rows is too large to leave out")
    if np.any(np.mean(judged, axis=0) < FEWEST_JUDGED):
        return check, Predictions(
            why="most rows decide their own predictions: few rows per weight, little noise"
        )
    try:
        require_moving_chains(ensemble, function, groups, num_left_out, tangents)
    except ValueError:
        return check, Predictions(
            why="the chains are too short to tell what a row left out changes"
        )
    levels = (np.arange(_NUM_LEVELS) + 0.5) / _NUM_LEVELS
    pit = np.where(judged > 0, np.interp(pull, quantile(levels), levels), np.nan)
    bars = pit, pull, stddev, np.abs(error)
    return check, Predictions.judge(*bars, LEFT_OUT, False, names, row_groups)


def _width(pulls: Array, judged: Array, ends: list[float], has_counts: bool) -> dict[str, Any]:
    """Return width and coverage of the pulls [N] of the judged rows, NaN if there are too few of them.

    For counts the width is the root of Pearson's statistic over N, from rows that are not left out.
    """
    unknown = (np.nan,) * len(ends)
    if has_counts:
        return {"pull_width": _root_mean(pulls**2), "coverage": unknown}
    if judged.sum() < FEWEST_JUDGED * len(pulls):
        return {"pull_width": np.nan, "coverage": unknown}
    pulls = pulls[judged]
    coverage = tuple(float(np.mean(np.abs(pulls) < end)) for end in ends)
    return {"pull_width": float(np.std(pulls)), "coverage": coverage}


def _root_mean(values: Array) -> float:
    return float(np.sqrt(np.mean(values)))


def _noise_origin(ensemble: Ensemble) -> str:
    if ensemble.spec.has_counts:
        return "counts"
    if ensemble.spec.regression_likelihood.learns_noise:
        return "learned"
    return "rows" if ensemble.row_noise else "fixed"


def _worst(targets: list[TargetCheck]) -> tuple[TargetCheck, ...]:
    if len(targets) <= _MAX_TARGETS:
        return tuple(targets)
    by_r2 = sorted(targets, key=lambda target: np.nan_to_num(target.r2, nan=np.inf))
    by_coverage = sorted(targets, key=lambda target: -target.coverage_error)
    half = _MAX_TARGETS // 2
    return tuple(dict.fromkeys((*by_r2[:half], *by_coverage[:half])))


def check_inputs(ensemble: Ensemble) -> InputCheck | None:
    """Find the training input that is furthest from mean 0 and standard deviation 1, if that matters."""
    inputs, spec = ensemble.training_inputs, ensemble.spec
    if (
        isinstance(spec, KerasSpec)
        and not spec.x_transform
        and '"Normalization"' in spec.architecture
    ):
        return None  # the network scales them itself
    covariance = inputs.covariance
    full = covariance.shape[0] == covariance.shape[1]
    variances = np.diagonal(covariance) if full else covariance[:, 0]
    stddev = np.sqrt(np.maximum(variances, 0.0))
    # The inputs of a column of text have one scale, which those of rare values hardly use.
    for column, span in ensemble.columns:
        if column.kind == TEXTS:
            stddev[span] = np.sqrt(np.mean(np.square(stddev[span])))
    # Inputs of one kind, such as pixels, are scaled together, as some of them hardly vary.
    if len(ensemble.spec.network.input_shape) > 1:
        spread = float(np.hypot(np.sqrt(np.mean(stddev**2)), np.std(inputs.mean)))
        return InputCheck("all of them", float(inputs.mean.mean()), spread)
    spreads = np.where(stddev <= ROUNDING * np.abs(inputs.mean), 1.0, stddev)  # 1 for constants
    index = int(np.argmax(np.maximum(np.abs(inputs.mean), np.maximum(spreads, 1.0 / spreads))))
    return InputCheck(ensemble.input_names[index], float(inputs.mean[index]), float(stddev[index]))


def check_prior(ensemble: Ensemble) -> PriorCheck:
    """Compare the weights of up to 400 draws with their prior."""
    step = -(-ensemble.num_draws // _MAX_DRAWS)
    theta = ensemble.draws[:, ::step].reshape(-1, ensemble.draws.shape[-1]).astype(np.float64)
    at_edge, in_tail = [], []
    for prior, span, scale_span in ensemble.spec.weight_groups():
        weights = theta[:, span]
        if prior.is_bounded:
            low, high = ensemble.spec.limits_of(prior)
            margin = _EDGE * (high - low)
            at_edge.append((weights < low + margin) | (weights > high - margin))
        elif (limit := _tail_begins(ensemble, prior)) is not None:
            scales: Array = np.ones(1)
            if prior.scale_prior is not None and not ensemble.spec.is_ntk:
                scales = np.exp(theta[:, scale_span])
                scales = np.repeat(scales, weights.shape[1] // scales.shape[1], axis=1)
            in_tail.append(np.abs(weights) > limit * scales)
    return PriorCheck(_share(at_edge), _share(in_tail), _prior_spread(ensemble))


def _tail_begins(ensemble: Ensemble, prior: WeightPrior) -> float | None:
    """Return the size beyond which the prior has few weights, at scale one if the scale is sampled.

    It is a quantile of draws, which every prior has. None if it is unknown.
    """
    if not prior.has_scale:
        return None
    draws = np.abs(prior.sample(np.random.default_rng(0), (round(100 / _TAIL),)))
    limit = float(np.quantile(draws, 1.0 - _TAIL))
    return limit / prior.scale if ensemble.spec.is_ntk and prior.scale else limit


def _share(flags: list[Array]) -> float:
    count = sum(flag.size for flag in flags)
    return sum(int(flag.sum()) for flag in flags) / count if count else np.nan


def _prior_spread(ensemble: Ensemble) -> float:
    spec = ensemble.spec
    if len(ensemble.x_reference) < _FEWEST_REFERENCE_ROWS or spec.earlier is not None:
        return np.nan
    count = min(_PRIOR_DRAWS, max(1, _PRIOR_VALUES // spec.layout.num_parameters))
    generator = np.random.default_rng(0)
    theta = np.stack([draw_parameters(spec, generator) for _ in range(count)])
    prior = replace(ensemble.with_draws(theta[None].astype(spec.dtype)), given=None)
    with np.errstate(over="ignore", invalid="ignore"):  # a prior that overflows is wide
        function = functions_together(prior, ensemble.x_pipeline.forward(ensemble.x_reference))
        return float(np.nan_to_num(np.median(function.std(axis=1), axis=0), nan=np.inf).min())
