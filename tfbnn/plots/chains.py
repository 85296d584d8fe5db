"""Figures of the chains: have they converged?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.data.validation import check_integer
from tfbnn.diagnostics.agreement import ESS_LIMIT, RHAT_LIMIT
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.plots import canvas
from tfbnn.plots.canvas import BLUE, GREY, ORANGE, line_looks, plain, styled_figure
from tfbnn.plots.units import Quantity, input_quantities, target_quantities
from tfbnn.posterior.checks import untransformed_inputs
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import evenly_spaced
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Names of more chains than this leave no room for the figure.
_MOST_NAMED = 8
# Of more draws of a chain a line shows every second, third, ..., as it would hide the others.
_MOST_DRAWS = 500
_MOST_POINTS = 3
# Of the inputs that the title of a trace names.
_MOST_CHARACTERS = 45


class Trace(NamedTuple):
    """One number of every draw.

    Attributes:
        label: What it is.
        where: At which inputs, "" where that does not apply.
        values: [C, S].
    """

    label: str
    where: str
    values: Array


def plot_traces(
    model: SampledModel,
    x_reference: ArrayLike | None = None,
    *,
    weights: Sequence[int] | None = None,
) -> Figure:
    """Log density and three predictions of every chain, draw by draw, with their histograms.

    Chains that agree overlap; a chain that drifts or stays apart has not converged. Predictions are
    on the scale the network sees, of classes logits. Lines of more than 500 draws per chain show
    every second one, every third one and so on; histograms count all.

    Args:
        model: A fitted `BayesianMLP`.
        x_reference: Inputs [R, D]. Default: three of the reference rows saved with the model.
        weights: Places in theta, whose draws are shown in place of the predictions. Chains that
            agree in the function may differ there, as hidden units can be exchanged.

    Returns:
        Figure.

    Raises:
        ValueError: For places that theta does not have, and where both are given.
    """
    traces = find_traces(model, x_reference, weights)
    grid = {"width_ratios": [4, 1], "sharey": "row"}
    with styled_figure(len(traces), 2, (4.6, 1.75), **grid) as (figure, axes):
        draw_traces(axes, traces)
    return figure


def find_traces(
    model: SampledModel,
    x_reference: ArrayLike | None = None,
    weights: Sequence[int] | None = None,
) -> list[Trace]:
    """The log density, and the first target's predictions at three inputs or the weights asked for."""
    density = Trace("log density", "", model.posterior.sample_stats["lp"])
    if weights is None:
        return [density, *_predictions(model, x_reference)]
    if x_reference is not None:
        raise ValueError(
            "x_reference is of predictions, and weights takes their place: give one of them."
        )
    return [density, *find_weights(model.posterior, weights)]


def _predictions(model: SampledModel, x_reference: ArrayLike | None) -> list[Trace]:
    ensemble = model.posterior
    x = ensemble.x_reference
    if x_reference is not None:
        x = untransformed_inputs(ensemble, x_reference, "x_reference")
    x = x[evenly_spaced(len(x), _MOST_POINTS)]
    draws = model.predict_draws(x, space="transformed")
    draws = draws.reshape(ensemble.num_chains, ensemble.num_results, len(x), -1)[..., 0]
    inputs, label = input_quantities(ensemble), _prediction_label(ensemble)
    scale = "transformed, " if ensemble.y_pipeline.steps else ""
    return [
        Trace(label, f"{scale}at {_place(inputs, row)}", draws[..., i]) for i, row in enumerate(x)
    ]


def find_weights(ensemble: Ensemble, weights: Sequence[int]) -> list[Trace]:
    """Entries of theta.

    Raises:
        TypeError, ValueError: For what is no place in theta, or none at all.
    """
    size = ensemble.draws.shape[-1]
    places = [check_integer("weights", place, minimum=0) for place in weights]
    if not places or max(places) >= size:
        raise ValueError(
            f"weights must be places in theta, which has {size} of them, 0 to {size - 1}, received "
            f"{places}."
        )
    name = ensemble.spec.parameter_name
    return [Trace(plain(name(place)), "", ensemble.draws[..., place]) for place in places]


def _prediction_label(ensemble: Ensemble) -> str:
    if ensemble.spec.has_classes:
        return "logit"
    return target_quantities(ensemble)[0].symbol if ensemble.spec.num_targets > 1 else "f(x)"


