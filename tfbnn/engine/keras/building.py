"""Builds Keras models again out of their architecture, in either precision, and calls them purely."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from math import prod
from typing import Any, NamedTuple

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, keras, tf
from tfbnn.engine.keras.refusals import all_layers
from tfbnn.spec.own.layers import is_of_keras
from tfbnn.system.arrays import Array

_lock = threading.RLock()
_FLOATS = ("float32", "float64")


@contextmanager
def precision(dtype: str, own_layers: bool) -> Iterator[None]:
    """While active, layers that are built in this thread have this dtype.

    Keras' own layers make constants in their own dtype. Those of a user may make them in the default,
    `floatx`, which Keras keeps for all threads: for them alone it is changed.
    """
    policy = keras.config.dtype_policy()  # of this thread
    keras.config.set_dtype_policy(dtype)
    try:
        with _floatx(dtype) if own_layers else nullcontext():
            yield
    finally:
        keras.config.set_dtype_policy(policy)


@contextmanager
def _floatx(dtype: str) -> Iterator[None]:
    with _lock:
        floats = keras.config.floatx()
        keras.config.set_floatx(dtype)
        try:
            yield
        finally:
            keras.config.set_floatx(floats)


def build(
    architecture: str,
    input_shape: Sequence[int],
    layer_classes: Sequence[type],
    dtype: str,
    values: Mapping[int, Array],
) -> Any:
    """The model in this dtype.

    Args:
        architecture: Its config, JSON text, which `check_config` has let pass.
        input_shape: Of one row.
        layer_classes: Those that are not Keras' own.
        dtype: "float32" or "float64".
        values: Of variables, by their places among all.

    Raises:
        ValueError: When Keras cannot build it, or its variables have other shapes.
    """
    with precision(dtype, bool(layer_classes)):
        row = keras.ops.zeros((1, *input_shape), dtype)
        model = _deserialised(architecture, layer_classes, dtype, row)
        for index, value in values.items():
            if index >= len(model.variables) or tuple(model.variables[index].shape) != value.shape:
                raise ValueError("the variables are not those of the Keras model's architecture")
            model.variables[index].assign(value)
        for layer in all_layers(model):
            if isinstance(layer, keras.layers.Normalization):
                layer.finalize_state()  # it computes with constants that it makes of its variables
    return model


class Outline(NamedTuple):
    """A model without memory.

    Attributes:
        model: Its variables have shapes and no values, however large they are.
        largest: The most numbers that it computes of a row at once, variables aside.
    """

    model: Any
    largest: int


def outline(architecture: str, input_shape: Sequence[int], dtype: str) -> Outline:
    """The outline of a model of Keras' own layers; arguments as of `build`.

    To be called in a thread that builds nothing afterwards: Keras would make up for the values there.

    Raises:
        ValueError: When Keras cannot build it.
    """
    with precision(dtype, False), keras.StatelessScope(initialize_variables=False):
        row = keras.KerasTensor((1, *input_shape), dtype)
        model = _deserialised(architecture, (), dtype, row)
        with _named_as_its_fault():
            signature = [tf.TensorSpec(row.shape, dtype)]
            traced = compiled(
                lambda x: model(x, training=False), jit_compile=False, signature=signature
            ).get_concrete_function()
    # Initialisers make some of them transposed, such as Orthogonal.
    variables = {tuple(sorted(one.shape)) for one in model.variables}
    tensors = [one for operation in traced.graph.get_operations() for one in operation.outputs]
    shapes = [tuple(one.shape) for one in tensors if one.shape.rank is not None]
    sizes = (prod(size or 1 for size in s) for s in shapes if tuple(sorted(s)) not in variables)
    return Outline(model, max(sizes))


@contextmanager
def _named_as_its_fault() -> Iterator[None]:
    """Whatever Keras, or a class of the user's, raises, as a ValueError."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"Keras cannot build the model out of its config ({type(error).__name__}: {error})."
        ) from error


def _deserialised(architecture: str, layer_classes: Sequence[type], dtype: str, row: Any) -> Any:
    classes = {kind.__name__: kind for kind in layer_classes}
    config = _to_be_built(json.loads(architecture), dtype, classes)
    with _named_as_its_fault():
        model = keras.saving.deserialize_keras_object(
            config, custom_objects=classes, safe_mode=True
        )
        if not model.built:
            model(row)
    return model


def call(model: Any, values: Mapping[int, Tensor], x: Tensor, dtype: str) -> Tensor:
    """Outputs [n, K] at rows x [n, *input_shape], of the model with these values of variables.

    A pure function: the model's own variables stay as they are. Dropout and noise are off.
    """
    with precision(dtype, has_own_layers(model)):
        mapping = [(model.variables[index], value) for index, value in values.items()]
        with keras.StatelessScope(state_mapping=mapping):
            return model(x, training=False)


def has_own_layers(model: Any) -> bool:
    """Whether a layer of the model, or it itself, is of a class of the user's."""
    return not all(is_of_keras(type(layer)) for layer in all_layers(model))


def state_after(model: Any, x: Tensor, dtype: str) -> list[Tensor]:
    """What a prediction would make of the variables that are not trained."""
    with precision(dtype, has_own_layers(model)), keras.StatelessScope() as scope:
        model(x, training=False)
    found = [scope.get_current_value(variable) for variable in model.non_trainable_variables]
    return [
        variable.value if value is None else value
        for variable, value in zip(model.non_trainable_variables, found)
    ]


def _to_be_built(config: Any, dtype: str, classes: Mapping[str, type]) -> Any:
    """A config whose layers have this precision where they have one.

    The user's classes go by their names, whatever they are registered by: older Keras imports the
    module of what it finds by neither.
    """
    if isinstance(config, list):
        return [_to_be_built(value, dtype, classes) for value in config]
    if not isinstance(config, dict):
        return config
    name = config.get("class_name")
    if name == "DTypePolicy":
        return {**config, "config": {"name": dtype}}
    if name in classes:
        config = {**config, "registered_name": name}
    return {
        key: dtype if key == "dtype" and value in _FLOATS else _to_be_built(value, dtype, classes)
        for key, value in config.items()
    }
