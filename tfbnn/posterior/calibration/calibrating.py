"""Calibration of a model: scores of rows, their groups, and the coverage for rows left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.data.frames import refuse_other_order
from tfbnn.data.labels import group_numbers
from tfbnn.data.training_inputs import OUTSIDE
from tfbnn.data.validation import check_choice
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.exceptions import DataWarning
from tfbnn.posterior.calibration.calibration import (
    BY,
    LEVELS,
    METHODS,
    MOST_GROUPS,
    SCALES,
    Calibration,
    Misfit,
    central_levels,
    groups_of,
)
from tfbnn.posterior.calibration.left_out import FEWEST_JUDGED, LEFT_OUT, left_out_moments
from tfbnn.posterior.calibration.misfit_features import MOST_FEATURES, misfit_factors, num_features
from tfbnn.posterior.calibration.misfit_fit import fit_misfit
from tfbnn.posterior.calibration.score_distribution import FEWEST_SCORES, ScoreDistribution
from tfbnn.posterior.checks import checked_rows, rows_of_the_fit
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import Summary, predict
from tfbnn.spec.choices import is_auto
from tfbnn.spec.distributions import LEAST_LEVEL, normal_quantile
from tfbnn.spec.rows import NetworkRows, Rows, num_known, share_of_twins
from tfbnn.system.arrays import Array
from tfbnn.system.words import warn

# From this share of rows of the fit on, scores describe the fit and not new rows.
_MOST_OF_THE_FIT = 0.5
# With fewer rows a group determines the ends of its intervals no better than all rows do.
FEWEST_OF_A_GROUP = 150
# Distance from an edge between groups, as a share of it, within which rounding may move a prediction
# across; and the largest share of a group's rows that may be there.
_ROUNDING, _MOST_AT_EDGE = 1e-6, 0.01
_NUM_FOLDS = 5
# Names of the calibrating rows in reports, by method.
SOURCES = {"split": "held-out rows, by halves", "loo": LEFT_OUT}


def calibration_of_model(
    ensemble: Ensemble,
    training_rows: Rows | None,
    x_calibration: ArrayLike | None,
    y_calibration: ArrayLike | None,
    noise_scale: ArrayLike | None,
    by: str | None,
    method: str,
    scale: str,
    groups: Any,
) -> Calibration:
    """Return the Calibration of a model; other arguments and errors as in `SampledModel.calibrate`.

    Args:
        ensemble: Ensemble of the model.
        training_rows: Rows of the fit in this process, or None.
    """
    if by not in BY:
        raise ValueError(f"by must be None, 'stddev' or 'trust', received {by!r}.")
    check_choice("method", method, METHODS)
    check_choice("scale", scale, SCALES)
    if not ensemble.spec.has_additive_noise:
        raise ValueError(
            "calibrate is about noise around the outputs, this model has "
            f"{type(ensemble.spec.likelihood).__name__}. evaluate says how far its probabilities hold."
        )
    if method == "loo":
        if x_calibration is not None or y_calibration is not None:
            raise ValueError(
                "method='loo' takes the rows of the fit, received others. Use method='split'."
            )
        if ensemble.provenance.not_sampled is not None and ensemble.mode is None:
            raise ValueError(
                f"method='loo' needs draws of a posterior, received {ensemble.provenance.not_sampled}. "
                "Pass x_calibration and y_calibration."
            )
        names = "x_calibration and y_calibration"
        rows = rows_of_the_fit(training_rows, noise_scale, "method='loo'", names)
        return calibrate_by_leaving_out(
            ensemble, ensemble.transform(rows), by, scale, _row_groups(groups, rows)
        )
    if x_calibration is None or y_calibration is None:
        raise ValueError(
            "calibrate needs x_calibration and y_calibration, received None. Or use method='loo'."
        )
    rows, transformed = checked_rows(
        ensemble, x_calibration, y_calibration, noise_scale, "calibrate", "calibration "
    )
    refuse_other_order(x_calibration, groups, "groups", "x_calibration")
    rows = replace(rows, groups=_row_groups(groups, rows))
    _require_new_rows(rows, ensemble.row_digests)
    scaling = None
    if scale == "misfit":
        instead = "scale='stddev', or calibrate the model as it was fitted or a run folder"
        of_the_fit = ensemble.transform(
            rows_of_the_fit(training_rows, None, "scale='misfit'", instead)
        )
        misfit, _ = _misfit(ensemble, of_the_fit, *left_out_moments(ensemble, of_the_fit))
        scaling = misfit, misfit_factors(ensemble, misfit, transformed.x)
    wanted = Summary(include_noise=True, space="transformed")
    mean, stddev = predict(ensemble, transformed.x, wanted, rows.noise)
    return calibration_of_moments(
        ensemble, transformed, mean, stddev, by, "split", scaling, rows.groups
    )


def _row_groups(labels: Any, rows: Rows) -> Array | None:
    """Return the groups of rows that belong together, from labels, by default those of the fit."""
    return rows.groups if labels is None else group_numbers(labels, len(rows.x))


def _require_new_rows(rows: Rows, digests: Array) -> None:
    of_the_fit = num_known(digests, rows) or 0
    is_same_table = of_the_fit == len(rows.x) == len(digests)
    share = of_the_fit / len(rows.x)
    # Rows of a few settings have equals among others by chance.
    if share > _MOST_OF_THE_FIT and (is_same_table or share_of_twins(digests) < 0.5 * share):
        raise ValueError(
            f"calibrate needs rows that the fit has not seen, received {len(rows.x)} of which "
            f"{of_the_fit} are rows of the fit. Hold rows out, or use method='loo'."
        )
    if of_the_fit:
        warn(
            f"{of_the_fit} of the {len(rows.x)} rows have the values of rows of the fit. If they are these "
            "rows, their errors are too small."
        )


def calibrate_by_leaving_out(
    ensemble: Ensemble,
    transformed: NetworkRows,
    by: str | None,
    scale: str = "stddev",
    row_groups: Array | None = None,
) -> Calibration:
    """Calibrate by the rows of the fit, each left out in turn; see `left_out_moments`.

    Args:
        ensemble: Ensemble of a regression.
        transformed: The rows of the fit on the scale the network sees.
        by: None, "stddev", "trust", or "auto": "stddev" if there are enough rows for groups.
        scale: "stddev" or "misfit".
        row_groups: Groups of rows that are left out together [N], numbered from 0; None: each row
            by itself.

    Raises:
        ValueError: For too few rows, for a misfit of rows in groups, and if more than half of the
            rows have too much leverage to be predicted without themselves.
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
            f"method='loo' can use only {len(known)} of {len(judged)} rows, as {decide} dominate their "
            "own predictions. Pass x_calibration and y_calibration, rows that the fit has not seen."
        )
    scaling = None
    if scale == "misfit":
        misfit, factors = _misfit(ensemble, transformed, mean, stddev, judged)
        scaling = misfit, factors[known]
    row_groups = None if row_groups is None else row_groups[known]
    moments = mean[known], stddev[known]
    return calibration_of_moments(
        ensemble, transformed.taken(known), *moments, by, "loo", scaling, row_groups
    )


