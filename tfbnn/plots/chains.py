"""Figures of the chains: have they converged?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.diagnostics.agreement import ESS_LIMIT, RHAT_LIMIT
from tfbnn.plots.canvas import BLUE, GREEN, ORANGE, colors, line_styles, styled_figure
from tfbnn.posterior.checks import untransformed_inputs
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import evenly_spaced
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Names of more chains than this leave no room for the figure.
_MOST_NAMED = 8


def plot_traces(model: SampledModel, x_reference: ArrayLike | None = None) -> Figure:
    """Log density and three predictions of every chain, draw by draw, with their histograms.

    Chains that agree overlap; a chain that drifts or stays apart has not converged.

    Args:
        model: A fitted `BayesianMLP`.
        x_reference: Inputs [R, D]. Default: three of the reference rows saved with the model.

    Returns:
        Figure.
    """
    ensemble = model.posterior
    x = ensemble.x_reference
    if x_reference is not None:
        x = untransformed_inputs(ensemble, x_reference, "x_reference")
    x = x[evenly_spaced(len(x), 3)]
    draws = model.predict_draws(x, space="transformed")
    draws = draws.reshape(ensemble.num_chains, ensemble.num_results, len(x), -1)[..., 0]
    traces = [("log density", ensemble.sample_stats["lp"])]
    traces += [(f"f(x), point {i + 1}", draws[..., i]) for i in range(len(x))]
    grid = {"width_ratios": [4, 1], "sharey": "row"}
    with styled_figure(len(traces), 2, (4.6, 1.6), **grid) as (figure, axes):
        for (trace, histogram), (name, values) in zip(axes, traces):
            edges = np.histogram_bin_edges(values[np.isfinite(values)], 30)
            looks = zip(colors(len(values)), line_styles(len(values)))
            for number, (chain, (color, dashes)) in enumerate(zip(values, looks)):
                look: dict[str, Any] = {"color": color, "linestyle": dashes}
                style = look | {"linewidth": 0.7, "alpha": 0.8, "rasterized": True}
                trace.plot(chain, **style, label=f"chain {number}")
                histogram.hist(chain, edges, orientation="horizontal", histtype="step", **look)
            trace.set_ylabel(name)
            histogram.set_xticks([])
        if ensemble.num_chains <= _MOST_NAMED:
            names = axes[0, 0].get_legend_handles_labels()
            legend = figure.legend(*names, loc="outside upper center", ncols=4)
            for line in legend.get_lines():
                line.set_linewidth(1.5)
        else:
            axes[0, 0].set_title(f"{ensemble.num_chains} chains")
        axes[-1, 0].set_xlabel("kept draw (predictions on the scale the network sees)")
    return figure


def plot_convergence(model: SampledModel, x_reference: ArrayLike | None = None) -> Figure:
    """Histograms of R-hat and effective sample size of the predictions at reference inputs.

    Args:
        model: A fitted `BayesianMLP`.
        x_reference: Inputs [R, D]. Default: the reference rows saved with the model.

    Returns:
        Figure.
    """
    diagnosis = model.diagnose(x_reference)
    with styled_figure(1, 2, (4.2, 3.4)) as (figure, axes):
        left, right = axes[0]
        _draw_histograms(left, {"R-hat": diagnosis.rhat_function})
        _draw_limit(left, RHAT_LIMIT, f"should be below {RHAT_LIMIT}")
        left.set_xlabel("R-hat of predictions (1 is perfect)")
        sizes = {"bulk": diagnosis.ess_function, "tail": diagnosis.tail_ess_function}
        _draw_histograms(right, sizes)
        _draw_limit(right, ESS_LIMIT, f"should be above {ESS_LIMIT}")
        right.set_xlabel("effective number of draws of predictions")
        for axis in (left, right):
            axis.set_ylabel("reference outputs")
            axis.yaxis.get_major_locator().set_params(integer=True)
            # Above the axes, where it covers neither bars nor the limit.
            axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, columnspacing=1.0)
    return figure


def _draw_histograms(axis: Axes, samples: Mapping[str, Array]) -> None:
    """Histograms of what is finite of each sample, over common bins."""
    samples = {label: values[np.isfinite(values)] for label, values in samples.items()}
    pooled = np.concatenate(list(samples.values()))
    if not pooled.size:
        return
    edges = np.histogram_bin_edges(pooled, 30).tolist()
    for color, (label, values) in zip((BLUE, GREEN), samples.items()):
        axis.hist(values, edges, color=color, alpha=0.55, label=label)


def _draw_limit(axis: Axes, value: float, label: str) -> None:
    axis.axvline(value, color=ORANGE, linewidth=1.2, label=label)
