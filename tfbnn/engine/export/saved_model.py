"""Writes mean and spread of all networks, and calibrated bars, as a TensorFlow SavedModel."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.system.arrays import Array

# Draws x units x rows computed at once, a bound on memory.
_MOST_VALUES = 4_000_000


def write_saved_model(networks: Any, constants: Any, graph: Callable[..., Any], path: str) -> None:
    """Writes `MomentNetworks` to the folder `path`; what it holds is said in `to_savedmodel`.

    Args:
        networks: MomentNetworks.
        constants: BarConstants of calibrated bars, or None.
        graph: `tfbnn.posterior.onnx.moments_graph`.
        path: Folder.
    """
    module = _Moments(networks, constants, graph)
    tf.saved_model.save(module, path, signatures=module.__call__)


class _Moments(tf.Module):  # type: ignore[misc, name-defined]  # TensorFlow has no types
    """Mean and spread over draws; the weights are variables, as a graph must not exceed 2 GiB."""

    def __init__(self, networks: Any, constants: Any, graph: Callable[..., Any]) -> None:
        super().__init__()
        self._names = ("mean", "stddev", *(() if constants is None else constants.names))
        ensemble = networks.ensemble
        self._num_predicted = ensemble.spec.num_predicted
        variable = partial(tf.Variable, trainable=False)
        self._weights = [(variable(w[..., :-1]), variable(w[..., -1:])) for w in networks.weights]
        self._draw_weights = variable(ensemble.draw_weights)
        self._outputs_of_tile = partial(
            graph, networks, constants, self._weights, self._draw_weights, _Operations
        )
        values_per_row = ensemble.num_draws * max(w.shape[1] for w in networks.weights)
        self._rows_at_once = max(1, _MOST_VALUES // values_per_row)
        signature = tf.TensorSpec([None, ensemble.spec.num_inputs], tf.float64, name="x")
        self.__call__ = compiled(self._moments, jit_compile=False, signature=[signature])

    def _moments(self, x: Tensor) -> dict[str, Tensor]:
        """Inputs [N, D] -> dict name -> [N, K], tile by tile."""
        step = self._rows_at_once
        # One tile at least, or there would be nothing to concatenate for no rows.
        count = tf.maximum(1, -(-tf.shape(x)[0] // step))
        tiles = [tf.TensorArray(tf.float64, count, infer_shape=False) for _ in self._names]

        def one_tile(index: Tensor, *found: Any) -> tuple[Any, ...]:
            values = self._outputs_of_tile(x[index * step : (index + 1) * step])
            return index + 1, *(
                tile.write(index, values[name]) for tile, name in zip(found, self._names)
            )

        _, *found = tf.while_loop(
            lambda index, *_: index < count, one_tile, [0, *tiles], parallel_iterations=1
        )
        shape = [None, self._num_predicted]
        return {
            name: tf.ensure_shape(tile.concat(), shape) for name, tile in zip(self._names, found)
        }


# Operations of the ONNX standard that `tf.math` has by another name, and those that take other arguments.
_OTHER_NAMES = {
    "And": "logical_and",
    "Div": "divide",
    "Max": "maximum",
    "Mul": "multiply",
    "Or": "logical_or",
    "Sub": "subtract",
}
_OTHERS: dict[str, Callable[..., Tensor]] = {
    "Concat": lambda *parts, axis: tf.concat(parts, axis),
    "Expand": lambda x, shape: x + tf.zeros(shape, x.dtype),
    "Gather": lambda x, place, axis: tf.gather(x, place, axis=axis),
    "MatMul": lambda x, y: tf.matmul(x, y),
    "ReduceL2": lambda x, axes: tf.norm(x, axis=axes[0], keepdims=True),
    "ReduceMax": lambda x, axes: tf.reduce_max(x, axes, keepdims=True),
    "ReduceSum": lambda x, axes: tf.reduce_sum(x, axes, keepdims=True),
    "Reshape": lambda x, shape: tf.reshape(x, _without_zeros(shape, x)),
    "Slice": lambda x, start, end, axis: tf.gather(x, tf.range(start[0], end[0]), axis=axis[0]),
    "Softmax": lambda x, axis: tf.nn.softmax(x, axis),
    "Squeeze": lambda x, axes: tf.squeeze(x, axes.tolist()),
    "Transpose": lambda x, perm: tf.transpose(x, perm),
    "Unsqueeze": lambda x, axes: tf.expand_dims(x, axes[0]),
    "Where": lambda condition, x, y: tf.where(condition, x, y),
}


def _without_zeros(shape: Array, x: Tensor) -> list[Any]:
    """A shape in which zeros stand for the sizes of x."""
    sizes = tf.shape(x)
    return [size or sizes[axis] for axis, size in enumerate(shape.tolist())]


class _Operations:
    """Compute operations of the ONNX standard; numbers among their inputs are of one dtype."""

    def __init__(self, dtype: Any) -> None:
        self._dtype = tf.as_dtype(dtype)

    def __call__(self, kind: str, *inputs: Any, **attributes: Any) -> Tensor:
        dtype = self._dtype
        values = [tf.constant(one, dtype) if _is_float(one) else one for one in inputs]
        function = _OTHERS.get(kind)
        if function is None:
            function = getattr(tf.math, _OTHER_NAMES.get(kind, kind.lower()))
        return function(*values, **attributes)

    def cast(self, values: Tensor) -> Tensor:
        return tf.cast(values, self._dtype)

    def activation(self, name: str, values: Tensor) -> Tensor:
        return ACTIVATIONS[name].tensorflow(tf, values)


def _is_float(value: Any) -> bool:
    """Return whether it is a real number, or an array of them, and no tensor."""
    return not tf.is_tensor(value) and np.asarray(value).dtype.kind == "f"
