"""Builds Keras models again out of their architecture, in either precision, and calls them purely."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tfbnn.engine.basis.libraries import Tensor, keras
from tfbnn.system.arrays import Array

# Keras keeps the default precision in a place that is one for all threads.
_lock = threading.RLock()
_FLOATS = ("float32", "float64")


@contextmanager
def precision(dtype: str) -> Iterator[None]:
    """While active, layers that are built, and constants that they make, have this dtype."""
    with _lock:
        floats, policy = keras.config.floatx(), keras.config.dtype_policy()
        keras.config.set_floatx(dtype)
        keras.config.set_dtype_policy(dtype)
        try:
            yield
        finally:
            keras.config.set_floatx(floats)
            keras.config.set_dtype_policy(policy)


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
    with precision(dtype):
        row = keras.ops.zeros((1, *input_shape), dtype)
        model = _deserialised(architecture, layer_classes, dtype, row)
        for index, value in values.items():
            if index >= len(model.variables) or tuple(model.variables[index].shape) != value.shape:
                raise ValueError("the variables are not those of the Keras model's architecture")
            model.variables[index].assign(value)
    return model


def outline(
    architecture: str, input_shape: Sequence[int], layer_classes: Sequence[type], dtype: str
) -> Any:
    """The model with variables that have shapes and no memory, however large; arguments as of `build`.

    To be called in a thread that builds nothing afterwards: Keras would make up for the values there.

    Raises:
        ValueError: When Keras cannot build it.
    """
    with precision(dtype), keras.StatelessScope(initialize_variables=False):
        row = keras.KerasTensor((1, *input_shape), dtype)
        return _deserialised(architecture, layer_classes, dtype, row)


def _deserialised(architecture: str, layer_classes: Sequence[type], dtype: str, row: Any) -> Any:
    classes = {kind.__name__: kind for kind in layer_classes}
    config = _in_dtype(json.loads(architecture), dtype)
    try:
        model = keras.saving.deserialize_keras_object(
            config, custom_objects=classes, safe_mode=True
        )
        if not model.built:
            model(row)
    except Exception as error:  # whatever Keras, or a class of the user's, says
        raise ValueError(
            f"Keras cannot build the model out of its config ({type(error).__name__}: {error})."
        ) from error
    return model


def call(model: Any, values: Mapping[int, Tensor], x: Tensor, dtype: str) -> Tensor:
    """Outputs [n, K] at rows x [n, *input_shape], of the model with these values of variables.

    A pure function: the model's own variables stay as they are. Dropout and noise are off.
    """
    with precision(dtype):
        mapping = [(model.variables[index], value) for index, value in values.items()]
        with keras.StatelessScope(state_mapping=mapping):
            return model(x, training=False)


def state_after(model: Any, x: Tensor, dtype: str) -> list[Tensor]:
    """What a prediction would make of the variables that are not trained."""
    with precision(dtype), keras.StatelessScope() as scope:
        model(x, training=False)
    found = [scope.get_current_value(variable) for variable in model.non_trainable_variables]
    return [
        variable.value if value is None else value
        for variable, value in zip(model.non_trainable_variables, found)
    ]


def _in_dtype(config: Any, dtype: str) -> Any:
    """A config whose layers have this precision where they have one."""
    if isinstance(config, list):
        return [_in_dtype(value, dtype) for value in config]
    if not isinstance(config, dict):
        return config
    if config.get("class_name") == "DTypePolicy":
        return {**config, "config": {"name": dtype}}
    return {
        key: dtype if key == "dtype" and value in _FLOATS else _in_dtype(value, dtype)
        for key, value in config.items()
    }
