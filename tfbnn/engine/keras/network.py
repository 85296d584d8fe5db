"""The network that a `KerasSpec` describes, as a function of the values of its variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.keras.building import build, call, outline
from tfbnn.engine.keras.calls import inner_layers, innermost_first, recorded_calls
from tfbnn.engine.keras.variables import Place, check_variables
from tfbnn.spec.keras_parts import FrozenVariable
from tfbnn.spec.keras_spec import KerasSpec

# 128 MiB in float32: what asks for more is no file of ours.
MOST_AT_ONCE = 2**25
# Values of sampled variables, by their places among all of the model's.
Values = Mapping[int, Tensor]


class KerasNetwork:
    """A model that was built again, in one precision; nobody assigns its variables any more.

    Attributes:
        model: The Keras model.
        dtype: Its precision.
        input_shape: Of one row.
        largest: The most numbers that it computes of a row at once; 1 of layers of one's own.
    """

    def __init__(self, model: Any, dtype: str, input_shape: tuple[int, ...], largest: int) -> None:
        self.model, self.dtype, self.input_shape = model, dtype, input_shape
        self.largest = largest

    def outputs(self, values: Values, x: Tensor) -> Tensor:
        """Outputs [K, n] at transformed inputs x [D, n]."""
        return tf.transpose(call(self.model, values, self.rows(x), self.dtype))

    def features(self, values: Values, x: Tensor, kernel: int) -> Tensor:
        """What the layer whose kernel is this variable receives [units, n]: of one that is called once."""
        layer = self.layer_of(kernel)
        with recorded_calls([layer]) as calls:
            call(self.model, values, self.rows(x), self.dtype)
        return tf.transpose(calls[0].received)

    def layer_of(self, index: int) -> Any:
        """The layer inside the model that a variable belongs to."""
        variable = self.model.variables[index]
        around = [
            layer
            for layer in inner_layers(self.model)
            if any(one is variable for one in layer.variables)
        ]
        return innermost_first(around)[0]

    def rows(self, x: Tensor) -> Tensor:
        """Inputs [D, n] as the model takes them [n, *input_shape]."""
        return tf.reshape(tf.transpose(x), [-1, *self.input_shape])


def network_of(spec: KerasSpec, dtype: str) -> KerasNetwork:
    """The network of a spec in one precision; one for all specs of the same network.

    Raises:
        ValueError: When Keras cannot build it, or its variables are not those of the spec.
    """
    shape = spec.facts.input_shape
    sampled = tuple(Place(one.path, one.index, one.shape) for one in spec.sampled)
    return built(shape, spec.architecture, sampled, spec.frozen, spec.layer_classes, dtype)


@lru_cache(maxsize=32)
def built(
    input_shape: tuple[int, ...],
    architecture: str,
    sampled: tuple[Place, ...],
    frozen: tuple[FrozenVariable, ...],
    layer_classes: tuple[type, ...],
    dtype: str,
) -> KerasNetwork:
    """The network of a spec that has these."""
    values = {one.index: one.array for one in frozen}
    places = (*sampled, *(Place(one.path, one.index, one.shape) for one in frozen))
    largest = 1
    if not layer_classes:  # those of a user need not know what to do without values
        without_memory, largest = _in_a_thread(outline, architecture, input_shape, dtype)
        check_variables(without_memory, architecture, places)
        if largest > MOST_AT_ONCE:
            raise ValueError(
                f"a Keras model must compute at most {MOST_AT_ONCE} numbers of a row at once, found "
                f"one that computes {largest}"
            )
    model = _in_a_thread(build, architecture, input_shape, layer_classes, dtype, values)
    check_variables(model, architecture, places)
    return KerasNetwork(model, dtype, input_shape, largest)


def _in_a_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """In one of its own: this one may be tracing a program, in which no variables can be made."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()
