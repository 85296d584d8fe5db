"""The draws as named variables of layers and scales, with the coordinates of their dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from tfbnn.data.labels import label_array
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.keras_parts import SampledVariable
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.model_spec import perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

# The first two dimensions of whatever there is one of per draw.
SAMPLE = ("chain", "draw")


class Variable(NamedTuple):
    """A variable of ArviZ data.

    Attributes:
        dims: Names of all its dimensions.
        values: Of that many dimensions.
        description: What it is, in words.
    """

    dims: tuple[str, ...]
    values: Array
    description: str


Variables = dict[str, Variable]


def parameter_variables(ensemble: Ensemble) -> Variables:
    """Scales as positive numbers, then kernels and biases layer by layer, then theta as it is.

    The latter two are views of the draws, which takes no memory.
    """
    what = "all parameters in the coordinates they are sampled in, scales as their logarithms"
    theta = Variable((*SAMPLE, "param"), ensemble.draws, what)
    return dict(_scales(ensemble)) | dict(_weights(ensemble)) | {"theta": theta}


def coordinates(ensemble: Ensemble) -> dict[str, Array]:
    """Of every dimension of the variables: names where the model knows some, else numbers."""
    sides = _names_of_sides(ensemble)
    return sides | {"param": np.array(list(_parameter_names(ensemble, sides)))}


def layer_sides(ensemble: Ensemble) -> tuple[str, ...]:
    """Names of the dimensions between the layers, from the inputs to the outputs."""
    spec = perceptron(ensemble.spec, "to_arviz")
    hidden = [f"dense_{number}_unit" for number in range(1, len(spec.layer_sizes) - 1)]
    last = prediction_side(ensemble) if spec.layer_sizes[-1] == spec.num_predicted else "output"
    return ("feature", *hidden, last)


def prediction_side(ensemble: Ensemble) -> str:
    """Name of the dimension of a prediction's columns: "target", or "class" where one has several."""
    return "target" if ensemble.spec.num_predicted == ensemble.spec.num_targets else "class"


def _names_of_sides(ensemble: Ensemble) -> dict[str, Array]:
    spec = ensemble.spec
    common = {
        "feature": np.array(ensemble.input_names),
        "target": np.array(ensemble.target_names),
        "noise": np.arange(spec.layout.num_noise),
    }
    if isinstance(spec, KerasSpec):
        axes = [side for one in spec.sampled for side in zip(_axes(one), one.shape)]
        return common | {name: np.arange(size) for name, size in axes}
    sizes, sides = perceptron(spec, "to_arviz").layer_sizes, layer_sides(ensemble)
    targets, last = ensemble.target_names, np.arange(sizes[-1])
    if sides[-1] == "class":
        last = label_array(ensemble.classes or ())
    elif sides[-1] == "output":  # the first are of the targets, the others make their noise
        further = range(len(targets), sizes[-1])
        last = np.array([*targets, *(f"output {number + 1}" for number in further)])
    return {
        **{name: np.arange(size) for name, size in zip(sides[1:-1], sizes[1:-1])},
        sides[-1]: last,
        **common,
    }


def _weights(ensemble: Ensemble) -> Iterator[tuple[str, Variable]]:
    if isinstance(ensemble.spec, KerasSpec):
        yield from _keras_weights(ensemble.spec, ensemble.draws)
        return
    spec, sides = perceptron(ensemble.spec, "to_arviz"), layer_sides(ensemble)
    layers = spec.layout.kernels_and_biases(ensemble.draws)
    note = _note(spec)
    for index, (kernel, bias) in enumerate(layers):
        name, dims = f"dense_{index + 1}", (*SAMPLE, *sides[index : index + 2])
        yield f"{name}_kernel", Variable(dims, kernel, f"weights of layer {index + 1}{note}")
        dims = (*SAMPLE, sides[index + 1])
        yield f"{name}_bias", Variable(dims, bias, f"biases of layer {index + 1}{note}")


def _keras_weights(spec: KerasSpec, draws: Array) -> Iterator[tuple[str, Variable]]:
    for one, slot in spec.slots:
        values = draws[..., slot.weights].reshape(*draws.shape[:2], *one.shape)
        yield _name(one), Variable((*SAMPLE, *_axes(one)), values, f"{one.path}{_note(spec)}")


def _name(variable: SampledVariable) -> str:
    """Of a variable of a Keras model."""
    return variable.path.replace("/", "_")


def _axes(variable: SampledVariable) -> list[str]:
    """Names of its dimensions."""
    return [f"{_name(variable)}_axis_{axis}" for axis in range(len(variable.shape))]


def _note(spec: NetworkSpec) -> str:
    return ", which the network multiplies with prior scales and a width" if spec.is_ntk else ""


def _group_names(spec: NetworkSpec) -> list[str]:
    """Names of the weights of every prior."""
    if isinstance(spec, KerasSpec):
        return [_name(one) for one in spec.sampled]
    layers = range(1, len(perceptron(spec, "to_arviz").priors) + 1)
    return [f"dense_{layer}_{kind}" for layer in layers for kind in ("kernel", "bias")]


def _scales(ensemble: Ensemble) -> Iterator[tuple[str, Variable]]:
    layout, theta = ensemble.spec.layout, ensemble.draws
    if layout.num_noise:
        side = "target" if layout.num_noise == ensemble.spec.num_targets else "noise"
        what = "standard deviation of the noise, after the transform of the targets"
        values = _positive(theta[..., layout.log_noise_scale])
        yield "noise_scale", Variable((*SAMPLE, side), values, what)
    names = _group_names(ensemble.spec)
    for group, (prior, _, place) in zip(names, ensemble.spec.weight_groups()):
        if place.stop == place.start:
            continue
        name = f"{group}_scale"
        values, what = _positive(theta[..., place]), "sampled scale of a prior"
        if prior.per_input:
            yield name, Variable((*SAMPLE, "feature"), values, f"{what}, one per input")
        else:
            yield name, Variable(SAMPLE, values[..., 0], what)


def _positive(logarithms: Array) -> Array:
    values: Array = np.exp(logarithms.astype(np.float64))
    return values


def _parameter_names(ensemble: Ensemble, sides: dict[str, Array]) -> Iterator[str]:
    """Of the entries of theta, by the variables that they are in: "dense_1_kernel[mass, 0]"."""
    named = (("", _weights(ensemble)), ("log ", _scales(ensemble)))  # in the order of theta
    for prefix, variables in named:
        for name, variable in variables:
            for entry in product(*(map(str, sides[side]) for side in variable.dims[2:])):
                yield f"{prefix}{name}[{', '.join(entry)}]" if entry else f"{prefix}{name}"
