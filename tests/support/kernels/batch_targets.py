"""Normal densities made of parts, for kernels that see one part at a time."""

from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from tfbnn import kernels

__all__ = ["SWEEP", "NormalParts"]

SWEEP = kernels.SMSUBU(step_size=0.1, num_batches=4, control_variates="hessian")


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

    def parts(self, num_batches):
        """Parts with these gradients at zero and curvatures [num_batches, 3] both."""
        shift, curvature = np.random.default_rng(5).normal(size=(2, num_batches, 3))
        shift = tf.constant(self.apart * (shift - shift.mean(axis=0)))
        curvature = tf.constant(1.0 + self.bent * (curvature - curvature.mean(axis=0)))
        return SimpleNamespace(
            gradient=lambda z, i: shift[i] - curvature[i] * z,
            hessian=lambda z, i: tf.tile(-tf.linalg.diag(curvature[i])[None], [len(z), 1, 1]),
        )
