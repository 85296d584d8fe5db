"""Figures of planes of weights: how the posterior lies in two of them at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfbnn.plots.canvas import line_looks, styled_figure
from tfbnn.plots.chains import Trace, find_weights, name_chains
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import evenly_spaced
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NUM_SHOWN = 4
_NUM_POINTS = 90
# Beyond the draws, in bandwidths.
_MARGIN = 3.0


def plot_weight_planes(model: SampledModel, weights: Sequence[int] | None = None) -> Figure:
    """Densities of pairs of weights over all draws, and of each weight chain by chain.

    Gaussian kernel estimates, whose widths are Scott's, n^(-1/6) of the standard deviation for a pair and
    n^(-1/5) for one weight: modes that are closer than that become one. Islands in a plane are modes
    between which chains have passed, or, where chains have bumps of their own on the diagonal, have
    not. Hidden units that can be exchanged make copies of each mode that represent the same function.
    Thesis of Ask 2022, Fig 8.5.

    Args:
        model: A fitted `BayesianMLP`.
        weights: Places in theta. Default: four, evenly over all.

    Returns:
        Figure.

    Raises:
        ValueError: For fewer than two places, places that theta does not have, and weights that
            are the same in all draws.
    """
    ensemble = model.posterior
    places = evenly_spaced(ensemble.draws.shape[-1], _NUM_SHOWN) if weights is None else weights
    found = find_weights(ensemble, list(places))
    if len(found) < 2:
        raise ValueError(f"weights must be at least two places in theta, received {list(places)}.")
    for trace in found:
        if not np.ptp(trace.values) > 0.0:
            raise ValueError(
                f"{trace.label} is the same in all draws, and has no density. Leave it out."
            )
    count = len(found)
    with styled_figure(count, count, (2.1, 2.0), sharex="col") as (figure, axes):
        for (row, column), axis in np.ndenumerate(axes):
            if row == column:
                _draw_densities(axis, found[row].values)
            elif row > column:
                _draw_plane(axis, found[column], found[row])
            else:
                axis.set_axis_off()
        for number, trace in enumerate(found):
            axes[-1, number].set_xlabel(trace.label)
            if number:
                axes[number, 0].set_ylabel(trace.label)
        name_chains(figure, axes[0, 0], ensemble.num_chains)
    return figure


def _draw_densities(axis: Axes, values: Array) -> None:
    """Draws the density of each chain of values [C, S]."""
    grid = _grid(values, _bandwidth(values, 1))
    for number, (chain, look) in enumerate(zip(values, line_looks(len(values)))):
        width = _bandwidth(chain, 1)
        if width > 0.0:
            density = _kernels(grid, chain, width).mean(axis=1)
            axis.plot(grid, density, **look, label=f"chain {number}")
    axis.set_yticks([])
    axis.set_ylim(bottom=0.0)


def _draw_plane(axis: Axes, across: Trace, up: Trace) -> None:
    """Draws the density of two weights over all draws."""
    x, y, density = plane_density(across.values.ravel(), up.values.ravel())
    axis.pcolormesh(x, y, density.T, cmap="Blues", shading="auto", rasterized=True)


def plane_density(across: Array, up: Array) -> tuple[Array, Array, Array]:
    """Gaussian kernel estimate of the density of two quantities [n] each.

    Returns:
        x [G], y [G], density [G, G] by x and y.
    """
    widths = _bandwidth(across, 2), _bandwidth(up, 2)
    x, y = _grid(across, widths[0]), _grid(up, widths[1])
    # A product of two kernels for each draw: their sum is a product of matrices.
    density = _kernels(x, across, widths[0]) @ _kernels(y, up, widths[1]).T / across.size
    return x, y, density


def _kernels(grid: Array, values: Array, width: float) -> Array:
    """Densities at a grid [G] of normal distributions around values [n]: [G, n]."""
    scaled = (grid[:, None] - values) / width
    heights: Array = np.exp(-0.5 * scaled**2) / (width * np.sqrt(2.0 * np.pi))
    return heights


def _bandwidth(values: Array, num_dimensions: int) -> float:
    """Scott's rule."""
    return float(values.std() * values.size ** (-1.0 / (num_dimensions + 4)))


def _grid(values: Array, width: float) -> Array:
    margin = _MARGIN * width
    return np.linspace(values.min() - margin, values.max() + margin, _NUM_POINTS)
