"""Export of the mean and spread of all networks, and calibrated bars, as a TensorFlow SavedModel."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.system.arrays import Array

# Largest draws x units x rows computed at once, which limits the memory.
_MOST_VALUES = 4_000_000


def write_saved_model(
    networks: Any, constants: Any, graph: Callable[..., Any], judged: Any, path: str
) -> None:
    """Write `MomentNetworks` to the folder `path`; `to_savedmodel` describes the contents.

    Args:
        networks: MomentNetworks.
        constants: BarConstants of calibrated bars, or None.
        graph: `tfbnn.posterior.onnx.moments_graph`.
        judged: Its argument.
        path: Folder.
    """
    ensemble, variable = networks.ensemble, partial(tf.Variable, trainable=False)
    names = ("mean", "stddev", *(() if constants is None else constants.names))
    # Weights are variables, because a graph must not exceed 2 GiB.
    module = tf.Module()
    module.weights = [(variable(w[..., :-1]), variable(w[..., -1:])) for w in networks.weights]
    module.draw_weights = variable(ensemble.draw_weights)
    if judged is not None:
        scored, weights, draw_weights = judged
        module.judged = [(variable(kernel), variable(bias)) for kernel, bias in weights]
        judged = scored, module.judged, draw_weights
    weights = module.weights, module.draw_weights
    outputs_of_tile = partial(graph, networks, constants, *weights, _Operations, judged)
    values_per_row = ensemble.num_draws * max(w.shape[1] for w in networks.weights)
    step = max(1, _MOST_VALUES // values_per_row)

    def moments(x: Tensor) -> dict[str, Tensor]:
        """Compute the outputs, dict name -> [N, K], of inputs [N, D], tile by tile."""
        # At least one tile, because without rows there would be nothing to concatenate.
        count = tf.maximum(1, -(-tf.shape(x)[0] // step))
        tiles = [tf.TensorArray(tf.float64, count, infer_shape=False) for _ in names]

        def one_tile(index: Tensor, *found: Any) -> tuple[Any, ...]:
            values = outputs_of_tile(x[index * step : (index + 1) * step])
            return index + 1, *(tile.write(index, values[name]) for tile, name in zip(found, names))

        _, *found = tf.while_loop(
            lambda index, *_: index < count, one_tile, [0, *tiles], parallel_iterations=1
        )
        shape = [None, ensemble.spec.num_predicted]
        return {name: tf.ensure_shape(tile.concat(), shape) for name, tile in zip(names, found)}

    signature = tf.TensorSpec([None, ensemble.spec.num_inputs], tf.float64, name="x")
    module.__call__ = compiled(moments, jit_compile=False, signature=[signature])
    tf.saved_model.save(module, path, signatures=module.__call__)


# Operations of the ONNX standard with other names in `tf.math`, and with other arguments.
_NAMES = {"And": "logical_and", "Div": "divide", "Max": "maximum", "Mul": "multiply"}
_NAMES |= {"Or": "logical_or", "Sub": "subtract"}
_OTHERS: dict[str, Callable[..., Tensor]] = {
    "Concat": lambda *parts, axis: tf.concat(parts, axis),
    "Expand": lambda x, shape: x + tf.zeros(shape, x.dtype),
    "Gather": lambda x, indices, axis: tf.gather(x, indices, axis=axis),
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
    """Replace the zeros of a shape by the sizes of x."""
    sizes = tf.shape(x)
    return [size or sizes[axis] for axis, size in enumerate(shape.tolist())]


class _Operations:
    """Operations of the ONNX standard in TensorFlow, with all floating-point inputs in one dtype."""

    def __init__(self, dtype: Any) -> None:
        self._dtype = tf.as_dtype(dtype)

    def __call__(self, kind: str, *inputs: Any, **attributes: Any) -> Tensor:
        dtype = self._dtype
        values = [tf.constant(one, dtype) if _is_float(one) else one for one in inputs]
        function = _OTHERS.get(kind) or getattr(tf.math, _NAMES.get(kind, kind.lower()))
        return function(*values, **attributes)

    def cast(self, values: Tensor) -> Tensor:
        return tf.cast(values, self._dtype)

    def activation(self, name: str, values: Tensor) -> Tensor:
        return ACTIVATIONS[name].tensorflow(tf, values)


def _is_float(value: Any) -> bool:
    """Check whether a value is a floating-point number or array, and not a tensor."""
    return not tf.is_tensor(value) and np.asarray(value).dtype.kind == "f"
