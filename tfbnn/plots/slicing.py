"""Slices: predictions along one column of inputs at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.data.coding import NUMBERS, Column
from tfbnn.data.training_inputs import OUTSIDE
from tfbnn.plots.canvas import plain
from tfbnn.posterior.checks import checked_inputs, checked_rows, given_together
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.relevance import relevance_of, scales_of_inputs
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import evenly_spaced
from tfbnn.system.arrays import Array

_NUM_POINTS = 121
_MAX_INPUTS = 6
_MAX_ROWS = 1000
# With more values, there is no room for their names.
_MAX_VALUES = 20
# More classes would need a legend larger than the panel.
_MOST_CLASSES = 10
# Extension of a slice beyond the training rows, as a share of their range: it shows how the error
# bars grow there.
_BEYOND = 0.15
# Squares of inputs depend on each other if a weighted sum of the standardised squares has a
# variance below _FIXED. A point violates this relation if its sum is off by more than _BREAKS, in
# units of standard deviations of a square.
_FIXED, _BREAKS = 1e-6, 0.1
_CENTRAL = (0.16, 0.5, 0.84)


class Curve(NamedTuple):
    """Prediction along one input.

    Attributes:
        label: Label in the legend.
        function: Quantiles at 16, 50 and 84 % of the function [3, n]. For a class, those of its
            probability, with the mean over draws instead of the median.
        noisy: Quantiles at 16 and 84 % of a new observation [2, n], or None.
    """

    label: str
    function: Array
    noisy: Array | None


class Line(NamedTuple):
    """Inputs along one column of the user's table, with all other columns held fixed.

    Attributes:
        x: Inputs [n, D] in original units.
        input, values: Name of the column, and its values [n]; for text or flags positions 0, 1, ...
        names: For text or flags, the texts at these positions; None for numbers.
        num_left_out: Number of values of a text column that are left out because there are too
            many.
        ends: Range of the column in the training rows; for text or flags the first and last
            position.
        held: Place of the other columns, in words.
    """

    x: Array
    input: str
    values: Array
    names: tuple[str, ...] | None
    num_left_out: int
    ends: tuple[float, float]
    held: str = ""


class Slice(NamedTuple):
    """Predictions of a target along a line.

    Attributes:
        line: Inputs of the predictions.
        target: Name of the target.
        label: Label of the axis: the target, or the probability of one of its classes.
        curves: One curve for a numeric target, otherwise one per class.
        points: (input [N], target [N]) of rows that are drawn as points, or None.
        is_log: Whether input and target are learned as log10.
        is_outside: Whether each point is outside the training inputs [n].
    """

    line: Line
    target: str
    label: str
    curves: Sequence[Curve]
    points: tuple[Array, Array] | None
    is_log: tuple[bool, bool]
    is_outside: Array

    @property
    def share_outside(self) -> float:
        """Share of points outside the training inputs, among those within the input's range."""
        (low, high), values = self.line.ends, self.line.values
        return float(np.mean(self.is_outside[(values >= low) & (values <= high)]))


def find_slices(
    model: SampledModel, x: ArrayLike | None, y: ArrayLike | None, noise_scale: ArrayLike | None
) -> list[tuple[Slice, ...]]:
    """Compute the slices of `plot_slices`: for each target, one slice per chosen column."""
    ensemble = model.posterior
    if reason := why_no_slices(ensemble):
        raise ValueError(
            f"plot_slices goes along inputs that vary. {reason} Look at plot_truth instead."
        )
    points = None
    if y is not None:
        given_together("plot_slices", x, y)
    if x is None or y is None:
        seen = checked_inputs(ensemble, ensemble.x_reference if x is None else x)
    else:
        rows, transformed = checked_rows(ensemble, x, y, noise_scale, "this figure")
        seen = transformed.x
        if ensemble.spec.num_inputs == 1 and not ensemble.spec.has_classes:
            shown = evenly_spaced(len(rows.x), _MAX_ROWS)
            points = rows.x[shown, 0], rows.y[shown]
            if ensemble.spec.has_counts and rows.noise is not None:
                # The curves are rates, for an exposure of one.
                points = points[0], points[1] / np.exp(rows.noise[shown])
    median, centre, counts, held = _find_centre(ensemble, seen)
    lines = [
        _along_numbers(ensemble, column, span, median, centre)
        if column.kind == NUMBERS
        else _along_words(column, span, centre, counts[column.name])
        for column, span in _chosen_columns(ensemble)
    ]
    return list(zip(*(_slices_along(model, line._replace(held=held), points) for line in lines)))


