"""Figures of predictions and their error bars against known targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.plots import canvas
from tfbnn.plots.canvas import BLUE, GREY, LIGHT, ORANGE, Axes, Figure, plain
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.habits import explains_keywords
from tfbnn.spec.rows import as_argument, evenly_spaced, known_of_rows
from tfbnn.system.arrays import Array

_MAX_POINTS = 1000
# Largest absolute pull on the axis.
_WIDEST = 5.0


@explains_keywords
def plot_truth(
    model: SampledModel,
    x: ArrayLike,
    y: ArrayLike,
    *,
    noise_scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> Figure:
    """Plot predictions against known targets, with residuals below; one column per target.

    Points are medians of the predictive distribution, and bars its central 68 %, noise included.
    For targets learned as log10, the axes are logarithmic and the residuals in decades.

    Args:
        model: A fitted `BayesianMLP`.
        x: Inputs [N, D]; at most 1000 rows are shown.
        y: Targets [N, K] or [N], original units.
        noise_scale: Known standard deviations of the rows in the units of y, or None.
        offset: For counts: logarithms of the exposures of the rows, or None.

    Returns:
        Figure.
    """
    truths = find_truths(model, x, y, known_of_rows(model.spec, noise_scale, offset))
    with canvas.styled_figure(2, len(truths), (5.2, 2.8), **canvas.DOUBLE) as (figure, axes):
        for column, truth in enumerate(truths):
            draw_truth(axes[0, column], truth)
            draw_truth(axes[1, column], truth, is_off=True)
            axes[0, column].set_xlabel("")
    return figure


class Truth(NamedTuple):
    """Known values of a target and their predictions.

    Attributes:
        name: Name of the target.
        values: Known values [n].
        quantiles: Quantiles of the predictive distribution at 16, 50 and 84 % [3, n].
        is_log: Whether the target is learned as log10.
        num_rows: Total number of rows, of which n are shown.
    """

    name: str
    values: Array
    quantiles: Array
    is_log: bool
    num_rows: int


def find_truths(
    model: SampledModel, x: ArrayLike, y: ArrayLike, known: ArrayLike | None
) -> list[Truth]:
    """Compute the values and predictions of each target for `plot_truth`."""
    rows, _ = canvas.checked_rows(model, x, y, known)
    shown = evenly_spaced(len(rows.x), _MAX_POINTS)
    beside = as_argument(model.spec, None if rows.noise is None else rows.noise[shown])
    levels = [0.16, 0.5, 0.84]
    found = model.predict(rows.x[shown], include_noise=True, quantiles=levels, **beside)
    by_target = np.moveaxis(np.asarray(found.columns.quantiles), -1, 0)
    is_log = "log10" in model.posterior.y_pipeline.names
    return [
        Truth(name, values, quantiles, is_log, len(rows.x))
        for name, values, quantiles in zip(model.posterior.target_names, rows.y[shown].T, by_target)
    ]


def draw_truth(axis: Axes, truth: Truth, is_off: bool = False) -> None:
    """Draw predictions against known values.

    Args:
        axis: Axes to draw on.
        truth: Known values and predictions.
        is_off: Whether to draw how far predictions are off; in decades for targets learned as log10.
    """
    values, found, name, label = truth.values, truth.quantiles, plain(truth.name), None
    if truth.is_log:
        axis.set(xscale="log", yscale="linear" if is_off else "log")
    if is_off:
        found = np.log10(found / values) if truth.is_log else found - values
        axis.axhline(0.0, color=GREY, linewidth=1, zorder=3)
    else:
        ends = [min(values.min(), found[1].min()), max(values.max(), found[1].max())]
        axis.plot(ends, ends, color=GREY, linewidth=1, zorder=3, label="prediction = truth")
        label = "median and central 68 %, noise included"
        if len(values) < truth.num_rows:
            label += f"; {len(values)} of {truth.num_rows} rows"
    low, middle, high = found
    # By rounding, a bound may pass the median, and Matplotlib refuses bars of negative length.
    bars = np.maximum([middle - low, high - middle], 0.0)
    marks: dict[str, Any] = {"fmt": "o", "markersize": 2.5, "markeredgewidth": 0, "color": BLUE}
    marks |= {"ecolor": BLUE, "elinewidth": 0.7, "alpha": 0.6, "label": label}
    axis.errorbar(values, middle, yerr=bars, **marks, rasterized=len(values) > canvas.MOST_VECTORS)
    off = "log10(pred. / true)" if truth.is_log else "pred. - true"
    canvas.add_labels(axis, f"true {name}", off if is_off else f"predicted {name}")
    if not is_off:
        canvas.add_legend(axis)


def plot_pulls(
    model: SampledModel,
    x: ArrayLike,
    y: ArrayLike,
    *,
    noise_scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    include_noise: bool = True,
) -> Figure:
    """Plot histograms of the pulls, (target - mean) / stddev, with the standard normal density.

    Pulls are computed on the scale that the network sees. With noise, they are calibrated if the
    model is, as in `evaluate`. Pulls beyond 5 are counted in the outermost bins, and the legend
    states their number.

    Args:
        model: A fitted `BayesianMLP`.
        x: Inputs [N, D].
        y: Targets [N, K] or [N], original units.
        noise_scale: Known standard deviations of the rows in the units of y, or None.
        offset: For counts: logarithms of the exposures of the rows, or None.
        include_noise: True (default): pulls of new observations. False: pulls of the function
            alone, as if the targets were its values.

    Returns:
        Figure.
    """
    known = known_of_rows(model.spec, noise_scale, offset)
    values = canvas.scored_rows(model, x, y, known, include_noise).pull
    names = model.posterior.target_names
    with canvas.styled_figure(1, len(names), (5.2, 3.8)) as (figure, axes):
        for axis, pull, name in zip(axes[0], values.T, names):
            draw_pulls(axis, pull, name)
    return figure


def draw_pulls(axis: Axes, pull: Array, name: str) -> None:
    """Draw a histogram of the pulls [N] of a target."""
    edges = np.arange(-_WIDEST, _WIDEST + 0.01, 0.5)
    grid = np.linspace(-_WIDEST, _WIDEST, 201)
    # Pulls beyond the last edge are shown in the last bin instead of being dropped.
    shown = np.clip(pull, edges[0], edges[-1] - 1e-9)
    weights = np.full(len(pull), 1.0 / (len(pull) * (edges[1] - edges[0])))
    beyond = np.count_nonzero(np.abs(pull) > _WIDEST)
    label = "these rows"
    if beyond:
        label += f" ({beyond} beyond {_WIDEST:.0f},\nin the outermost bins)"
    axis.hist(shown, edges.tolist(), weights=weights, color=BLUE, alpha=0.75, label=label)
    normal = np.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi)
    axis.plot(grid, normal, color=ORANGE, label="standard normal")
    axis.margins(y=0.5)  # room for the legend above the curve
    canvas.add_labels(axis, f"pull of {plain(name)}: (true - mean) / stddev", "density")
    title = f"mean of the pull {pull.mean():.2f}, width {pull.std():.2f}, {len(pull)} rows"
    axis.set_title(title)
    axis.legend(loc="upper left")


def plot_coverage(
    model: SampledModel,
    x: ArrayLike,
    y: ArrayLike,
    *,
    noise_scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    include_noise: bool = True,
) -> Figure:
    """Plot observed against nominal coverage: of central intervals, and beyond 1 to 5 sigma.

    The left panel shows central intervals of the predictive distribution; the band is the binomial
    standard deviation at the nominal coverage. The right panel shows the share of rows more than k
    standard deviations off, with its 68 % interval (Wilson 1927, J. Am. Stat. Assoc. 22, 209). A
    downward arrow at the level of one row means that there is no such row.

    Args:
        model: A fitted `BayesianMLP`.
        x: Inputs [N, D].
        y: Targets [N, K] or [N], original units.
        noise_scale: Known standard deviations of the rows in the units of y, or None.
        offset: For counts: logarithms of the exposures of the rows, or None.
        include_noise: True (default): coverage of new observations. False: coverage of the function
            alone, as if the targets were its values.

    Returns:
        Figure.
    """
    known = known_of_rows(model.spec, noise_scale, offset)
    scores = canvas.scored_rows(model, x, y, known, include_noise)
    names = model.posterior.target_names
    with canvas.styled_figure(1, 2, (4.4, 4.2)) as (figure, axes):
        draw_intervals(axes[0, 0], scores.pit, names)
        draw_tails(axes[0, 1], scores.pull, names)
    return figure


def draw_intervals(axis: Axes, pit: Array, names: Sequence[str]) -> None:
    """Draw the share of rows in central intervals.

    Args:
        axis: Axes to draw on.
        pit: Predictive probabilities of smaller targets [N, K].
        names: Names of the targets.
    """
    levels = np.linspace(0.05, 0.95, 19)
    off = np.abs(pit - 0.5)
    observed = np.mean(off <= 0.5 * levels[:, None, None], axis=1)  # [levels, K]
    grid = np.linspace(0.0, 1.0, 101)
    spread = np.sqrt(grid * (1 - grid) / len(pit))
    band: dict[str, Any] = {"color": LIGHT, "alpha": 0.6, "linewidth": 0}
    label = "one standard deviation of the share"
    axis.fill_between(grid, grid - spread, grid + spread, **band, label=label)
    axis.plot(grid, grid, color=GREY, linewidth=1, label="bars that are right")
    looks = canvas.line_looks(len(names))
    for look, name, shares in zip(looks, names, observed.T):
        look |= {"marker": "o", "markersize": 3.5, "linewidth": 1, "label": plain(name)}
        axis.plot(levels, shares, **look)
    axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axis.set(xlabel="nominal central interval", ylabel="observed share of rows inside")
    canvas.add_legend(axis)


def draw_tails(axis: Axes, pull: Array, names: Sequence[str]) -> None:
    """Draw the share of rows more than 1 to 5 standard deviations off, given pulls [N, K]."""
    levels = np.arange(1, 6)
    nominal = [math.erfc(k / math.sqrt(2)) for k in levels]
    marks: dict[str, Any] = {"linestyle": "none", "marker": "_", "color": GREY}
    axis.plot(levels, nominal, **marks, markersize=22, markeredgewidth=1.5)
    axis.plot([], [], **marks, markersize=12, markeredgewidth=1.5, label="normal")
    num_rows, count = pull.shape
    shares = np.mean(np.abs(pull[:, :, None]) >= levels, axis=0)  # [K, levels]
    for index, (color, name, share) in enumerate(zip(canvas.colors(count), names, shares)):
        at = levels + min(0.12, 0.8 / count) * (index - (count - 1) / 2)
        some = share > 0
        low, high = wilson_interval(share, num_rows)
        # By rounding, a share of one may exceed its upper end.
        bars = np.maximum([share - low, high - share], 0.0)[:, some]
        marks = {"fmt": "o", "color": color, "markersize": 4}
        axis.errorbar(at[some], share[some], yerr=bars, **marks, label=plain(name))
        axis.plot(at[~some], np.full(np.sum(~some), 1 / num_rows), "v", color=color, markersize=5)
    if not shares.all():
        axis.plot([], [], "v", color=GREY, markersize=5, label="no such row (at one row)")
    axis.set(xlabel="k standard deviations", ylabel="share of rows outside", yscale="log")
    axis.set(xticks=levels, xlim=(0.4, 5.6))
    canvas.add_legend(axis)


def wilson_interval(share: Array, num_rows: Array | int) -> tuple[Array, Array]:
    """Compute the 68 % Wilson interval of a true share, given the observed share in `num_rows` rows.

    The ends are the true shares from which the observed share is one standard deviation off (Wilson
    1927, J. Am. Stat. Assoc. 22, 209). They stay within 0 and 1, and for an observed share above 0
    the lower end is above 0, even with few rows.
    """
    middle = (share + 0.5 / num_rows) / (1.0 + 1.0 / num_rows)
    spread = np.sqrt(share * (1.0 - share) / num_rows + 0.25 / num_rows**2) / (1.0 + 1.0 / num_rows)
    return middle - spread, middle + spread
