"""What a kernel is given to sample."""

import tensorflow as tf

from tfbnn.engine.support import support

__all__ = ["Target"]


class Target:
    """The log density as a function of preconditioned coordinates z [C, P] -> [C].

    A kernel that needs to know more than this function asks for it here.
    """

    def __init__(self, potential, data, linear_map, reference):
        """
        Args:
            potential: The model's Potential.
            data: Data.
            linear_map: theta = linear_map.forward(z).
            reference: Log density [C], float64, subtracted before the rounding to the dtype of z.
        """
        self._potential, self._data = potential, data
        self._linear_map, self._reference = linear_map, reference

    def __call__(self, z):
        log_prob = self._potential.log_prob(self._linear_map.forward(z), self._data)
        return tf.cast(log_prob - self._reference, z.dtype)

    def box(self):
        """Lower and upper limits of z, float64 [C, P] each; needs coordinates that are scaled only."""
        scale = tf.cast(self._linear_map.scale, tf.float64)
        low, high = support(self._potential.spec)
        return low / scale, high / scale