def why_no_slices(ensemble: Ensemble) -> str | None:
    """Return the reason why there are no slices, a sentence; None if there are."""
    if not _varying_columns(ensemble):
        return "All inputs of the fit were constant."
    if ensemble.spec.network.num_words is not None:
        return "The inputs are numbers of words, with nothing between them."
    return None


def _varying_columns(ensemble: Ensemble) -> list[tuple[Column, slice]]:
    """Return the columns that vary, of numbers not only by missing values."""
    varies = ensemble.training_inputs.high > ensemble.training_inputs.low
    return [
        (column, span)
        for column, span in ensemble.columns
        if (varies[span.start] if column.kind == NUMBERS else varies[span].any())
    ]


def _chosen_columns(ensemble: Ensemble) -> list[tuple[Column, slice]]:
    """Choose the columns to show, in the order of the table."""
    columns = _varying_columns(ensemble)
    if len(columns) > _MAX_INPUTS and scales_of_inputs(ensemble.spec) is not None:
        relevance = relevance_of(ensemble).median
        order = np.argsort([-relevance[span].max() for _, span in columns], kind="stable")
        columns = [columns[index] for index in np.sort(order[:_MAX_INPUTS])]
    return columns[:_MAX_INPUTS]


def _find_centre(ensemble: Ensemble, seen: Array) -> tuple[Array, Array, dict[str, Array], str]:
    """Find the centre [D] of inputs [N, D], both on the scale that the network sees.

    Returns:
        (Medians of the inputs; centre in original units, with columns of text and flags at their
        most frequent value; counts of the values of these columns, by column name; place of the
        centre in words).

    For a text column, the medians of its inputs do not form a value: most often all of them are 0.
    A centre outside the training inputs is replaced by the row nearest to the medians.
    """
    median = np.median(seen, axis=0)
    x, rows = ensemble.x_pipeline.inverse(median[None])[0], ensemble.x_pipeline.inverse(seen)
    counts = {}
    for column, span in ensemble.columns:
        if column.kind != NUMBERS:
            codes = column.codes
            # An array without names may hold any numbers, so each row counts for the nearest value.
            away = [np.sum((rows[:, span] - code) ** 2, axis=1) for code in codes]
            nearest = np.argmin(away, axis=0)
            counts[column.name] = np.bincount(nearest, minlength=len(codes))
            x[span], rows[:, span] = codes[np.argmax(counts[column.name])], codes[nearest]
    held = "at their medians" + ", text and flags at their most frequent values" * bool(counts)
    if _outside(ensemble, x[None])[0]:
        held = "as in the row nearest to their medians, which are outside the training inputs"
        steps = (seen - median) / np.where(np.ptp(seen, axis=0) > 0, seen.std(axis=0), 1.0)
        x = rows[np.argmin(np.linalg.norm(steps, axis=1))]
    return median, x, counts, held


def _along_numbers(
    ensemble: Ensemble, column: Column, span: slice, median: Array, centre: Array
) -> Line:
    """Make a line along a numeric input, evenly spaced on the scale that the network sees."""
    ranges, index = ensemble.training_inputs, span.start
    low, high = ranges.low[index], ranges.high[index]
    margin = _BEYOND * (high - low)
    grid = np.repeat(median[None], _NUM_POINTS + 2, axis=0)
    grid[:-2, index] = np.linspace(low - margin, high + margin, _NUM_POINTS)
    grid[-2:, index] = low, high
    values = ensemble.x_pipeline.inverse(grid)[:, index]
    x = np.repeat(centre[None], _NUM_POINTS, axis=0)
    x[:, index] = values[:-2]
    x[:, index + 1 : span.stop] = 0.0  # the values are not missing
    ends = float(values[-2]), float(values[-1])
    return Line(x, column.name, values[:-2], None, 0, ends)


