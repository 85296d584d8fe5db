"""Figures of how fast chains move: their running means and their autocorrelations."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.data.validation import check_integer
from tfbnn.diagnostics.statistics import THINNING_CORRELATION, autocorrelation
from tfbnn.plots.canvas import GREY, line_looks, styled_figure
from tfbnn.plots.chains import Trace, find_traces, name_chains
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of a running mean; more cannot be seen.
_MOST_POINTS = 500
# Where the default of max_lag stops looking for chains to forget, as a share of their draws.
_LARGEST_SHARE = 0.5
# Characters in a line of a panel's title.
_TITLE = 52


def plot_running_means(
    model: SampledModel,
    x_reference: ArrayLike | None = None,
    *,
    weights: Sequence[int] | None = None,
) -> Figure:
    """Mean of all draws up to each one, chain by chain, of what `plot_traces` shows.

    Chains that agree come together; one that keeps its distance, or still climbs at the end, has
    not converged. The grey band is the mean of all draws plus and minus one standard deviation of
    them. Papamarkou et al. 2019 (arXiv:1910.06539), Fig 5.

    Args:
        model: A fitted `BayesianMLP`.
        x_reference: Inputs [R, D]. Default: three of the reference rows saved with the model.
        weights: Places in theta, whose draws are shown in place of the predictions.

    Returns:
        Figure.

    Raises:
        ValueError: For places that theta does not have, and where both are given.
    """
    traces = find_traces(model, x_reference, weights)
    with _panels(traces, "draws so far") as (figure, axes):
        for axis, trace in zip(axes, traces):
            _draw_running_means(axis, trace.values)
    return figure


def plot_autocorrelation(
    model: SampledModel,
    x_reference: ArrayLike | None = None,
    *,
    weights: Sequence[int] | None = None,
    max_lag: int | None = None,
) -> Figure:
    """Autocorrelation of every chain by lag, of what `plot_traces` shows.

    Draws that are far apart and still correlated are few in effect. The dotted line is 0.1, below
    which `recommended_thinning` takes draws for as good as independent. A chain that stands still has
    no line.

    Args:
        model: A fitted `BayesianMLP`.
        x_reference: Inputs [R, D]. Default: three of the reference rows saved with the model.
        weights: Places in theta, whose draws are shown in place of the predictions.
        max_lag: Largest lag, in kept draws, at most their number less one. Default: twice the lag at
            which every chain has come below 0.1, at most half of the draws.

    Returns:
        Figure.

    Raises:
        ValueError: For places that theta does not have, where both are given, and for a max_lag that
            is out of range.
    """
    traces = find_traces(model, x_reference, weights)
    longest = traces[0].values.shape[1] - 1
    if max_lag is not None and check_integer("max_lag", max_lag, minimum=1) > longest:
        raise ValueError(
            f"max_lag must be at most {longest}, as chains have {longest + 1} draws, received {max_lag}."
        )
    found = [autocorrelation(trace.values, max_lag) for trace in traces]
    shown = _enough_lags(found) if max_lag is None else max_lag
    with _panels(traces, "lag in kept draws") as (figure, axes):
        for axis, correlations in zip(axes, found):
            for line, look in zip(correlations, _looks(len(correlations))):
                axis.plot(np.arange(shown + 1), line[: shown + 1], **look)
            axis.axhline(0.0, color=GREY, linewidth=0.8)
            axis.axhline(THINNING_CORRELATION, color=GREY, linestyle=":", linewidth=1.2)
            axis.set_ylim(top=1.05)
    return figure


def _enough_lags(found: Sequence[Array]) -> int:
    """Twice the first lag at which all chains are below the limit, within half of the draws."""
    num_lags = len(found[0][0])
    most = max(1, min(num_lags - 1, int(_LARGEST_SHARE * num_lags)))
    # Chains that stand still have nothing to forget.
    slowest = np.max([np.nan_to_num(each, nan=-1.0).max(axis=0) for each in found], axis=0)
    forgotten = slowest < THINNING_CORRELATION
    return min(most, 2 * int(np.argmax(forgotten))) if forgotten.any() else most


def _draw_running_means(axis: Axes, values: Array) -> None:
    """Draws those of values [C, S], at places that are even on the logarithmic axis."""
    num_chains, num_draws = values.shape
    counts = np.arange(1, num_draws + 1)
    shown = np.unique(np.geomspace(1, num_draws, min(num_draws, _MOST_POINTS)).astype(int)) - 1
    means = np.cumsum(values, axis=1) / counts
    centre, spread = values.mean(), values.std()
    axis.axhspan(centre - spread, centre + spread, color=GREY, alpha=0.15, linewidth=0)
    for line, look in zip(means, _looks(num_chains)):
        axis.plot(counts[shown], line[shown], **look)
    axis.set_xscale("log")


def _looks(num_chains: int) -> list[dict[str, Any]]:
    """How lines of chains look, and what they are called."""
    return [
        look | {"linewidth": 1.2, "label": f"chain {number}"}
        for number, look in enumerate(line_looks(num_chains))
    ]


@contextmanager
def _panels(traces: Sequence[Trace], label: str) -> Iterator[tuple[Figure, Array]]:
    """Yields a figure and its axes, two in a row, one for each trace; then names what they show."""
    with styled_figure(-(-len(traces) // 2), 2, (4.4, 2.3), sharex=True) as (figure, grid):
        axes, left_over = np.split(grid.ravel(), [len(traces)])
        yield figure, axes
        for axis, trace in zip(axes, traces):
            axis.set_ylabel(trace.label)
            axis.set_title(textwrap.fill(trace.where, _TITLE), loc="left", fontsize="small")
        for axis in left_over:
            axis.set_axis_off()
        for axis in axes[-2:]:
            axis.set_xlabel(label)
            axis.tick_params(labelbottom=True)
        name_chains(figure, axes[0], len(traces[0].values))
