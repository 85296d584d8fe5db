"""Figures of the convergence of the chains."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.diagnostics.agreement import ESS_LIMIT, RHAT_LIMIT
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.plots.canvas import GREY, Axes, Figure, line_looks, styled_figure
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.system.arrays import Array


def plot_convergence(model: SampledModel, x_reference: ArrayLike | None = None) -> Figure:
    """Plot histograms of R-hat and effective sample size of the predictions at reference inputs.

    Args:
        model: A fitted `BayesianMLP`.
        x_reference: Inputs [R, D]; default: the reference rows saved with the model.

    Returns:
        Figure.
    """
    diagnosis = model.diagnose(x_reference)
    with styled_figure(1, 2, (4.2, 3.4)) as (figure, axes):
        draw_rhats(axes[0, 0], diagnosis)
        draw_sizes(axes[0, 1], diagnosis)
    return figure


def draw_rhats(axis: Axes, diagnosis: Diagnosis) -> None:
    """Draw a histogram of R-hat over the reference outputs."""
    _draw_histograms(axis, {"R-hat": diagnosis.rhat_function}, RHAT_LIMIT, "below")
    axis.set_xlabel("R-hat of predictions (1 is perfect)")
    axis.locator_params(axis="x", nbins=5)  # numbers such as 1.0025 are long


def draw_sizes(axis: Axes, diagnosis: Diagnosis) -> None:
    """Draw histograms of the effective numbers of draws over the reference outputs."""
    sizes = {"bulk": diagnosis.ess_function, "tail": diagnosis.tail_ess_function}
    _draw_histograms(axis, sizes, ESS_LIMIT, "above")
    axis.set_xlabel("effective number of draws of predictions")


def _draw_histograms(axis: Axes, samples: Mapping[str, Array], limit: float, side: str) -> None:
    """Draw outlines of histograms with common bins of each sample's finite values, and a limit.

    Args:
        axis: Axes to draw on.
        samples: Dict label -> values.
        limit: Value that the samples should be below or above.
        side: "below" or "above".
    """
    samples = {label: values[np.isfinite(values)] for label, values in samples.items()}
    pooled = np.concatenate(list(samples.values()))
    if pooled.size:
        edges = np.histogram_bin_edges(pooled, 30).tolist()
        for look, (label, values) in zip(line_looks(len(samples)), samples.items()):
            axis.hist(values, edges, histtype="step", linewidth=1.6, label=label, **look)
    label = f"should be {side} {limit}"
    axis.axvline(limit, color=GREY, linestyle=":", linewidth=1.6, label=label)
    axis.set_ylabel("reference outputs")
    axis.locator_params(axis="y", integer=True)
    # Above the axes, the legend covers neither bars nor the limit.
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, columnspacing=1.0)
