"""The compiled ADAM loop on the density that is sampled, for any number of chains at once.

Mini-batches are shuffled and drawn with NumPy, and handed to compiled code as row indices.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import all_of, padded_length
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


class Schedule(NamedTuple):
    """The learning rate: "constant", or "cosine" from its size to zero at the last step."""

    size: float
    name: str

    @classmethod
    def of(cls, settings):
        """That of a Pretraining, whose other settings decide no step: fits share a program."""
        return cls(settings.learning_rate, settings.learning_rate_schedule)

    def at(self, step, total_steps, dtype):
        """The rate of a step."""
        if self.name == "constant":
            return tf.constant(self.size, dtype)
        progress = tf.cast(step, dtype) / tf.cast(total_steps, dtype)
        return 0.5 * self.size * (1.0 + tf.cos(np.pi * progress))


class AdamControl(NamedTuple):
    """Run-time settings of one call, int32 scalars.

    Attributes:
        first: Number of the first step.
        num_looks: How often the parameters are looked at, no more than there is room for.
        steps_per_look: How many steps to make before each look.
        total: Steps of the whole optimisation, for the learning rate's schedule.
    """

    first: object
    num_looks: object
    steps_per_look: object
    total: object


@lru_cache(maxsize=32)
def make_adam_steps(spec, schedule, batch_size, most_looks, jit_compile):
    """The compiled loop (AdamState, Data, indices [steps, C, B], AdamControl) -> (AdamState, seen).

    `batch_size` is None where every step takes all rows. `seen` is theta at each look,
    [most_looks, C, P], of which as many count as looks were asked for.
    """
    potential = Potential(spec)
    # Without ntk the density has no maximum in a sampled prior scale s: it grows without bound as s
    # and its weights go to zero together. ADAM leaves these scales at their draw of the prior.
    moves = np.ones(spec.layout.num_parameters, spec.dtype)
    if not spec.is_ntk:
        moves[spec.layout.log_noise_scale.stop :] = 0.0

    def loss_gradient(theta, data, rows):
        batch, weight = data, 1.0
        if batch_size is not None:  # rows [C, B], with the chains in front: x becomes [C, D, B]
            batch = all_of(*(_of_chains(array, rows) for array in data[:3]))
            if data.weights is not None:
                batch = batch._replace(weights=tf.gather(data.weights[0], rows))
            weight = tf.cast(data.num_rows, tf.float64) / batch_size
        return -moves * potential.value_and_gradient(theta, batch, weight)[1]

    def steps(state, data, indices, control):
        def one(index, state):
            step = control.first + index
            rows = None if batch_size is None else indices[index]
            gradient = loss_gradient(state.theta, data, rows)
            rate = schedule.at(step, control.total, spec.dtype)
            return index + 1, _adam(state, gradient, step, rate)

        def look(number, state, seen):
            begin = number * control.steps_per_look
            end = begin + control.steps_per_look
            _, state = tf.while_loop(lambda index, _: index < end, one, (begin, state))
            return number + 1, state, seen.write(number, state.theta)

        theta = state.theta
        seen = tf.TensorArray(theta.dtype, size=most_looks, element_shape=theta.shape)
        start = (tf.constant(0), state, seen)
        _, state, seen = tf.while_loop(lambda number, *_: number < control.num_looks, look, start)
        return state, seen.stack()

    return compiled(steps, jit_compile=jit_compile)


def _of_chains(array, rows):
    """Rows [C, B] of an array [K, L]: [C, K, B]; None of a missing one."""
    if array is None:
        return None
    return tf.transpose(tf.gather(array, rows, axis=1), [1, 0, 2])


def _adam(state, gradient, step, learning_rate):
    count = tf.cast(step + 1, gradient.dtype)
    mean = _BETA1 * state.mean + (1.0 - _BETA1) * gradient
    square = _BETA2 * state.square + (1.0 - _BETA2) * gradient**2
    unbiased_mean = mean / (1.0 - _BETA1**count)
    unbiased_square = square / (1.0 - _BETA2**count)
    change = learning_rate * unbiased_mean / (tf.sqrt(unbiased_square) + _EPSILON)
    return AdamState(state.theta - change, mean, square)


class Batches:
    """Iterates over calls of the compiled loop: (first step, count, row indices, epochs done).

    Every chain has its own order of the rows; an epoch leaves out the N mod B rows at its end.
    """

    def __init__(
        self, num_rows, batch_size, num_chains, epochs, seed, steps_per_call, epochs_per_call
    ):
        self.num_rows, self.batch_size, self.num_chains = num_rows, batch_size, num_chains
        self.epochs = epochs
        self.steps_per_epoch = num_rows // batch_size
        self.num_steps = epochs * self.steps_per_epoch
        affordable = steps_per_call // self.steps_per_epoch
        self.epochs_per_call = max(1, min(epochs, epochs_per_call, affordable))
        self.is_full = batch_size == num_rows
        # Room for the row indices of a call, so that a few lengths serve all numbers of rows; none
        # where every step takes all rows.
        self.num_indices = 0
        if not self.is_full:
            self.num_indices = padded_length(self.epochs_per_call * self.steps_per_epoch)
        self.generators = [seeds.generator(seed, "batches", chain) for chain in range(num_chains)]

    def __iter__(self):
        for epoch in range(0, self.epochs, self.epochs_per_call):
            count = min(self.epochs_per_call, self.epochs - epoch)
            first, steps = epoch * self.steps_per_epoch, count * self.steps_per_epoch
            yield first, steps, self._indices(count), epoch + count

    def padding(self, num_chains):
        """Indices of the right shape when none are needed."""
        return tf.zeros(self._shape(num_chains), tf.int32)

    def _shape(self, num_chains):
        return [self.num_indices, num_chains, 0 if self.is_full else self.batch_size]

    def _indices(self, epochs):
        """Row indices [steps, C, B] for some epochs, zero beyond them; none for full batches."""
        indices = np.zeros(self._shape(self.num_chains), np.int32)
        if self.is_full:
            return indices
        used = self.steps_per_epoch * self.batch_size
        for chain, generator in enumerate(self.generators):
            orders = [generator.permutation(self.num_rows)[:used] for _ in range(epochs)]
            rows = np.concatenate(orders).reshape(-1, self.batch_size)
            indices[: len(rows), chain] = rows
        return indices