def _along_words(column: Column, span: slice, centre: Array, counts: Array) -> Line:
    """Make a line through the values of text or flags, at most the 20 most frequent ones."""
    order = np.argsort(-counts, kind="stable")
    shown = np.sort(order[:_MAX_VALUES])
    x = np.repeat(centre[None], len(shown), axis=0)
    x[:, span] = column.codes[shown]
    names = tuple(column.words[index] for index in shown)
    values = np.arange(len(shown), dtype=np.float64)
    left_out = len(order) - len(shown)
    return Line(x, column.name, values, names, left_out, (0.0, float(values[-1])))


def _slices_along(
    model: SampledModel, line: Line, points: tuple[Array, Array] | None
) -> list[Slice]:
    """Compute the slices of all targets along one line."""
    ensemble = model.posterior
    is_log = "log10" in ensemble.x_pipeline.names, "log10" in ensemble.y_pipeline.names
    is_outside, found = _outside(ensemble, line.x), []
    for number, (target, label, curves) in enumerate(_curves(model, line.x)):
        own = None if points is None else (points[0], points[1][:, number])
        found.append(Slice(line, target, label, curves, own, is_log, is_outside))
    return found


def _outside(ensemble: Ensemble, x: Array) -> Array:
    """Find inputs [n, D] outside the training inputs, by `trust_levels` or by their squares.

    The squares reveal mixings: their squares add up to one, so that they cannot all be at their
    medians, although each median is in the middle of a range.
    """
    levels = ensemble.trust(checked_inputs(ensemble, x))
    is_outside: Array = levels == OUTSIDE
    rows = ensemble.x_reference
    varies = np.ptp(np.abs(rows), axis=0) > 0
    if len(rows) <= 2 * np.count_nonzero(varies):
        return is_outside
    largest = np.abs(rows[:, varies]).max(axis=0)
    squares, own = ((values[:, varies] / largest) ** 2 for values in (rows, x))
    mean, scale = squares.mean(axis=0), squares.std(axis=0)
    squares, own = (squares - mean) / scale, (own - mean) / scale
    values, vectors = np.linalg.eigh(squares.T @ squares / len(squares))
    fixed = vectors[:, values < _FIXED]
    is_outside |= np.any(np.abs(own @ fixed) > _BREAKS, axis=1)
    return is_outside


def _curves(model: SampledModel, x: Array) -> list[tuple[str, str, list[Curve]]]:
    """Predict at inputs [n, D]; return (target, label, curves) of every target."""
    ensemble = model.posterior
    found = model.predict(x, quantiles=_CENTRAL).columns
    function = np.asarray(found.quantiles)
    if ensemble.spec.has_classes:
        function[1] = found.mean
        return _class_curves(model, function)
    noisy: Sequence[Array | None] = [None] * len(ensemble.target_names)
    if not ensemble.row_noise:
        ends = model.predict(
            x, include_noise=True, quantiles=(_CENTRAL[0], _CENTRAL[-1]), calibrated=False
        )
        noisy = list(np.moveaxis(np.asarray(ends.columns.quantiles), -1, 0))
    return [
        (name, plain(name), [Curve("median", function[..., number], noisy[number])])
        for number, name in enumerate(ensemble.target_names)
    ]


def _class_curves(model: SampledModel, function: Array) -> list[tuple[str, str, list[Curve]]]:
    ensemble = model.posterior
    classes, names = ensemble.classes or (), ensemble.target_names
    curves = [Curve("", found, None) for found in np.moveaxis(function, -1, 0)]
    if ensemble.spec.num_predicted == ensemble.spec.num_targets:  # only that of the second class
        last = plain(str(classes[-1]))
        return [
            (name, f"probability of {plain(name)} = {last}", [curve._replace(label="mean")])
            for name, curve in zip(names, curves)
        ]
    labelled = [curve._replace(label=plain(str(label))) for label, curve in zip(classes, curves)]
    label = f"probability of {plain(names[0])}"
    if len(labelled) > _MOST_CLASSES:  # the most probable ones, the same in every panel
        overall = model.predict(ensemble.x_reference).columns.mean.mean(axis=0)
        shown = np.sort(np.argsort(-overall, kind="stable")[:_MOST_CLASSES])
        label += f" ({_MOST_CLASSES} of {len(labelled)} classes)"
        labelled = [labelled[index] for index in shown]
    return [(names[0], label, labelled)]
