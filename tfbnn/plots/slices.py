"""Figures of predictions along one input at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from tfbnn.plots.canvas import (
    BLUE,
    GREY,
    LIGHT,
    MOST_VECTORS,
    colors,
    line_styles,
    styled_figure,
)
from tfbnn.plots.slicing import Slice, find_slices
from tfbnn.posterior.sampled_model import SampledModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Panels side by side.
_PER_LINE = 3


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
