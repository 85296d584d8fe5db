"""Linear coordinates in which the kernels run: theta = map(z).

Every kernel gets its preconditioner this way, so none has to know about mass matrices. The map is
constant while a kernel uses it, so its Jacobian cancels from every acceptance ratio.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["DiagonalMap", "diagonal_map", "identity_map"]


class DiagonalMap(NamedTuple):
    """theta = scale * z, elementwise.

    Attributes:
        scale: Array or tensor [C, P].
    """

    scale: object

    def forward(self, z):
        """z [C, P] -> theta [C, P]."""
        return self.scale * z

    def inverse(self, theta):
        """theta [C, P] -> z [C, P]."""
        return theta / self.scale

    def pull_back(self, gradient):
        """Gradient with respect to theta -> gradient with respect to z, both [C, P]."""
        return self.scale * gradient


def identity_map(shape, dtype):
    """The map that changes nothing."""
    return DiagonalMap(np.ones(shape, dtype))


def diagonal_map(variance, num_draws):
    """A map that gives every coordinate about unit variance.

    The log variances are shrunk towards their mean with the weight of five draws: the weights of
    one network are determined to very different degrees, and shrinking the variances themselves,
    as Stan does towards 1e-3, would hide the best determined ones.

    Args:
        variance: Sample variances [C, P] of theta over a window.
        num_draws: Length of the window.

    Returns:
        DiagonalMap in the dtype of `variance`.
    """
    log_variance = np.log(np.maximum(variance, np.finfo(variance.dtype).tiny))
    centre = log_variance.mean(axis=-1, keepdims=True)
    shrunk = (num_draws * log_variance + 5.0 * centre) / (num_draws + 5.0)
    return DiagonalMap(np.exp(0.5 * shrunk).astype(variance.dtype))