def _misfit(
    ensemble: Ensemble, rows: NetworkRows, mean: Array, stddev: Array, judged: Array
) -> tuple[Misfit, Array]:
    """Return the Misfit, and its factors at the rows of the fit [N, K], each without its own part."""
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


class _Scored(NamedTuple):
    """Rows that calibrate.

    Attributes:
        scores: [n, K].
        spread: Divisors of the scores [n, K].
        trust: Trust levels [n].
        labels: Numbers of the groups of rows that belong together [n].
    """

    scores: Array
    spread: Array
    trust: Array
    labels: Array

    def taken(self, chosen: Array) -> _Scored:
        return _Scored(*(values[chosen] for values in self))


def calibration_of_moments(
    ensemble: Ensemble,
    rows: NetworkRows,
    mean: Array,
    stddev: Array,
    by: str | None,
    method: str,
    scaling: tuple[Misfit, Array] | None = None,
    row_groups: Array | None = None,
) -> Calibration:
    """Compute the Calibration by rows whose predictions are known.

    Args:
        ensemble: Ensemble of a regression.
        rows: The rows on the scale the network sees.
        mean, stddev: Predictions for the rows with noise, transformed [N, K].
        by: As in `calibrate_by_leaving_out`.
        method: Method of these predictions, "split" or "loo".
        scaling: A Misfit and its factors at the rows [N, K], or None.
        row_groups: Groups of rows that belong together [N]; a group counts as one row where a least
            number of rows is required. None: each row by itself.

    Raises:
        ValueError: For too few rows.
    """
    trust = ensemble.trust(rows.x)
    misfit, factors = scaling or (None, np.ones(stddev.shape))
    plain = (rows.y - mean) / stddev
    labels = np.arange(len(plain)) if row_groups is None else row_groups
    # Nothing is calibrated outside the training inputs, so rows from there are not used.
    used = trust > OUTSIDE
    if method == "split" and np.mean(used) < FEWEST_JUDGED:
        warn(
            f"{np.sum(~used)} of {len(used)} rows lie outside the training inputs and are not used for the "
            "calibration. Pass rows like those of the fit.",
            DataWarning,
        )
    known = _Scored(plain / factors, stddev * factors, trust, labels).taken(used)
    names, labels = np.unique(known.labels, return_inverse=True)
    known, count = known._replace(labels=labels), len(names)
    if count < FEWEST_SCORES:
        what = "rows" if row_groups is None else "groups of rows"
        raise ValueError(
            f"calibrate needs at least {FEWEST_SCORES} {what} that are not outside the training inputs, "
            f"received {count}. Pass more."
        )
    if is_auto(by) and count < 2 * FEWEST_OF_A_GROUP:
        by = None
    by, groups, edges = _groups(known, by)
    return Calibration(
        method=method,
        by=by,
        num_rows=len(known.scores),
        edges=edges,
        groups=_distributions(known.scores, groups),
        coverage_before=np.array([np.mean(np.abs(plain[used]) < k, axis=0) for k in LEVELS]),
        coverage_after=_coverage_of_folds(known, groups),
        misfit=misfit,
        checked=_checked(known, by, SOURCES[method], ensemble.target_names),
        num_groups=None if row_groups is None else count,
    )


