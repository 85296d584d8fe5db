"""Figures of how often error bars hold what they promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.plots import canvas
from tfbnn.plots.canvas import GREY, LIGHT
from tfbnn.plots.intervals import wilson_interval
from tfbnn.plots.units import Quantity, target_quantities
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_coverage(
    model: SampledModel,
    x: ArrayLike,
    y: ArrayLike,
    *,
    noise_scale: ArrayLike | None = None,
    include_noise: bool = True,
) -> Figure:
    """Observed against nominal coverage: of central intervals, and beyond 1 to 5 sigma.

    Left, central intervals of the predictive distribution; the band is the binomial standard
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
    scores = canvas.scored_rows(model, x, y, noise_scale, include_noise)
    quantities = target_quantities(model.posterior)
    with canvas.styled_figure(1, 2, (4.4, 4.2)) as (figure, axes):
        draw_intervals(axes[0, 0], scores.pit, quantities)
        draw_tails(axes[0, 1], scores.pull, quantities)
    return figure


def draw_intervals(axis: Axes, pit: Array, quantities: Sequence[Quantity]) -> None:
    """Draws the share of rows in central intervals.

    Args:
        axis: Where.
        pit: Predictive probabilities of smaller targets [N, K].
        quantities: The targets.
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
    looks = canvas.line_looks(len(quantities))
    for look, quantity, shares in zip(looks, quantities, observed.T):
        look |= {"marker": "o", "markersize": 3.5, "linewidth": 1, "label": quantity.symbol}
        axis.plot(levels, shares, **look)
    axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axis.set(xlabel="nominal central interval", ylabel="observed share of rows inside")
    canvas.add_legend(axis)


def draw_tails(axis: Axes, pull: Array, quantities: Sequence[Quantity]) -> None:
    """Draws the share of rows more than 1 to 5 standard deviations off, of pulls [N, K]."""
    levels = np.arange(1, 6)
    nominal = [math.erfc(k / math.sqrt(2)) for k in levels]
    marks: dict[str, Any] = {"linestyle": "none", "marker": "_", "color": GREY}
    axis.plot(levels, nominal, **marks, markersize=22, markeredgewidth=1.5)
    axis.plot([], [], **marks, markersize=12, markeredgewidth=1.5, label="normal")
    num_rows, count = pull.shape
    has_none = False
    for index, (color, quantity) in enumerate(zip(canvas.colors(count), quantities)):
        share = np.mean(np.abs(pull[:, index, None]) >= levels, axis=0)
        at = levels + 0.12 * (index - (count - 1) / 2)
        some = share > 0
        low, high = wilson_interval(share, num_rows)
        # A share of one may pass its upper end by rounding.
        bars = np.maximum([share - low, high - share], 0.0)[:, some]
        marks = {"fmt": "o", "color": color, "markersize": 4}
        axis.errorbar(at[some], share[some], yerr=bars, **marks, label=quantity.symbol)
        axis.plot(at[~some], np.full(np.sum(~some), 1 / num_rows), "v", color=color, markersize=5)
        has_none |= not some.all()
    if has_none:
        axis.plot([], [], "v", color=GREY, markersize=5, label="no such row (at one row)")
    axis.set_yscale("log")
    axis.set(xlabel="k standard deviations", ylabel="share of rows outside")
    axis.set_xticks(levels)
    axis.set_xlim(0.4, 5.6)
    canvas.add_legend(axis)
