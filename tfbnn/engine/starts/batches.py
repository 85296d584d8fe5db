"""Shuffled mini-batches, drawn with NumPy and handed to compiled code as row indices."""

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.libraries import tf


class Batches:
    """Iterates over calls of the compiled loop: (first step, count, row indices, epochs done).

    Every chain has its own order of the rows; an epoch leaves out the N mod B rows at its end.
    """

    def __init__(self, num_rows, batch_size, num_chains, epochs, seed, steps_per_call):
        self.num_rows, self.batch_size, self.num_chains = num_rows, batch_size, num_chains
        self.epochs = epochs
        self.steps_per_epoch = num_rows // batch_size
        self.num_steps = epochs * self.steps_per_epoch
        self.epochs_per_call = max(1, min(epochs, steps_per_call // self.steps_per_epoch))
        self.call_length = self.epochs_per_call * self.steps_per_epoch
        self.generators = [seeds.generator(seed, "batches", chain) for chain in range(num_chains)]

    def __iter__(self):
        for epoch in range(0, self.epochs, self.epochs_per_call):
            count = min(self.epochs_per_call, self.epochs - epoch)
            first, steps = epoch * self.steps_per_epoch, count * self.steps_per_epoch
            yield first, steps, self._indices(count), epoch + count

    def padding(self, num_chains):
        """Indices of the right shape when none are needed."""
        return tf.zeros([self._indices_length, num_chains, self.batch_size], tf.int32)

    @property
    def _full_batch(self):
        return self.batch_size == self.num_rows

    @property
    def _indices_length(self):
        return 0 if self._full_batch else self.call_length

    def _indices(self, epochs):
        """Row indices [steps, C, B] for some epochs, zero beyond them; none for full batches."""
        shape = (self._indices_length, self.num_chains, self.batch_size)
        indices = np.zeros(shape, np.int32)
        if self._full_batch:
            return indices
        used = self.steps_per_epoch * self.batch_size
        for chain, generator in enumerate(self.generators):
            orders = [generator.permutation(self.num_rows)[:used] for _ in range(epochs)]
            rows = np.concatenate(orders).reshape(-1, self.batch_size)
            indices[: len(rows), chain] = rows
        return indices
