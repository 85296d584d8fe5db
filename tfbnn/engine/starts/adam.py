"""The compiled ADAM loop on the density that is sampled, for any number of chains at once.

Mini-batches are drawn with NumPy and passed to the compiled code as row indices.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data, all_of, padded_length
from tfbnn.engine.density.potential import Potential
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

# Kingma and Ba 2015, arXiv:1412.6980, algorithm 1.
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """Parameters and moment estimates, [C, P] each."""

    theta: Tensor
    mean: Tensor
    square: Tensor


def start_adam(theta: Array) -> AdamState:
    """Return the state before the first step, at theta [C, P]."""
    zeros = tf.zeros(theta.shape, theta.dtype)
    return AdamState(tf.constant(theta), zeros, zeros)


@lru_cache(maxsize=32)
def make_adam_steps(
    spec: NetworkSpec,
    learning_rate: float,
    schedule: str,
    batch_size: int | None,
    most_looks: int,
    jit_compile: bool,
) -> Any:
    """Return the compiled loop (AdamState, Data, indices [steps, C, B], control) -> (AdamState, seen).

    `control` is int32 [4]: the index of the first step, the number of checks (at most
    `most_looks`), the number of steps before each check, and the number of steps of the whole
    optimisation. The learning rate is constant, or decays to zero at the last step with the
    schedule "cosine". `batch_size` is None if every step uses all rows. `seen` holds theta at each
    check, [most_looks, C, P]; only its first entries, one per requested check, are filled.
    """
    potential = Potential(spec)
    # Without ntk the density has no maximum in a sampled prior scale s: it grows without bound as s
    # and its weights go to zero together. ADAM keeps these scales at their prior draw.
    moves = np.ones(spec.layout.num_parameters, spec.dtype)
    if not spec.is_ntk:
        moves[spec.layout.log_noise_scale.stop :] = 0.0

    def rate_at(step: Tensor, total_steps: Tensor) -> Tensor:
        if schedule == "constant":
            return tf.constant(learning_rate, spec.dtype)
        progress = tf.cast(step, spec.dtype) / tf.cast(total_steps, spec.dtype)
        return 0.5 * learning_rate * (1.0 + tf.cos(np.pi * progress))

    def loss_gradient(theta: Tensor, data: Data, rows: Tensor | None) -> Tensor:
        batch, weight = data, 1.0
        if batch_size is not None:  # the chain axis of rows [C, B] comes first: x is [C, D, B]
            batch = all_of(*(_of_chains(array, rows) for array in data[:3]))
            if data.weights is not None:
                batch = batch._replace(weights=tf.gather(data.weights[0], rows))
            weight = tf.cast(data.num_rows, tf.float64) / batch_size
        return -moves * potential.value_and_gradient(theta, batch, weight)[1]

    def steps(
        state: AdamState, data: Data, indices: Tensor, control: Tensor
    ) -> tuple[AdamState, Tensor]:
        first, num_looks, steps_per_look, total_steps = tf.unstack(control)

        def one(index: Tensor, state: AdamState) -> tuple[Tensor, AdamState]:
            step = first + index
            rows = None if batch_size is None else indices[index]
            gradient = loss_gradient(state.theta, data, rows)
            return index + 1, _adam(state, gradient, step, rate_at(step, total_steps))

        def look(number: Tensor, state: AdamState, seen: Any) -> tuple[Tensor, AdamState, Any]:
            begin = number * steps_per_look
            end = begin + steps_per_look
            _, state = tf.while_loop(lambda index, _: index < end, one, (begin, state))
            return number + 1, state, seen.write(number, state.theta)

        theta = state.theta
        seen = tf.TensorArray(theta.dtype, size=most_looks, element_shape=theta.shape)
        start = (tf.constant(0), state, seen)
        _, state, seen = tf.while_loop(lambda number, *_: number < num_looks, look, start)
        return state, seen.stack()

    return compiled(steps, jit_compile=jit_compile)


def _of_chains(array: Tensor | None, rows: Tensor) -> Tensor | None:
    """Gather rows [C, B] of an array [K, L] into [C, K, B]; return None if there is no array."""
    if array is None:
        return None
    return tf.transpose(tf.gather(array, rows, axis=1), [1, 0, 2])


def _adam(state: AdamState, gradient: Tensor, step: Tensor, learning_rate: Tensor) -> AdamState:
    count = tf.cast(step + 1, gradient.dtype)
    mean = _BETA1 * state.mean + (1.0 - _BETA1) * gradient
    square = _BETA2 * state.square + (1.0 - _BETA2) * gradient**2
    unbiased_mean = mean / (1.0 - _BETA1**count)
    unbiased_square = square / (1.0 - _BETA2**count)
    change = learning_rate * unbiased_mean / (tf.sqrt(unbiased_square) + _EPSILON)
    return AdamState(state.theta - change, mean, square)


def row_indices(
    num_rows: int, batch_size: int, num_chains: int, seed: int, epochs: Sequence[int]
) -> Iterator[Array]:
    """Yield the row indices int32 [steps, C, B] of each call; `epochs` are the epochs of each call.

    The first call must have the most epochs. Every chain has its own order of the rows, and an
    epoch drops the last N mod B rows of it. The arrays are padded, so that a few lengths serve all
    numbers of rows. They are empty if every step uses all rows.
    """
    steps_per_epoch, is_full = num_rows // batch_size, batch_size == num_rows
    room = 0 if is_full else padded_length(epochs[0] * steps_per_epoch)
    generators = [seeds.generator(seed, "batches", chain) for chain in range(num_chains)]
    for count in epochs:
        indices = np.zeros((room, num_chains, 0 if is_full else batch_size), np.int32)
        for chain, generator in enumerate([] if is_full else generators):
            used = steps_per_epoch * batch_size
            orders = [generator.permutation(num_rows)[:used] for _ in range(count)]
            rows = np.concatenate(orders).reshape(-1, batch_size)
            indices[: len(rows), chain] = rows
        yield indices