def _checked(known: _Scored, by: str | None, source: str, names: Sequence[str]) -> Predictions:
    """Judge the rows in two halves, each by the calibration of the other."""
    half, pit = folds(known.labels, 2), np.empty(known.scores.shape)
    for number in (0, 1):
        others, rows = known.taken(half != number), known.taken(half == number)
        if len(others.scores) < FEWEST_SCORES:
            return Predictions(why=f"{len(pit)} rows are too few for two halves")
        try:
            grouped, groups, edges = _groups(others, by)
        except ValueError:  # half of the rows may be too few for groups
            grouped, groups, edges = _groups(others, None)
        none, distributions = others.scores[:0], _distributions(others.scores, groups)
        record = Calibration("split", grouped, len(groups), edges, distributions, none, none)
        groups = record.groups_of(rows.spread, rows.trust)
        pit[half == number] = record.each(ScoreDistribution.probability, rows.scores, groups)
    pulls = normal_quantile(np.clip(pit, LEAST_LEVEL, 1.0 - LEAST_LEVEL))
    error = np.abs(known.scores * known.spread)
    return Predictions.judge(pit, pulls, known.spread, error, source, True, names, known.labels)


def folds(labels: Array, count: int) -> Array:
    """Return the fold, 0 to count - 1, of each row; rows of one label, numbered from 0, share one."""
    found: Array = np.random.default_rng(0).permutation(labels.max() + 1)[labels] % count
    return found


def _groups(rows: _Scored, by: str | None) -> tuple[str | None, Array, Array]:
    """Return `by` without "auto", the group of each row and target [n, K], and edges [B - 1, K]."""
    edges = np.empty((0, rows.spread.shape[1]))
    if by == "stddev" or is_auto(by):
        first, ordered = first_rows(rows.spread), np.sort(rows.spread, axis=0)
        if not len(first) and not is_auto(by):
            _require_rows("stddev", [len(ordered) // 2] * 2)
            raise ValueError(
                "by='stddev' needs predicted standard deviations that differ. Use by=None."
            )
        by = "stddev" if len(first) else None
        edges = 0.5 * (ordered[first - 1] + ordered[first])
    groups = groups_of(by, edges, rows.spread, rows.trust)
    if by == "trust":
        _require_rows(by, np.bincount(groups[:, 0], minlength=2).tolist())
    return by, groups, edges


def first_rows(stddev: Array) -> Array:
    """Return the ranks at which the groups by "stddev" begin, without that of the first group [B - 1].

    There are none without groups. Groups have about the same size. Predictions are distinguished by
    their standard deviations [n, K] alone, so that equal ones are in one group, for every target.
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
    # Equal predictions are in one group, so that groups have the same sizes for every target.
    parted = np.all(edges < ordered[1:], axis=1)
    possible = 1 + np.flatnonzero((np.max(at_edge, axis=0) <= most) & parted)
    first = [0]
    for wanted in np.arange(1, count) * num_rows // count:
        left = possible[possible >= first[-1] + FEWEST_OF_A_GROUP]
        left = left[left <= num_rows - FEWEST_OF_A_GROUP]
        if len(left):
            first.append(int(left[np.argmin(np.abs(left - wanted))]))
    return np.array(first[1:], int)


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


def _coverage_of_folds(rows: _Scored, groups: Array) -> Array:
    """Compute the coverage [3, K] of each fifth of the rows under a calibration by the others.

    In a group of hardly enough rows the calibration is by all of them. Rows of one label, numbered
    from 0, are in one fifth.
    """
    scores, labels = rows.scores, rows.labels
    fold = folds(labels, _NUM_FOLDS)
    inside = np.zeros((len(LEVELS), *scores.shape), bool)
    ends = np.array([central_levels(k) for k in LEVELS])
    for number in range(int(groups.max()) + 1):
        for target in range(scores.shape[1]):
            taken = groups[:, target] == number
            for left in range(_NUM_FOLDS):
                others, judged = taken & (fold != left), taken & (fold == left)
                if others.sum() < FEWEST_SCORES:
                    others = taken
                low, high = ScoreDistribution.of(scores[others, target]).quantile(ends).T
                values = scores[judged, target]
                inside[:, judged, target] = (values > low[:, None]) & (values < high[:, None])
    return inside.mean(axis=1)
