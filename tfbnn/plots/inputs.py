"""Figures of the inputs: which of them matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfbnn.plots.canvas import BLUE, styled_figure
from tfbnn.plots.units import Quantity
from tfbnn.posterior.relevance import Relevance
from tfbnn.posterior.sampled_model import SampledModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Lines of more inputs leave no room for their names.
_MAX_INPUTS = 40


def plot_relevance(model: SampledModel) -> Figure:
    """The prior scale that each input has by the posterior, the most relevant input first.

    Points are medians, bars the central 68 %; see `BayesianMLP.relevance`. Of more than 40 inputs the
    first 40 in this order are shown.

    Args:
        model: A fitted `BayesianMLP` whose prior has a scale per input, as the default one has.

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
    """Draws the scales, the largest on top."""
    order = np.argsort(-relevance.median, kind="stable")[:_MAX_INPUTS]
    middle, places = relevance.median[order], np.arange(len(order))
    bars = [middle - relevance.lower[order], relevance.upper[order] - middle]
    axis.errorbar(middle, places, xerr=np.maximum(bars, 0.0), fmt="o", color=BLUE, markersize=4)
    axis.set_yticks(places, [Quantity.of_column(relevance.names[index]).symbol for index in order])
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.grid(axis="x", alpha=0.3)
    per_unit = "" if relevance.standardized else " per unit of the input"
    axis.set_xlabel(f"scale of the input's weights{per_unit},\nmedian and central 68 %")
