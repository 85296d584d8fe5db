"""Figures of predictions against known targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.plots import canvas
from tfbnn.plots.canvas import BLUE, GREY, LIGHT, ORANGE
from tfbnn.posterior.row_scores import row_scores
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import evenly_spaced
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_POINTS = 1000


def plot_truth(
    model: SampledModel, x: ArrayLike, y: ArrayLike, *, noise_scale: ArrayLike | None = None
) -> Figure:
    """Predictions against known targets, with residuals below; one column of panels per target.

    Points are medians of the predictive distribution, bars its central 68 %, noise included. Axes
    are logarithmic and residuals in decades where the targets are learned as log10.

    Args:
        model: A fitted `BayesianMLP`.
        x: Inputs [N, D]; of more than 1000 rows, 1000 are shown.
        y: Targets [N, K] or [N], original units.
        noise_scale: Known standard deviations of the rows in the units of y, or None.

    Returns:
        Figure.
    """
    rows, _ = canvas.checked_rows(model, x, y, noise_scale)
    shown = evenly_spaced(len(rows.x), _MAX_POINTS)
    noise = None if rows.noise is None else rows.noise[shown]
    quantiles = _quantiles(model, rows.x[shown], noise, [0.16, 0.5, 0.84])
    is_log = "log10" in model.posterior.y_pipeline.names
    names = model.posterior.target_names
    grid = {"height_ratios": [3, 1], "sharex": "col"}
    with canvas.styled_figure(2, len(names), (5.2, 2.8), **grid) as (figure, axes):
        for column, name in enumerate(names):
            truth, bounds = rows.y[shown, column], quantiles[:, :, column]
            _draw_truth(axes[:, column], truth, bounds, is_log, name)
    return figure


def _quantiles(
    model: SampledModel,
    x: Array,
    noise: Array | None,
    probabilities: ArrayLike,
    include_noise: bool = True,
) -> Array:
    """Quantiles [Q, N, K] of the predictive distribution."""
    found = model.predict(
        x, include_noise=include_noise, quantiles=probabilities, noise_scale=noise
    )
    return np.asarray(found.columns.quantiles)


def _draw_truth(axes: Array, truth: Array, quantiles: Array, is_log: bool, name: str) -> None:
    upper, lower = axes
    low, middle, high = quantiles
    ends = [min(truth.min(), middle.min()), max(truth.max(), middle.max())]
    upper.plot(ends, ends, color=GREY, linewidth=1, zorder=3)
    _draw_points(upper, truth, middle, (low, high))
    lower.axhline(0.0, color=GREY, linewidth=1, zorder=3)
    if is_log:
        upper.set_xscale("log")
        upper.set_yscale("log")
        residual = [np.log10(values / truth) for values in (middle, low, high)]
        lower.set_ylabel("log10(pred. / true)")
    else:
        residual = [values - truth for values in (middle, low, high)]
        lower.set_ylabel("pred. - true")
    _draw_points(lower, truth, residual[0], residual[1:])
    upper.set_ylabel(f"predicted {name}")
    upper.set_title("median and central 68 %, noise included")
    lower.set_xlabel(f"true {name}")


def _draw_points(axis: Axes, x: Array, middle: Array, ends: Sequence[Array]) -> None:
    # A bound may pass the median by rounding; a bar of negative length is an error to Matplotlib.
    bars = [np.maximum(middle - ends[0], 0.0), np.maximum(ends[1] - middle, 0.0)]
    marks: dict[str, Any] = {"fmt": "o", "markersize": 2.5, "markeredgewidth": 0, "color": BLUE}
    marks |= {"ecolor": BLUE, "elinewidth": 0.7, "alpha": 0.6, "rasterized": True}
    axis.errorbar(x, middle, yerr=bars, **marks)


def plot_pulls(
    model: SampledModel,
    x: ArrayLike,
    y: ArrayLike,
    *,
    noise_scale: ArrayLike | None = None,
    include_noise: bool = True,
) -> Figure:
    """Histogram of standardised residuals, (target - mean) / stddev, with the standard normal.

    They are taken on the scale the network sees, and with noise calibrated where the model is, as
    `evaluate` does.

    Args:
        model: A fitted `BayesianMLP`.
        x: Inputs [N, D].
        y: Targets [N, K] or [N], original units.
        noise_scale: Known standard deviations of the rows in the units of y, or None.
        include_noise: True (default): of new observations. False: of the function alone, as if the
            targets were its values.

    Returns:
        Figure.
    """
    rows, transformed = canvas.checked_rows(model, x, y, noise_scale)
    found = row_scores(model.posterior, rows.y, transformed, include_noise=include_noise)
    values = found.pull
    edges = np.arange(-5.0, 5.01, 0.5)
    grid = np.linspace(-5.0, 5.0, 201)
    with canvas.styled_figure(1, values.shape[1], (5.2, 3.8)) as (figure, axes):
        for axis, pull, name in zip(axes[0], values.T, model.posterior.target_names):
            # What lies beyond the last edge is shown in the last bin rather than dropped.
            shown = np.clip(pull, edges[0], edges[-1] - 1e-9)
            weights = np.full(len(pull), 1.0 / (len(pull) * (edges[1] - edges[0])))
            axis.hist(shown, edges, weights=weights, color=BLUE, alpha=0.75, label="these rows")
            normal = np.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi)
            axis.plot(grid, normal, color=ORANGE, label="standard normal")
            axis.set_xlabel(f"pull of {name}: (true - mean) / stddev")
            axis.set_ylabel("density")
            axis.set_title(
                f"mean of the pull {pull.mean():.2f}, width {pull.std():.2f}, {len(pull)} rows"
            )
            axis.legend(loc="upper left")
    return figure


def plot_coverage(
    model: SampledModel,
    x: ArrayLike,
    y: ArrayLike,
    *,
    noise_scale: ArrayLike | None = None,
    include_noise: bool = True,
) -> Figure:
    """Observed against nominal coverage: of central intervals, and beyond 1 to 5 sigma.

    Left, quantile intervals of the predictive distribution; the band is the binomial standard
    deviation at the nominal coverage. Right, the share of rows more than k standard deviations
    off with its 68 % interval (Wilson 1927, J. Am. Stat. Assoc. 22, 209); a downward arrow means no
    such row, at the level of one row.

    Args:
        model: A fitted `BayesianMLP`.
        x: Inputs [N, D].
        y: Targets [N, K] or [N], original units.
        noise_scale: Known standard deviations of the rows in the units of y, or None.
        include_noise: True (default): of new observations. False: of the function alone, as if the
            targets were its values.

    Returns:
        Figure.
    """
    rows, transformed = canvas.checked_rows(model, x, y, noise_scale)
    levels = np.linspace(0.05, 0.95, 19)
    ends = np.concatenate([(1 - levels) / 2, (1 + levels) / 2])
    found = _quantiles(model, rows.x, rows.noise, ends, include_noise)
    low, high = found[: len(levels)], found[len(levels) :]
    observed = np.mean((low <= rows.y) & (rows.y <= high), axis=1)  # [levels, K]
    scores = row_scores(model.posterior, rows.y, transformed, include_noise=include_noise)
    outside = np.abs(scores.pull)
    with canvas.styled_figure(1, 2, (4.2, 3.9)) as (figure, axes):
        intervals, tails = axes[0]
        _draw_intervals(intervals, levels, observed, len(rows.y), model.posterior.target_names)
        _draw_tails(tails, outside, model.posterior.target_names)
    return figure


def _draw_intervals(
    axis: Axes, levels: Array, observed: Array, num_rows: int, names: Sequence[str]
) -> None:
    grid = np.linspace(0.0, 1.0, 101)
    spread = np.sqrt(grid * (1 - grid) / num_rows)
    axis.fill_between(grid, grid - spread, grid + spread, color=LIGHT, alpha=0.6, linewidth=0)
    axis.plot(grid, grid, color=GREY, linewidth=1)
    for color, name, shares in zip(canvas.colors(len(names)), names, observed.T):
        axis.plot(levels, shares, "o-", color=color, markersize=3.5, linewidth=1, label=name)
    axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axis.set(xlabel="nominal central interval", ylabel="observed share of rows inside")
    axis.set_title("band: one standard deviation of the share")
    axis.legend(loc="upper left")


def wilson_interval(share: Array, num_rows: int) -> tuple[Array, Array]:
    """Ends of the 68 % interval of the true share of which `num_rows` rows show this one.

    They are the shares that are one of their own standard deviations off. So they stay within 0
    and 1, and no bar of few rows reaches down to nothing.
    """
    middle = (share + 0.5 / num_rows) / (1.0 + 1.0 / num_rows)
    spread = np.sqrt(share * (1.0 - share) / num_rows + 0.25 / num_rows**2) / (1.0 + 1.0 / num_rows)
    return middle - spread, middle + spread


def _draw_tails(axis: Axes, outside: Array, names: Sequence[str]) -> None:
    levels = np.arange(1, 6)
    nominal = [math.erfc(k / math.sqrt(2)) for k in levels]
    axis.plot(levels, nominal, "_", color=GREY, markersize=22, markeredgewidth=1.5, label="normal")
    num_rows, count = outside.shape
    for index, (color, name) in enumerate(zip(canvas.colors(count), names)):
        share = np.mean(outside[:, index, None] >= levels, axis=0)
        at = levels + 0.12 * (index - (count - 1) / 2)
        some = share > 0
        low, high = wilson_interval(share, num_rows)
        # A share of one may pass its upper end by rounding.
        bars = np.maximum([share - low, high - share], 0.0)[:, some]
        marks: dict[str, Any] = {"fmt": "o", "color": color, "markersize": 4, "label": name}
        axis.errorbar(at[some], share[some], yerr=bars, **marks)
        axis.plot(at[~some], np.full(np.sum(~some), 1 / num_rows), "v", color=color, markersize=5)
    axis.set_yscale("log")
    axis.set(xlabel="k standard deviations", ylabel="share of rows outside")
    axis.set_xticks(levels)
    axis.set_xlim(0.4, 5.6)
    axis.set_title("arrow: no such row, shown at one row")
    axis.legend(loc="lower left")
