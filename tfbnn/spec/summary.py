"""Summary table of a model, in the style of Keras."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from numbers import Real

from tfbnn.spec.choices import Choice
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.model_spec import ModelSpec, perceptron
from tfbnn.spec.network_parts import Place
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import WeightPrior
from tfbnn.spec.settings_json import said

_LAYER_HEADER = ("Layer", "Kernel", "Activation", "Parameters", "Kernel prior", "Bias prior")
_VARIABLE_HEADER = ("Variable", "Shape", "Parameters", "Prior")


def weight_table(spec: NetworkSpec) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return (header, rows of cells): one row per layer, or per variable of a Keras model."""
    if isinstance(spec, KerasSpec):
        sampled = {one.index: _prior_text(one.prior) for one in spec.sampled}
        variables: list[Place] = [*spec.sampled, *spec.frozen]
        return _VARIABLE_HEADER, [
            (one.path, str(list(one.shape)), str(prod(one.shape)), sampled.get(one.index, "fixed"))
            for one in sorted(variables, key=lambda one: one.index)
        ]
    spec = spec if isinstance(spec, InfiniteSpec) else perceptron(spec, "summary")
    activations, sizes = [*spec.activations, "identity"], [str(size) for size in spec.layer_sizes]
    return _LAYER_HEADER, [
        (
            f"dense_{number}",
            f"[{inputs}, {units}]",
            activation,
            str(bias.weights.stop - kernel.weights.start or "integrated out"),
            _prior_text(prior.kernel),
            _prior_text(prior.bias),
        )
        for number, ((kernel, bias), (inputs, units), activation, prior) in enumerate(
            zip(spec.layout.layers, pairwise(sizes), activations, spec.priors), start=1
        )
    ]


def spec_facts(spec: NetworkSpec) -> list[tuple[str, str]]:
    """Return (label, text) pairs of the settings that belong to no single layer."""
    layout, power = spec.layout, spec.likelihood_power
    targets = "auto, which the targets decide" if spec.is_open else _names(spec.y_transform)
    hyper = layout.num_parameters - layout.num_weights
    return [
        ("Parameters", f"{layout.num_parameters} (weights {layout.num_weights}, scales {hyper})"),
        ("Likelihood", f"{spec.likelihood}{'' if power == 1.0 else f' to the power {power:g}'}"),
        *([("Prior", f"and {spec.earlier!r}")] if spec.earlier else ()),
        ("Parameterization", f"{spec.parameterization}, {spec.dtype}"),
        ("Transforms", f"x {_names(spec.x_transform)}, y {targets}"),
    ]


def describe_model(spec: NetworkSpec, choices: Sequence[Choice]) -> str:
    """Return the summary as text: the table of layers or variables, then everything else.

    Args:
        spec: NetworkSpec.
        choices: Choices that are known to have been made.
    """
    header, rows = weight_table(spec)
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in (header, *rows)
    ]
    rule = "-" * max(map(len, lines))
    title = f"BayesianModel of {spec.architecture_text}"
    if isinstance(spec, (ModelSpec, InfiniteSpec)):
        title = f"BayesianMLP {spec.architecture_text.split(',')[0]}"
    return "\n".join(
        [
            title,
            rule,
            lines[0],
            rule,
            *lines[1:],
            rule,
            *(f"{label}: {text}" for label, text in spec_facts(spec)),
            *([f"Chosen: {', '.join(choice.what for choice in choices)}"] if choices else ()),
        ]
    )


def _prior_text(prior: WeightPrior) -> str:
    if prior.scale_prior is not None:
        return f"{type(prior).__name__}({type(prior.scale_prior).__name__})"
    values = ", ".join(
        f"{value:g}" if isinstance(value, Real) else str(value) for value in said(prior).values()
    )
    return f"{type(prior).__name__}({values})"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
