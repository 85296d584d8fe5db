"""Normal densities made of parts, for kernels that see one part at a time."""

import numpy as np
import tensorflow as tf

from tfbnn import kernels

__all__ = ["SWEEP", "NormalParts"]

SWEEP = kernels.SMSUBU(step_size=0.1, num_batches=4)


class NormalParts:
    """N(0, I) in three dimensions, whose parts have means and curvatures of their own.

    Attributes:
        apart: By how much the parts differ in their means, in standard deviations; 0: not at all.
        bent: By how much their curvatures do.
    """

    def __init__(self, apart=0.0, bent=0.0):
        self.apart, self.bent = apart, bent

    def __call__(self, z):
        return self.log_prob(z)

    def log_prob(self, z):
        return -0.5 * tf.reduce_sum(z**2, axis=-1)

    def batch_gradients(self, num_batches):
        shift, curvature = self._parts(num_batches)
        return lambda z, index: shift[index] - curvature[index] * z

    def batch_hessians(self, num_batches):
        _, curvature = self._parts(num_batches)
        return lambda z, index: tf.tile(-tf.linalg.diag(curvature[index])[None], [len(z), 1, 1])

    def _parts(self, num_batches):
        """Gradients at zero and curvatures [num_batches, 3] both."""
        shift, curvature = np.random.default_rng(5).normal(size=(2, num_batches, 3))
        shift = self.apart * (shift - shift.mean(axis=0))
        curvature = 1.0 + self.bent * (curvature - curvature.mean(axis=0))
        return tf.constant(shift), tf.constant(curvature)
