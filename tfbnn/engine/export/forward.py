"""The forward pass of all networks with TensorFlow: for large batches where there is a GPU."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.network import network_outputs, network_tiles
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.system.arrays import Array


def make_forward(ensemble: Any) -> Callable[[Array], Array]:
    """A function that does what `tfbnn.posterior.forward.network_outputs` does for this ensemble.

    Returns:
        Function of transformed inputs x [n, D] -> outputs [C * S, num_outputs, n], NumPy. The
        number of rows is padded to a power of two, so that few programs are compiled.
    """
    spec = ensemble.spec
    theta = tf.constant(ensemble.draws.reshape(ensemble.num_draws, -1))
    if isinstance(spec, KerasSpec):
        return lambda x: _keras_outputs(spec)(theta, tf.constant(x.T, spec.dtype)).numpy()
    outputs_of = _compiled_outputs(spec)

    def forward(x: Array) -> Array:
        padded = 1 << (len(x) - 1).bit_length()
        columns = np.zeros((x.shape[1], padded), spec.dtype)
        columns[:, : len(x)] = x.T
        tiles = network_tiles(spec, theta, padded)
        outputs = np.concatenate([outputs_of(tile, columns).numpy() for tile in tiles])
        return outputs[..., : len(x)]

    return forward


def input_gradients(ensemble: Any, x: Array) -> tuple[Array, Array]:
    """(Outputs [M, n, K], their derivatives [M, n, D, K]) of M Keras networks at x [n, D]."""
    spec = ensemble.spec
    theta = tf.constant(ensemble.draws.reshape(ensemble.num_draws, -1))
    outputs, slopes = _compiled_gradients(spec)(theta, tf.constant(x.T, spec.dtype))
    by_inputs = slopes.numpy().transpose(0, 3, 2, 1).astype(float)
    return outputs.numpy().swapaxes(1, 2).astype(float), by_inputs


@lru_cache(maxsize=32)
def _compiled_gradients(spec):
    def of_network(theta, x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            outputs = network_outputs(spec, theta[None], x)[0]
            each = tf.unstack(outputs)
        return outputs, tf.stack([tape.gradient(one, x) for one in each])

    def of_networks(theta, x):
        kinds = (theta.dtype, theta.dtype)
        return tf.map_fn(lambda one: of_network(one, x), theta, fn_output_signature=kinds)

    return compiled(of_networks, jit_compile=False, signature=_any_number(spec))


@lru_cache(maxsize=32)
def _compiled_outputs(spec):
    return compiled(partial(network_outputs, spec), jit_compile=True)


@lru_cache(maxsize=32)
def _keras_outputs(spec):
    # Networks follow each other, so that there is one program for all numbers of them and of rows.
    return compiled(partial(network_outputs, spec), jit_compile=False, signature=_any_number(spec))


def _any_number(spec):
    """Of networks [M, P], and of rows [D, n]."""
    shapes = [None, spec.num_parameters], [spec.num_inputs, None]
    return [tf.TensorSpec(shape, spec.dtype) for shape in shapes]