def _place(inputs: Sequence[Quantity], row: Array) -> str:
    """Where a row of inputs [D] is, in words that a title has room for."""
    named = [quantity.value(value) for quantity, value in zip(inputs, row)]
    # Places of the ends of the names in the text that they would make.
    ends = np.cumsum([len(name) + len(", ") for name in named])
    count = max(1, int(np.count_nonzero(ends <= _MOST_CHARACTERS)))
    more = len(named) - count
    return ", ".join(named[:count]) + (f" and {more} more" if more else "")


def draw_traces(axes: Array, traces: Sequence[Trace]) -> None:
    """Draws traces on axes [traces, 2], the histograms on the right."""
    num_chains, num_draws = traces[0].values.shape
    every = -(-num_draws // _MOST_DRAWS)
    shown = np.arange(0, num_draws, every)
    for (trace, histogram), found in zip(axes, traces):
        values = found.values
        edges = np.histogram_bin_edges(values[np.isfinite(values)], 30)
        for number, (chain, look) in enumerate(zip(values, line_looks(num_chains))):
            # Lines of many chains are an image in vector graphics, which would be too large.
            style = look | {"linewidth": 0.9, "alpha": 0.8, "rasterized": num_chains > _MOST_NAMED}
            trace.plot(shown, chain[shown], **style, label=f"chain {number}")
            histogram.hist(chain, edges, orientation="horizontal", histtype="step", **look)
        trace.set_ylabel(found.label)
        trace.set_title(found.where, loc="left", fontsize="small")
        histogram.set_xticks([])
        trace.tick_params(labelbottom=trace is axes[-1, 0])
    name_chains(axes[0, 0].figure, axes[0, 0], num_chains)
    rest = "" if every == 1 else f", one of {every} shown"
    axes[-1, 0].set_xlabel(f"kept draw{rest}")
    axes[-1, 1].set_xlabel("all draws")


def name_chains(figure: Figure, axis: Axes, num_chains: int) -> None:
    """A legend of the lines of a panel for the whole figure, or how many there are in its title."""
    if num_chains > _MOST_NAMED:
        axis.set_title(f"{num_chains} chains")
        return
    names = axis.get_legend_handles_labels()
    legend = figure.legend(*names, loc="outside upper center", ncols=4)
    for line in legend.get_lines():
        line.set_linewidth(1.5)


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
        draw_rhats(axes[0, 0], diagnosis)
        draw_sizes(axes[0, 1], diagnosis)
    return figure


def draw_rhats(axis: Axes, diagnosis: Diagnosis) -> None:
    """Draws how R-hat is distributed over the reference outputs."""
    _draw_histograms(axis, {"R-hat": diagnosis.rhat_function})
    _finish(axis, RHAT_LIMIT, f"should be below {RHAT_LIMIT}")
    axis.set_xlabel("R-hat of predictions (1 is perfect)")
    axis.locator_params(axis="x", nbins=5)  # numbers such as 1.0025 are long


def draw_sizes(axis: Axes, diagnosis: Diagnosis) -> None:
    """Draws how the effective numbers of draws are."""
    sizes = {"bulk": diagnosis.ess_function, "tail": diagnosis.tail_ess_function}
    _draw_histograms(axis, sizes)
    _finish(axis, ESS_LIMIT, f"should be above {ESS_LIMIT}")
    axis.set_xlabel("effective number of draws of predictions")


def _draw_histograms(axis: Axes, samples: Mapping[str, Array]) -> None:
    """Outlines of histograms of what is finite of each sample, over common bins."""
    samples = {label: values[np.isfinite(values)] for label, values in samples.items()}
    pooled = np.concatenate(list(samples.values()))
    if not pooled.size:
        return
    edges = np.histogram_bin_edges(pooled, 30).tolist()
    looks = ((BLUE, "-"), (ORANGE, "--"))
    for (color, dashes), (label, values) in zip(looks, samples.items()):
        look: dict[str, Any] = {"color": color, "linestyle": dashes, "linewidth": 1.6}
        axis.hist(values, edges, histtype="step", label=label, **look)


def _finish(axis: Axes, limit: float, label: str) -> None:
    axis.axvline(limit, color=GREY, linestyle=":", linewidth=1.6, label=label)
    axis.set_ylabel("reference outputs")
    canvas.count_in_whole_numbers(axis)
    # Above the axes, where it covers neither bars nor the limit.
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, columnspacing=1.0)
