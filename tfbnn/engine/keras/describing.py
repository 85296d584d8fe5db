"""Description of a Keras model: its layers, its architecture as text, its variables by path.

Keras counts layers per process: the same code creates "dense" and, when run again, "dense_1". Names
that Keras generated are therefore renumbered for each model. Otherwise these would be two different
models that could not use each other's draws.
"""

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import keras
from tfbnn.spec.keras_config import check_config, dicts_in
from tfbnn.spec.keras_priors import VariableFacts
from tfbnn.spec.own_classes import is_of_keras, remember
from tfbnn.system.arrays import Array


class Call(NamedTuple):
    """One call of a layer, with its input and its output."""

    layer: Any
    received: Any
    given: Any


_recording = threading.RLock()


@contextmanager
def recorded_calls(layers: list[Any]) -> Iterator[list[Call]]:
    """Record calls of these layers in a list while the context is active.

    This works for every kind of model, while only some have a graph of their layers. One thread at a
    time records, as others would record the calls of its network.
    """
    calls: list[Call] = []

    def recording(layer: Any) -> Any:
        original = layer.call

        def call(*arguments: Any, **named: Any) -> Any:
            given = original(*arguments, **named)
            calls.append(Call(layer, arguments[0] if arguments else None, given))
            return given

        return call

    with _recording:
        try:
            for layer in layers:
                layer.__dict__["call"] = recording(layer)
            yield calls
        finally:
            for layer in layers:
                layer.__dict__.pop("call", None)


def all_layers(model: Any) -> list[Any]:
    """Return the model and all nested layers; Keras has no public method for this."""
    return model._flatten_layers(include_self=True, recursive=True)


def inner_layers(model: Any) -> list[Any]:
    """Return all nested layers of a model."""
    return all_layers(model)[1:]


def innermost_first(layers: Iterable[Any]) -> list[Any]:
    """Sort the layers that contain a variable: its own layer first, then those around it."""

    def size(layer: Any) -> tuple[int, int]:
        return len(layer.variables), len(all_layers(layer))

    return sorted(layers, key=size)


def bare_operations(layers: Iterable[Any]) -> list[Any]:
    """Return operations in the graphs of models that are not layers: `keras.ops`, sums of outputs."""
    graphs = [layer.operations for layer in layers if hasattr(layer, "operations")]
    return [one for graph in graphs for one in graph if not isinstance(one, keras.layers.Layer)]


def is_seed(variable: Any) -> bool:
    """Check whether a variable is the state of a random generator, which has no effect here."""
    return bool(variable.path.endswith("seed_generator_state"))


def counted_anew(named: list[tuple[str, str]]) -> dict[str, str]:
    """Renumber names that Keras generated, as if the process had created no other model.

    Args:
        named: (class name, name) of all layers and operations.

    Returns:
        Dict from each name that changes to its new name.
    """
    # In the order of creation, which differs from the order in a graph or in a model.
    given = dict.fromkeys(
        sorted((name for kind, name in named if _is_given(kind, name)), key=_number)
    )
    taken = {name for _, name in named} - given.keys()
    numbers: dict[str, Iterator[int]] = {}
    anew = {}
    for name in given:
        start = stem(name)
        candidates = (
            f"{start}_{number}" if number else start
            for number in numbers.setdefault(start, count())
        )
        anew[name] = next(one for one in candidates if one not in taken)
    return {name: other for name, other in anew.items() if other != name}


def named_in(config: Any) -> Iterator[tuple[str, str]]:
    """Yield (class name, name) of all layers and operations in a config, in its order."""
    for entry in dicts_in(config):
        inner = entry.get("config")
        if isinstance(inner, dict) and {"class_name", "inbound_nodes"} <= entry.keys():
            yield str(entry["class_name"]), str(inner.get("name"))


def renamed(config: Any, names: Mapping[str, str]) -> Any:
    """Replace names everywhere in a config."""
    if isinstance(config, dict):
        return {key: renamed(value, names) for key, value in config.items()}
    if isinstance(config, list):
        return [renamed(value, names) for value in config]
    return names.get(config, config) if isinstance(config, str) else config


def renamed_path(path: str, names: Mapping[str, str]) -> str:
    """Replace the names of layers in the path of a variable, "layer/name"."""
    return "/".join(names.get(part, part) for part in path.split("/"))


def _is_given(kind: str, name: str) -> bool:
    """Check whether Keras generated a name from the name of a class, such as "max_pooling2d_3"."""
    return stem(name).replace("_", "") == kind.replace("_", "").lower()


def _number(name: str) -> int:
    """Return the number that Keras appended to a name; 0 for the first, which has none."""
    return int(name[len(stem(name)) + 1 :] or 0)


def stem(name: str) -> str:
    """Return a name without the number that Keras appended."""
    return re.sub(r"_\d+$", "", name)


# Names, without underscores, of Keras layers, functions and operations with a discontinuous
# gradient.
_KINKED = re.compile(
    "relu|selu|hard|(?<!tanh)shrink|sparsesigmoid|threshold|(?<!soft)max|min|abs|ceil|clip|floor|round|"
    "(?<!soft)sign|where"
)


