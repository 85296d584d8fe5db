"""Finds a `Calibration`: scores of rows, their groups, and what it changes on rows left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from tfbnn.data.training_inputs import INSIDE, OUTSIDE, trust_levels
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.posterior.calibration.left_out import (
    FEWEST_JUDGED,
    LEFT_OUT,
    halves,
    left_out_moments,
)
from tfbnn.posterior.calibration.misfit import Misfit
from tfbnn.posterior.calibration.misfit_features import MOST_FEATURES, misfit_factors, num_features
from tfbnn.posterior.calibration.misfit_fit import fit_misfit
from tfbnn.posterior.calibration.record import LEVELS, MOST_GROUPS, Calibration, central_levels
from tfbnn.posterior.calibration.score_distribution import FEWEST_SCORES, ScoreDistribution
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import Summary, predict
from tfbnn.spec.choices import is_auto
from tfbnn.spec.distributions import LEAST_LEVEL, normal_quantile
from tfbnn.spec.rows import NetworkRows, Rows
from tfbnn.system.arrays import Array

# Fewer rows in a group tell the ends of its intervals no better than all rows do.
FEWEST_OF_A_GROUP = 150
# So near to an edge between groups, as a share of it, rounding may carry a prediction over, and the
# most rows of a group that may be there.
_ROUNDING, _MOST_AT_EDGE = 1e-6, 0.01
_NUM_FOLDS = 5
# What reports call the rows that calibrated, by the method.
SOURCES = {"split": "held-out rows, by halves", "loo": LEFT_OUT}


def calibrate_by_rows(
    ensemble: Ensemble,
    rows: Rows,
    transformed: NetworkRows,
    by: str | None,
    of_the_fit: NetworkRows | None = None,
) -> Calibration:
    """The Calibration by rows that the fit has not seen.

    Args:
        ensemble: Ensemble of a regression.
        rows: The rows in original units; their `groups` stay together where calibrations are judged.
        transformed: The same on the scale the network sees.
        by: None, "stddev" or "trust".
        of_the_fit: With scale="misfit" the rows of the fit, transformed.

    Raises:
        ValueError: For too few rows.
    """
    moments = predict(ensemble, transformed.x, Summary(True, space="transformed"), rows.noise)
    scaling = None
    if of_the_fit is not None:
        misfit, _ = _misfit(ensemble, of_the_fit, *left_out_moments(ensemble, of_the_fit))
        scaling = Scaling(misfit, misfit_factors(ensemble, misfit, transformed.x))
    return calibration_of_moments(
        ensemble, transformed, moments.mean, moments.stddev, by, "split", scaling, rows.groups
    )


def calibrate_by_leaving_out(
    ensemble: Ensemble,
    transformed: NetworkRows,
    by: str | None,
    scale: str = "stddev",
    row_groups: Array | None = None,
) -> Calibration:
    """The Calibration by the rows of the fit, each left out in turn; see `left_out_moments`.

    Args:
        ensemble: Ensemble of a regression.
        transformed: The rows of the fit on the scale the network sees.
        by: None, "stddev", "trust", or "auto": "stddev" where there are rows enough for groups.
        scale: "stddev" or "misfit".
        row_groups: Which rows are left out together [N], numbered from 0; None: each by itself.

    Raises:
        ValueError: For too few rows, for a misfit of rows in groups, and where more than half of the rows
            have so much leverage that nothing can be said of what they would have been without themselves.
    """
    if row_groups is not None and scale == "misfit":
        raise ValueError(
            "scale='misfit' counts each row of the fit by itself, received groups. Use scale='stddev'."
        )
    mean, stddev, judged = left_out_moments(ensemble, transformed, row_groups)
    known = np.flatnonzero(judged.all(axis=1))
    if len(known) < FEWEST_JUDGED * len(judged):
        decide = "the others" if row_groups is None else "the groups of the others"
        raise ValueError(
            f"method='loo' can judge {len(known)} of {len(judged)} rows: {decide} decide their own "
            "predictions, so that nothing is known of them without themselves. Pass x_calibration "
            "and y_calibration, rows that the fit has not seen."
        )
    scaling = None
    if scale == "misfit":
        misfit, factors = _misfit(ensemble, transformed, mean, stddev, judged)
        scaling = Scaling(misfit, factors[known])
    row_groups = None if row_groups is None else row_groups[known]
    return calibration_of_moments(
        ensemble,
        transformed.taken(known),
        mean[known],
        stddev[known],
        by,
        "loo",
        scaling,
        row_groups,
    )


def _misfit(
    ensemble: Ensemble, rows: NetworkRows, mean: Array, stddev: Array, judged: Array
) -> tuple[Misfit, Array]:
    """The Misfit, and its factors at the rows of the fit [N, K], each without its own part in it."""
    size = num_features(ensemble.spec)
    if size > MOST_FEATURES:
        raise ValueError(
            f"scale='misfit' takes at most {MOST_FEATURES} weights per output in the last layer, this "
            f"model has {size}. Use scale='stddev'."
        )
    count = int(judged.sum(axis=0).min())
    if count < FEWEST_SCORES:
        raise ValueError(
            f"scale='misfit' needs at least {FEWEST_SCORES} rows of the fit that do not decide their "
            f"own predictions, found {count} of {len(judged)}. Use scale='stddev'."
        )
    scores = np.where(judged, (rows.y - mean) / stddev, 0.0)
    return fit_misfit(ensemble, rows, scores, judged)


class Scaling(NamedTuple):
    """A Misfit, and its factors at the rows that calibrate [N, K]."""

    misfit: Misfit
    factors: Array


def calibration_of_moments(
    ensemble: Ensemble,
    rows: NetworkRows,
    mean: Array,
    stddev: Array,
    by: str | None,
    method: str,
    scaling: Scaling | None = None,
    row_groups: Array | None = None,
) -> Calibration:
    """The Calibration by rows of which the predictions are known.

    Args:
        ensemble: Ensemble of a regression.
        rows: The rows on the scale the network sees.
        mean, stddev: Predictions of them with noise, transformed [N, K].
        by: As in `calibrate_by_leaving_out`.
        method: What they are by, "split" or "loo".
        scaling: Scaling of the deviations, or None.
        row_groups: Which rows belong together [N]: a group counts as one row where there have to be
            so many; None: each by itself.

    Raises:
        ValueError: For too few rows.
    """
    trust = trust_levels(ensemble.training_inputs, rows.x)
    # Outside nothing is calibrated, so those rows say nothing of where it is.
    used = trust > OUTSIDE
    plain: Array = ((rows.y - mean) / stddev)[used]
    factors = np.ones(plain.shape) if scaling is None else scaling.factors[used]
    scores, spread, trust = plain / factors, stddev[used] * factors, trust[used]
    labels = None if row_groups is None else np.unique(row_groups[used], return_inverse=True)[1]
    count = len(scores) if labels is None else len(np.unique(labels))
    if count < FEWEST_SCORES:
        what = "rows" if labels is None else "groups of rows"
        raise ValueError(
            f"calibrate needs at least {FEWEST_SCORES} {what} that are not outside the training inputs, "
            f"received {count}. Pass more."
        )
    if labels is not None and is_auto(by) and count < 2 * FEWEST_OF_A_GROUP:
        by = None
    by, groups, edges = _groups(spread, trust, by)
    within = [np.mean(np.abs(plain) < k, axis=0) for k in LEVELS]
    return Calibration(
        method=method,
        by=by,
        num_rows=len(scores),
        edges=edges,
        groups=_distributions(scores, groups),
        coverage_before=np.array(within),
        coverage_after=_coverage_of_folds(scores, groups, labels),
        misfit=None if scaling is None else scaling.misfit,
        checked=_checked(scores, spread, trust, by, SOURCES[method], ensemble.target_names, labels),
        num_groups=None if labels is None else count,
    )


def _checked(
    scores: Array,
    spread: Array,
    trust: Array,
    by: str | None,
    source: str,
    names: Sequence[str],
    labels: Array | None,
) -> Predictions:
    """The Predictions by the rows in two halves, each judged by the calibration of the other."""
    half, pit = halves(len(scores), labels), np.empty(scores.shape)
    for number in (0, 1):
        others, rows = half != number, half == number
        if others.sum() < FEWEST_SCORES:
            return Predictions(why=f"{len(scores)} rows are too few for two halves")
        try:
            grouped, groups, edges = _groups(spread[others], trust[others], by)
        except ValueError:  # half of the rows may be too few for groups
            grouped, groups, edges = _groups(spread[others], trust[others], None)
        none = np.empty((0, scores.shape[1]))
        record = Calibration(
            "split", grouped, len(groups), edges, _distributions(scores[others], groups), none, none
        )
        pit[rows] = record.probability(scores[rows], record.groups_of(spread[rows], trust[rows]))
    pulls = normal_quantile(np.clip(pit, LEAST_LEVEL, 1.0 - LEAST_LEVEL))
    return Predictions.judge(pit, pulls, source, True, names)


def _groups(stddev: Array, trust: Array, by: str | None) -> tuple[str | None, Array, Array]:
    """(By what, without "auto", group of each row and target [n, K], edges [B - 1, K] by "stddev")."""
    num_rows, num_targets = stddev.shape
    no_edges = np.empty((0, num_targets))
    if by == "trust":
        groups = np.repeat((trust < INSIDE).astype(int)[:, None], num_targets, axis=1)
        _require_rows(by, np.bincount(groups[:, 0], minlength=2).tolist())
        return by, groups, no_edges
    first = np.empty(0, int) if by is None else first_rows(stddev)
    if not len(first) and (by is None or is_auto(by)):
        return None, np.zeros(stddev.shape, int), no_edges
    if not len(first):
        _require_rows("stddev", [num_rows // 2] * 2)
        raise ValueError(
            "by='stddev' needs predicted standard deviations that differ, received so many equal ones "
            f"that no {FEWEST_OF_A_GROUP} rows are apart from {FEWEST_OF_A_GROUP} others. Use by=None."
        )
    ordered = np.sort(stddev, axis=0)
    edges = 0.5 * (ordered[first - 1] + ordered[first])
    return "stddev", np.sum(stddev > edges[:, None], axis=0), edges


def first_rows(stddev: Array) -> Array:
    """Ranks of the rows that groups by "stddev" begin with, but the first [B - 1]; none: no groups.

    Groups are about as large as each other. Predictions are told apart by their standard deviations
    [n, K] alone, so that equal ones are in one group, in whatever target.
    """
    num_rows = len(stddev)
    count = min(MOST_GROUPS, num_rows // FEWEST_OF_A_GROUP)
    ordered = np.sort(stddev, axis=0)
    edges = 0.5 * (ordered[1:] + ordered[:-1])
    at_edge = [
        np.searchsorted(column, edge * (1.0 + _ROUNDING), side="right")
        - np.searchsorted(column, edge * (1.0 - _ROUNDING))
        for column, edge in zip(ordered.T, edges.T)
    ]
    most = max(1.0, _MOST_AT_EDGE * num_rows / max(count, 1))
    possible = 1 + np.flatnonzero(np.max(at_edge, axis=0) <= most)
    first: list[int] = []
    for wanted in np.arange(1, count) * num_rows // count:
        begin = first[-1] if first else 0
        left = possible[possible >= begin + FEWEST_OF_A_GROUP]
        left = left[left <= num_rows - FEWEST_OF_A_GROUP]
        if len(left):
            first.append(int(left[np.argmin(np.abs(left - wanted))]))
    return np.array(first, int)


def _require_rows(by: str, sizes: list[int]) -> None:
    if min(sizes) < FEWEST_OF_A_GROUP:
        raise ValueError(
            f"by={by!r} needs at least {FEWEST_OF_A_GROUP} rows in each of two groups, received "
            f"{' and '.join(map(str, sizes))}. Pass more rows, or by=None."
        )


def _distributions(scores: Array, groups: Array) -> tuple[tuple[ScoreDistribution, ...], ...]:
    return tuple(
        tuple(
            ScoreDistribution.of(column[group == number])
            for column, group in zip(scores.T, groups.T)
        )
        for number in range(int(groups.max()) + 1)
    )


def _coverage_of_folds(scores: Array, groups: Array, labels: Array | None) -> Array:
    """Coverage [3, K] of each fifth of the rows under a calibration by the others.

    In a group of hardly enough rows it is one by all of them. Rows of one label, numbered from 0, are
    in one fifth.
    """
    labels = np.arange(len(scores)) if labels is None else labels
    fold = (np.random.default_rng(0).permutation(labels.max() + 1) % _NUM_FOLDS)[labels]
    inside = np.zeros((len(LEVELS), *scores.shape), bool)
    ends = np.array([central_levels(k) for k in LEVELS])
    for number in range(int(groups.max()) + 1):
        for target in range(scores.shape[1]):
            taken = groups[:, target] == number
            for left in range(_NUM_FOLDS):
                others, rows = taken & (fold != left), taken & (fold == left)
                if others.sum() < FEWEST_SCORES:
                    others = taken
                low, high = ScoreDistribution.of(scores[others, target]).quantile(ends).T
                values = scores[rows, target]
                inside[:, rows, target] = (values > low[:, None]) & (values < high[:, None])
    return cast(Array, inside.mean(axis=1))
