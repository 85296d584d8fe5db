"""Figures of the inputs: predictions along one input at a time, and relevance of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.plots import canvas
from tfbnn.plots.canvas import BLUE, GREY, LIGHT, ORANGE, Axes, Figure, plain, styled_figure
from tfbnn.plots.slicing import Slice, find_slices
from tfbnn.posterior.relevance import Relevance
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.habits import explains_keywords
from tfbnn.spec.rows import known_of_rows

# Number of panels side by side.
_PER_LINE = 3
# Names of values with more letters than this in total are written vertically. A name with more
# letters than the second limit is cut, as it would leave no height for the panel.
_LONG_NAMES = 24
_LONG_NAME = 20
# With more letters, the name of an input below its panel is cut.
_LONGEST = 38
# With more inputs, there is no room for their names.
_MAX_INPUTS = 40


@explains_keywords
def plot_slices(
    model: SampledModel,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    noise_scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> Figure:
    """Plot predictions along one input at a time, with the other inputs held fixed.

    The other inputs are at their medians. If that point is outside the training inputs, such as
    mixings that unitarity forbids, they are those of the row nearest to the medians. The title of
    the legend says so.

    The panels of each target are in rows of three. A column of text or flags has one panel, with a
    point and bars for every value, or for the twenty most frequent values if there are more. In
    panels of other columns, it is at its most frequent value.

    The line is the median of the function, the dark band its central 68 %, and the light band the
    central 68 % of a new observation. Both bands are those of the posterior, without calibration,
    because a calibration is valid for rows like those of the fit, which slices leave. After a fit
    with a known noise scale per row there is no light band, as the noise between the rows is not
    known. For classes, probabilities are shown, and the line is their mean, which is the
    prediction.

    Inputs beyond those of the fit are shaded. A bar below marks other points outside the training
    inputs, such as mixings, which do not vary alone. With more than six inputs, the
    six most relevant ones are shown if the prior has a scale per input, otherwise the first six.
    Inputs that were constant in the fit are left out. A column of text counts as one input, as
    relevant as the most relevant of its values.

    Args:
        model: A fitted `BayesianMLP`.
        x: Inputs [N, D] that give the medians and most frequent values, or the row near them.
            Default: the reference rows saved with the model, which are training rows.
        y: Targets [N, K] or [N] of x, drawn as points if the model has one input. With more inputs
            they are not drawn, as the rows do not lie on the slice.
        noise_scale: Known standard deviations of the rows in the units of y, or None.
        offset: For counts: logarithms of the exposures of the rows, or None.

    Returns:
        Figure.

    Raises:
        ValueError: For unusable rows, and if all inputs were constant in the fit.
    """
    found = find_slices(model, x, y, known_of_rows(model.spec, noise_scale, offset))
    lines = -(-len(found[0]) // _PER_LINE)
    num_columns = min(len(found[0]), _PER_LINE)
    with styled_figure(lines * len(found), num_columns, (4.0, 3.0)) as (figure, axes):
        for of_target, pieces in zip(axes.reshape(len(found), -1), found):
            for axis, piece in zip(of_target, pieces):
                draw_slice(axis, piece)
            for axis in of_target[len(pieces) :]:
                axis.remove()
        named: dict[str, Any] = {}  # handles by label, as panels of text columns have fewer labels
        for axis in axes.flat:
            for handle, label in zip(*axis.get_legend_handles_labels()):
                named.setdefault(label, handle)
        title = fill(f"other inputs {pieces[0].line.held}", 40 * num_columns)
        look: Any = {"loc": "outside upper left", "ncols": 2 * num_columns, "fontsize": "small"}
        look["title"] = title if len(model.posterior.columns) > 1 else None
        figure.legend(named.values(), named.keys(), **look, alignment="left")
    return figure


def draw_slice(axis: Axes, piece: Slice) -> None:
    """Draw a slice on axes."""
    line = piece.line
    if piece.points is not None:
        style: dict[str, Any] = {"color": GREY, "markersize": 2.5, "linestyle": "none"}
        many = len(piece.points[0]) > canvas.MOST_VECTORS
        axis.plot(*piece.points, "o", **style, rasterized=many, label="rows")
    if line.names is None:
        _draw_curves(axis, piece)
    else:
        _draw_values(axis, piece, line.names)
    if piece.is_log[1]:
        axis.set_yscale("log")
    left_out = f" ({len(line.values)} of {len(line.values) + line.num_left_out} values)"
    name = plain(line.input, _LONGEST) + (left_out if line.num_left_out else "")
    canvas.add_labels(axis, name, piece.label)


def _draw_curves(axis: Axes, piece: Slice) -> None:
    """Draw lines and bands along a numeric column."""
    line, several = piece.line, len(piece.curves) > 1
    for look, curve in zip(canvas.line_looks(len(piece.curves)), piece.curves):
        band: dict[str, Any] = {"color": look["color"] if several else BLUE, "linewidth": 0}
        if curve.noisy is not None:
            light = band | {"alpha": 0.18, "label": "new observation, 68 %"}
            axis.fill_between(line.values, *curve.noisy, **light)
        text = None if several else "function, 68 %"
        low, middle, high = curve.function
        axis.fill_between(line.values, low, high, **band, alpha=0.35, label=text)
        axis.plot(line.values, middle, **look, label=curve.label)
    if piece.is_log[0]:
        axis.set_xscale("log")
    axis.set_xlim(line.values[0], line.values[-1])
    if piece.share_outside:
        strip: dict[str, Any] = {"transform": axis.get_xaxis_transform(), "linewidth": 0}
        low, high = line.ends
        where = piece.is_outside & (line.values >= low) & (line.values <= high)
        strip |= {"where": where, "color": ORANGE, "label": "outside the training inputs"}
        axis.fill_between(line.values, 0, 0.02, **strip)
    beyond: str | None = "beyond the rows of the fit"
    for ends in ((line.values[0], line.ends[0]), (line.ends[1], line.values[-1])):
        axis.axvspan(*ends, color=LIGHT, alpha=0.35, linewidth=0, label=beyond)
        beyond = None


def _draw_values(axis: Axes, piece: Slice, names: Sequence[str]) -> None:
    """Draw points with bars at the values of text or flags; classes are side by side."""
    line, several = piece.line, len(piece.curves) > 1
    shifts = (np.arange(len(piece.curves)) - (len(piece.curves) - 1) / 2) * 0.7 / len(piece.curves)
    for color, shift, curve in zip(canvas.colors(len(piece.curves)), shifts, piece.curves):
        bar: dict[str, Any] = {"color": color if several else BLUE}
        positions = line.values + shift
        if curve.noisy is not None:
            light = bar | {"alpha": 0.18, "label": "new observation, 68 %"}
            axis.vlines(positions, *curve.noisy, **light, linewidth=7)
        dark = bar | {"alpha": 0.5, "label": None if several else "function, 68 %"}
        low, middle, high = curve.function
        axis.vlines(positions, low, high, **dark, linewidth=3)
        axis.plot(positions, middle, "o", color=color, markersize=4, label=curve.label)
    texts = [plain(name, _LONG_NAME) for name in names]
    rotation = 90 if sum(map(len, texts)) > _LONG_NAMES else 0
    axis.set_xticks(line.values, texts, rotation=rotation, fontsize="small")
    axis.set_xlim(-0.5, len(names) - 0.5)


def plot_relevance(model: SampledModel) -> Figure:
    """Plot the posterior of each input's prior scale, with the most relevant input first.

    Points are medians, and bars the central 68 %; see `BayesianMLP.relevance`. With more than 40
    inputs, the 40 most relevant ones are shown.

    Args:
        model: A fitted `BayesianMLP` whose prior has a scale per input, such as the default prior.

    Returns:
        Figure.

    Raises:
        ValueError: For a model without ARD.
    """
    relevance = model.relevance()
    height = 0.9 + 0.26 * min(len(relevance.names), _MAX_INPUTS)
    with styled_figure(1, 1, (5.2, height)) as (figure, axes):
        draw_relevance(axes[0, 0], relevance)
    return figure


def draw_relevance(axis: Axes, relevance: Relevance) -> None:
    """Draw the scales of the inputs, the largest on top."""
    order = np.argsort(-relevance.median, kind="stable")[:_MAX_INPUTS]
    middle, positions = relevance.median[order], np.arange(len(order))
    bars = [middle - relevance.lower[order], relevance.upper[order] - middle]
    axis.errorbar(middle, positions, xerr=np.maximum(bars, 0.0), fmt="o", color=BLUE, markersize=4)
    axis.set_yticks(positions, [plain(relevance.names[index]) for index in order])
    axis.set_ylim(len(order) - 0.5, -0.5)
    axis.set_xscale("log")
    axis.grid(axis="x", alpha=0.3)
    per_unit = "" if relevance.standardized else " per unit of the input"
    label = f"scale of the input's weights{per_unit},\nmedian and central 68 %"
    axis.set_xlabel(label, loc="right")  # else long names push it beyond the figure