class Described(NamedTuple):
    """Description of a Keras model.

    Attributes:
        title: Kind and name of the model.
        architecture: Config as JSON text, with the new names of `names`.
        names: Renumbered names of layers, see `tfbnn.engine.keras.describing`.
        input_shape: Shape of one row.
        variables: VariableFacts of all variables that hold weights or state.
        values: Values of these variables.
        is_smooth: Whether all layers have a continuous gradient.
        custom: Import names of the classes that are not part of Keras.
    """

    title: str
    architecture: str
    names: dict[str, str]
    input_shape: tuple[int, ...]
    variables: list[VariableFacts]
    values: list[Array]
    is_smooth: bool
    custom: tuple[str, ...]


def describe(model: Any, input_shape: tuple[int, ...] | None = None) -> Described:
    """Describe a model.

    Args:
        model: Model that passes `check_keras_model`.
        input_shape: Shape of one row, if the model does not define it.

    Raises:
        ValueError: For a config that files may not contain, and for rows without a definite shape.
    """
    layers = all_layers(model)
    kinds = {type(layer) for layer in layers if not is_of_keras(type(layer))}
    config = _config(model)
    check_config(config, kinds)
    named = [(type(layer).__name__, layer.name) for layer in layers]
    names = counted_anew([*named, *named_in(config)])
    variables = list(_variables(model, layers))
    values = [np.asarray(model.variables[one.index].numpy()) for one in variables]
    return Described(
        title=f"{type(model).__name__} {names.get(model.name, model.name)!r}",
        architecture=json.dumps(renamed(config, names), sort_keys=True),
        names=names,
        input_shape=_row_shape(model) if input_shape is None else input_shape,
        variables=variables,
        values=values,
        is_smooth=not any(map(is_kinked, [*layers, *bare_operations(layers)])),
        custom=remember(kinds),
    )


def _config(model: Any) -> Any:
    try:
        config = keras.saving.serialize_keras_object(model)
        config.pop("compile_config", None)  # settings of training are not needed
        return json.loads(json.dumps(config))
    except (NotImplementedError, TypeError) as error:
        raise ValueError(
            f"Keras must be able to rebuild keras_model from its config, which fails for {model.name!r}: "
            f"{error} Define get_config in its class, and from_config if it takes layers."
        ) from error


def _row_shape(model: Any) -> tuple[int, ...]:
    """Return the shape of one row of inputs."""
    shape = getattr(model, "input_shape", None)  # subclassed models have no such attribute
    if shape is not None and shape[0] is not None:
        raise ValueError(
            f"keras_model must take any number of rows, received {model.name!r}, which takes batches of "
            f"{shape[0]}. Begin it with keras.Input(shape), and build RNNs with stateful=False."
        )
    if shape is None:
        shape = (model.get_build_config() or {}).get("input_shape")
    if not isinstance(shape, (list, tuple)) or len(shape) < 2 or None in shape[1:]:
        raise ValueError(
            f"keras_model must have inputs of a definite shape, received {model.name!r} with {shape}. "
            "Begin it with keras.Input(shape) without None, or pass input_shape=, that of one row."
        )
    return tuple(int(size) for size in shape[1:])


def _variables(model: Any, layers: list[Any]) -> Iterator[VariableFacts]:
    """Yield the facts of all variables except seeds, which have no effect in predictions."""
    around: dict[int, list[Any]] = {}
    for layer in layers[1:]:
        for variable in layer.variables:
            around.setdefault(id(variable), []).append(layer)
    trainable = {id(variable) for variable in model.trainable_variables}
    for index, variable in enumerate(model.variables):
        if is_seed(variable):
            continue
        own = innermost_first(around.get(id(variable), [model]))
        yield VariableFacts(
            path=variable.path,
            index=index,
            layers=tuple(type(layer).__name__ for layer in own),
            shape=tuple(map(int, variable.shape)),
            fan_in=fan_in(own[0], variable),
            is_trainable=id(variable) in trainable,
            of_normalisation=type(own[0]).__name__.endswith("Normalization"),
        )


def fan_in(layer: Any, variable: Any) -> int:
    """Return the number of inputs that a unit sums with these weights; 1 if they are not a kernel."""
    shape, kind, name = tuple(variable.shape), type(layer).__name__, variable.name
    if len(shape) < 2 or name in ("bias", "embeddings") or kind == "PReLU":
        return 1
    if kind.endswith("Normalization"):
        return 1
    if kind == "EinsumDense":
        inputs_and_kernel, _, outputs = layer.equation.partition("->")
        kernel = inputs_and_kernel.partition(",")[2]
        return prod(size for letter, size in zip(kernel, shape) if letter not in outputs)
    if name.startswith("depthwise") or kind.startswith("DepthwiseConv"):
        return prod(shape[:-2])
    if kind.endswith("Transpose"):
        return prod(shape[:-2]) * shape[-1]
    return prod(shape[:-1])


def is_kinked(layer: Any) -> bool:
    """Check by name whether a Keras layer or operation has a discontinuous gradient."""
    functions = (getattr(layer, key, None) for key in ("activation", "function"))
    names = [getattr(one, "__name__", "") for one in functions]
    if is_of_keras(type(layer)):
        names.append(type(layer).__name__)
    return any(_KINKED.search(name.lower().replace("_", "")) for name in names)
