"""The compiled ADAM loop on the density that is sampled, for any number of chains at once."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.potential import Potential

# Kingma and Ba 2015, arXiv:1412.6980, algorithm 1.
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """Parameters and moment estimates, [C, P] each."""

    theta: object
    mean: object
    square: object


def start_adam(theta):
    """The state before the first step, at theta [C, P]."""
    zeros = tf.zeros(theta.shape, theta.dtype)
    return AdamState(tf.constant(theta), zeros, zeros)


@lru_cache(maxsize=32)
def make_adam_steps(spec, settings, num_rows, batch_size, total_steps, jit_compile):
    """The compiled loop (AdamState, Data, indices [steps, C, B], first, count) -> AdamState."""
    potential = Potential(spec)
    full_batch = batch_size == num_rows
    # Without ntk the density has no maximum in a sampled prior scale s: it grows without bound as s
    # and its weights go to zero together. ADAM leaves these scales at their draw of the prior.
    moves = np.ones(spec.layout.num_parameters, spec.dtype)
    if not spec.is_ntk:
        moves[spec.layout.log_noise_scale.stop :] = 0.0

    def loss_gradient(theta, data, rows):
        batch = data if full_batch else _take(data, rows)
        with tf.GradientTape() as tape:
            tape.watch(theta)
            loss = -potential.log_prob(theta, batch, num_rows / batch_size)
        return moves * tape.gradient(loss, theta)

    def learning_rate(step):
        if settings.learning_rate_schedule == "constant":
            return tf.constant(settings.learning_rate, spec.dtype)
        progress = tf.cast(step, spec.dtype) / total_steps
        return 0.5 * settings.learning_rate * (1.0 + tf.cos(np.pi * progress))

    def steps(state, data, indices, first, count):
        def one(index, state):
            step = first + index
            rows = None if full_batch else indices[index]
            return index + 1, _adam(
                state, loss_gradient(state.theta, data, rows), step, learning_rate(step)
            )

        _, state = tf.while_loop(lambda index, _: index < count, one, (tf.constant(0), state))
        return state

    return compiled(steps, jit_compile=jit_compile)


def _adam(state, gradient, step, learning_rate):
    count = tf.cast(step + 1, gradient.dtype)
    mean = _BETA1 * state.mean + (1.0 - _BETA1) * gradient
    square = _BETA2 * state.square + (1.0 - _BETA2) * gradient**2
    unbiased_mean = mean / (1.0 - _BETA1**count)
    unbiased_square = square / (1.0 - _BETA2**count)
    change = learning_rate * unbiased_mean / (tf.sqrt(unbiased_square) + _EPSILON)
    return AdamState(state.theta - change, mean, square)


def _take(data, rows):
    """Rows [C, B] of the data, with the chains in front: x becomes [C, D, B]."""

    return data.map(lambda array: tf.transpose(tf.gather(array, rows, axis=1), [1, 0, 2]))
