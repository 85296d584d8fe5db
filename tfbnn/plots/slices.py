"""Figures of predictions along one input at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.plots.canvas import (
    BLUE,
    GREY,
    LIGHT,
    MOST_VECTORS,
    colors,
    line_styles,
    plain,
    styled_figure,
)
from tfbnn.plots.units import Quantity, input_quantities, target_quantities
from tfbnn.posterior.checks import checked_inputs, checked_rows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.relevance import relevance_of
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import evenly_spaced
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NUM_POINTS = 121
_MAX_INPUTS = 6
_PER_LINE = 3
_MAX_ROWS = 1000
# How far a slice goes beyond the training rows, as a share of their range: what the network says
# there shows how its error bars grow.
_BEYOND = 0.15
_CENTRAL = (0.16, 0.5, 0.84)


class Curve(NamedTuple):
    """A prediction along one input.

    Attributes:
        label: What it is of.
        function: Quantiles at 16, 50 and 84 % of the function [3, n]; of a class that of its
            probability, with the mean over draws in the middle.
        noisy: Quantiles at 16 and 84 % of a new observation [2, n], or None.
    """

    label: str
    function: Array
    noisy: Array | None


class Slice(NamedTuple):
    """What is predicted along one input, all others at their medians.

    Attributes:
        input, values: The input, and what it is [n].
        ends: Its range in the training rows.
        target: What is predicted.
        label: That, or the probability of a class of it, for an axis.
        curves: One for a target that is a number, one per class otherwise.
        points: (input [N], target [N]) of rows that are drawn as well, or None.
        is_log: Whether input and target are learned as log10.
    """

    input: Quantity
    values: Array
    ends: tuple[float, float]
    target: Quantity
    label: str
    curves: Sequence[Curve]
    points: tuple[Array, Array] | None
    is_log: tuple[bool, bool]


def plot_slices(
    model: SampledModel,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    noise_scale: ArrayLike | None = None,
    unit: str | Sequence[str] | None = None,
) -> Figure:
    """Predictions along one input at a time, the others at their medians; panels of each target in lines of three.

    The line is the median of the function, the dark band its central 68 %, the light one that of a
    new observation. Both are of the posterior, uncalibrated: a calibration is about rows like those
    of the fit, which slices leave. A fit with a known noise scale per row has no
    light band, as nobody knows the noise between the rows. Of classes it is
    their probabilities, and the line is their mean, which is what is predicted.
    Shaded are inputs beyond those of the fit. Of more than six inputs the six with the largest
    relevance are shown where the prior has a scale per input, and the first six elsewhere; inputs
    that were constant in the fit are left out.

    Args:
        model: A fitted `BayesianMLP`.
        x: Inputs [N, D] whose medians the others are at. Default: the reference rows saved with the
            model.
        y: Targets [N, K] or [N] of x, which are drawn as points where there is one input; of more,
            rows lie elsewhere than the slice does.
        noise_scale: Known standard deviations of the rows in the units of y, or None.
        unit: As in `plot_truth`.

    Returns:
        Figure.

    Raises:
        ValueError: For unusable rows, and where all inputs were constant in the fit.
    """
    found = find_slices(model, x, y, noise_scale, unit)
    lines = -(-len(found[0]) // _PER_LINE)
    num_columns = min(len(found[0]), _PER_LINE)
    with styled_figure(lines * len(found), num_columns, (4.0, 3.0)) as (figure, axes):
        for of_target, pieces in zip(axes.reshape(len(found), -1), found):
            for axis, piece in zip(of_target, pieces):
                draw_slice(axis, piece)
            for axis in of_target[len(pieces) :]:
                axis.remove()
        names = axes[0, 0].get_legend_handles_labels()
        figure.legend(*names, loc="outside upper left", ncols=2 * num_columns, fontsize="small")
    return figure


def find_slices(
    model: SampledModel,
    x: ArrayLike | None,
    y: ArrayLike | None,
    noise_scale: ArrayLike | None,
    unit: str | Sequence[str] | None,
) -> list[tuple[Slice, ...]]:
    """What `plot_slices` shows: of each target slices along the inputs."""
    ensemble = model.posterior
    points = None
    if x is None:
        seen = checked_inputs(ensemble, ensemble.x_reference)
    elif y is None:
        seen = checked_inputs(ensemble, x)
    else:
        rows, transformed = checked_rows(ensemble, x, y, noise_scale, "this figure")
        seen = transformed.x
        if ensemble.spec.num_inputs == 1 and not ensemble.spec.has_classes:
            shown = evenly_spaced(len(rows.x), _MAX_ROWS)
            points = rows.x[shown, 0], rows.y[shown]
    centre = np.median(seen, axis=0)
    by_input = [
        _slices_along(model, index, centre, points, unit) for index in _chosen_inputs(ensemble)
    ]
    return list(zip(*by_input))


def _chosen_inputs(ensemble: Ensemble) -> list[int]:
    """Which inputs are shown, in their order."""
    varies = ensemble.training_inputs.high > ensemble.training_inputs.low
    if not varies.any():
        raise ValueError(
            "plot_slices goes along inputs that vary; all inputs of this fit were constant. Look at "
            "plot_truth instead."
        )
    places = np.flatnonzero(varies)
    if len(places) > _MAX_INPUTS and ensemble.spec.priors[0].kernel.per_input:
        order = np.argsort(-relevance_of(ensemble).median[places], kind="stable")
        places = np.sort(places[order[:_MAX_INPUTS]])
    chosen: list[int] = places[:_MAX_INPUTS].tolist()
    return chosen


def _slices_along(
    model: SampledModel,
    index: int,
    centre: Array,
    points: tuple[Array, Array] | None,
    unit: str | Sequence[str] | None,
) -> list[Slice]:
    """Slices of all targets along one input, through a point [D] on the scale the network sees."""
    ensemble = model.posterior
    ranges, pipeline = ensemble.training_inputs, ensemble.x_pipeline
    low, high = ranges.low[index], ranges.high[index]
    margin = _BEYOND * (high - low)
    grid = np.repeat(centre[None], _NUM_POINTS + 2, axis=0)
    grid[:-2, index] = np.linspace(low - margin, high + margin, _NUM_POINTS)
    grid[-2:, index] = low, high
    x = pipeline.inverse(grid)
    values, ends = x[:-2, index], (float(x[-2, index]), float(x[-1, index]))
    is_log = tuple("log10" in steps.names for steps in (pipeline, ensemble.y_pipeline))
    quantity = input_quantities(ensemble)[index]
    return [
        Slice(
            quantity,
            values,
            ends,
            target,
            label,
            curves,
            None if points is None else (points[0], points[1][:, number]),
            (is_log[0], is_log[1]),
        )
        for number, (target, label, curves) in enumerate(_curves(model, x[:-2], unit))
    ]


def _curves(
    model: SampledModel, x: Array, unit: str | Sequence[str] | None
) -> list[tuple[Quantity, str, list[Curve]]]:
    """(target, label, curves) of every target at inputs [n, D]."""
    ensemble = model.posterior
    quantities = target_quantities(ensemble, unit)
    found = model.predict(x, quantiles=_CENTRAL).columns
    function = np.asarray(found.quantiles)
    if ensemble.spec.has_classes:
        function[1] = found.mean
        return _class_curves(ensemble, quantities, function)
    noisy: Sequence[Array | None] = [None] * len(quantities)
    if not ensemble.row_noise:
        ends = model.predict(
            x, include_noise=True, quantiles=(_CENTRAL[0], _CENTRAL[-1]), calibrated=False
        )
        noisy = list(np.moveaxis(np.asarray(ends.columns.quantiles), -1, 0))
    return [
        (quantity, quantity.label, [Curve("median", function[..., number], noisy[number])])
        for number, quantity in enumerate(quantities)
    ]


def _class_curves(
    ensemble: Ensemble, quantities: Sequence[Quantity], function: Array
) -> list[tuple[Quantity, str, list[Curve]]]:
    classes = ensemble.classes or ()
    curves = [Curve("", found, None) for found in np.moveaxis(function, -1, 0)]
    if ensemble.spec.num_predicted == ensemble.spec.num_targets:  # of the second of two
        last = plain(str(classes[-1]))
        return [
            (one, f"probability of {one.symbol} = {last}", [curve._replace(label="mean")])
            for one, curve in zip(quantities, curves)
        ]
    labelled = [curve._replace(label=plain(str(label))) for label, curve in zip(classes, curves)]
    return [(quantities[0], f"probability of {quantities[0].symbol}", labelled)]


def draw_slice(axis: Axes, piece: Slice) -> None:
    """Draws one slice."""
    if piece.points is not None:
        style: dict[str, Any] = {"color": GREY, "markersize": 2.5, "linestyle": "none"}
        many = len(piece.points[0]) > MOST_VECTORS
        axis.plot(*piece.points, "o", **style, rasterized=many, label="rows")
    several = len(piece.curves) > 1
    looks = zip(colors(len(piece.curves)), line_styles(len(piece.curves)))
    for (color, dashes), curve in zip(looks, piece.curves):
        band: dict[str, Any] = {"color": color if several else BLUE, "linewidth": 0}
        if curve.noisy is not None:
            light = band | {"alpha": 0.18, "label": "new observation, 68 %"}
            axis.fill_between(piece.values, *curve.noisy, **light)
        text = None if several else "function, 68 %"
        low, middle, high = curve.function
        axis.fill_between(piece.values, low, high, **band, alpha=0.35, label=text)
        axis.plot(piece.values, middle, color=color, linestyle=dashes, label=curve.label)
    if piece.is_log[0]:
        axis.set_xscale("log")
    if piece.is_log[1]:
        axis.set_yscale("log")
    axis.set_xlim(piece.values[0], piece.values[-1])
    label: str | None = "beyond the rows of the fit"
    for ends in ((piece.values[0], piece.ends[0]), (piece.ends[1], piece.values[-1])):
        axis.axvspan(*ends, color=LIGHT, alpha=0.35, linewidth=0, label=label)
        label = None
    axis.set(xlabel=piece.input.label, ylabel=piece.label)
