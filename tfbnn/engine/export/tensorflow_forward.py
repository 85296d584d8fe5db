"""The forward pass of all networks with TensorFlow, for large batches on a GPU."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.network import network_outputs, network_tiles
from tfbnn.engine.keras.keras_network import network_of
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array
from tfbnn.system.words import without_controls

# `RewriterConfig.Toggle.OFF` of TensorFlow.
_OFF = 2
# Most numbers that a Keras model may compute at once for all rows of a call: 256 MiB in float32.
_MOST_VALUES = 2**26


def make_forward(ensemble: Any) -> Callable[[Array], Array]:
    """Return a TensorFlow version of `tfbnn.posterior.forward.network_outputs` for an ensemble.

    Returns:
        Function from transformed inputs x [n, D] to outputs [C * S, num_outputs, n], NumPy. The
        number of rows is padded to a power of two, so that few programs are compiled.
    """
    spec = ensemble.spec
    theta = tf.constant(ensemble.draws.reshape(ensemble.num_draws, -1))
    if isinstance(spec, KerasSpec):
        return lambda x: _keras_outputs(spec)(theta, tf.constant(x.T, spec.dtype))[0].numpy()
    outputs_of = _compiled_outputs(spec)

    def forward(x: Array) -> Array:
        padded = 1 << (len(x) - 1).bit_length()
        columns = np.zeros((x.shape[1], padded), spec.dtype)
        columns[:, : len(x)] = x.T
        tiles = network_tiles(spec, theta, padded)
        outputs = np.concatenate([outputs_of(tile, columns).numpy() for tile in tiles])
        return outputs[..., : len(x)]

    return forward


def check_keras_forward(spec: KerasSpec) -> None:
    """Check that the compiled program for predictions runs; eager execution may accept more.

    Raises:
        ValueError: If it cannot run, with TensorFlow's reason.
    """
    network_of(spec, spec.dtype)
    rows = tf.zeros([spec.num_inputs, 2], spec.dtype)
    with _explained(Exception):  # any error of a layer, TensorFlow or one of its kernels
        _keras_outputs(spec)(tf.zeros([1, spec.num_parameters], spec.dtype), rows)


@contextmanager
def _explained(kind: type[Exception]) -> Iterator[None]:
    """Convert errors of this kind to ValueErrors with an explanation."""
    try:
        yield
    except (ValueError, tf.errors.ResourceExhaustedError):  # no layer causes a lack of memory
        raise
    except kind as error:
        reason = " ".join(without_controls(str(error)).split())
        raise ValueError(
            "TensorFlow cannot run the program that predicts with this Keras model "
            f"({type(error).__name__}: {reason:.300}). Write the layer that it names otherwise."
        ) from error


def input_gradients(ensemble: Any, x: Array) -> tuple[Array, Array]:
    """Compute (outputs [M, n, K], their derivatives [M, n, D, K]) of M Keras networks at x [n, D]."""
    spec = ensemble.spec
    theta = tf.constant(ensemble.draws.reshape(ensemble.num_draws, -1))
    outputs, slopes = _compiled_gradients(spec)(theta, tf.constant(x.T, spec.dtype))
    by_inputs = slopes.numpy().transpose(0, 3, 2, 1).astype(float)
    return outputs.numpy().swapaxes(1, 2).astype(float), by_inputs


@lru_cache(maxsize=32)
def _compiled_gradients(spec: KerasSpec) -> Any:
    def of_network(theta: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            outputs = network_outputs(spec, theta[None], x)[0]
            each = tf.unstack(outputs)
        # Layers such as Embedding do not depend on their inputs smoothly.
        slopes = [tape.gradient(one, x, unconnected_gradients="zero") for one in each]
        return outputs, tf.stack(slopes)

    def of_networks(theta: Tensor, x: Tensor) -> Tensor:
        kinds = (theta.dtype, theta.dtype)
        return tf.map_fn(lambda one: of_network(one, x), theta, fn_output_signature=kinds)

    return _for_any_number(spec, of_networks)


@lru_cache(maxsize=32)
def _compiled_outputs(spec: NetworkSpec) -> Any:
    return compiled(partial(network_outputs, spec), jit_compile=True)


@lru_cache(maxsize=32)
def _keras_outputs(spec: KerasSpec) -> Any:
    # Networks are evaluated one after the other, so that one program serves any number of networks
    # and rows.
    return _for_any_number(spec, partial(network_outputs, spec))


def _for_any_number(spec: KerasSpec, function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of networks [M, P] and rows [D, n], without TensorFlow's remapper.

    The remapper fuses a linear layer with a following sum. For an unknown number of rows, CPUs with
    oneDNN have no kernel for this: "Fusion is not implemented: [BiasAdd,Add]" (TensorFlow 2.21).
    Only the call of a function accepts options that do not apply to the whole process.
    """
    shapes = [None, spec.num_parameters], [spec.num_inputs, None]
    signature = [tf.TensorSpec(shape, spec.dtype) for shape in shapes]
    program = compiled(function, jit_compile=False, signature=signature)
    program = program.get_concrete_function()
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.remapping = _OFF
    kinds = [one.dtype for one in tf.nest.flatten(program.structured_outputs)]

    def of_rows(theta: Tensor, x: Tensor) -> list[Tensor]:
        return tf.raw_ops.StatefulPartitionedCall(
            args=[theta, x, *program.captured_inputs],
            Tout=kinds,
            f=program,
            config_proto=config.SerializeToString(),
        )

    # Computed from the network itself, because the size in a file may be wrong.
    step = max(1, _MOST_VALUES // network_of(spec, spec.dtype).largest)

    def call(theta: Tensor, x: Tensor) -> list[Tensor]:
        starts = range(0, max(1, x.shape[1]), step)
        with _explained(tf.errors.OpError):
            tiles = [of_rows(theta, x[:, start : start + step]) for start in starts]
        return tiles[0] if len(tiles) == 1 else [tf.concat(each, -1) for each in zip(*tiles)]

    return call
