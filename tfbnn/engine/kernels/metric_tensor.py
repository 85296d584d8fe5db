"""Metric tensors: positive definite matrices that depend on the position, factorised once per point.

All float64. A matrix that is not finite gives a metric whose log determinant is NaN, so that a
proposal there is rejected; its factors are those of the identity, because a factorisation that meets
a NaN stops the program (TensorFlow) or the other chains of the batch (XLA).
"""

from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import tf

# Below this, x coth(x) is 1 + x^2 / 3 to the last bit.
_SMALL = 1e-4


class MetricTensor(NamedTuple):
    """G = root root^T.

    Attributes:
        root: [C, P, P].
        inverse_root: Its inverse transposed [C, P, P]: G^-1 = inverse_root inverse_root^T.
        log_det: log det G [C]; NaN where G is not finite.
    """

    root: object
    inverse_root: object
    log_det: object

    def raised(self, gradient):
        """G^-1 times gradients [C, P]."""
        return self.spread(tf.linalg.matvec(self.inverse_root, gradient, transpose_a=True))

    def spread(self, noise):
        """Standard normal noise [C, P] -> noise of covariance G^-1."""
        return tf.linalg.matvec(self.inverse_root, noise)

    def squared_length(self, shift):
        """shift^T G shift [C] of shifts [C, P]."""
        return tf.reduce_sum(tf.linalg.matvec(self.root, shift, transpose_a=True) ** 2, axis=-1)


def softabs(values, alpha):
    """x coth(alpha x): |x| for |x| >> 1 / alpha, never below its limit 1 / alpha at 0."""
    scaled = alpha * tf.abs(values)
    limit = 1.0 + scaled**2 / 3.0
    return tf.where(scaled < _SMALL, limit, scaled / tf.tanh(scaled)) / alpha


def softabs_metric(hessian, alpha):
    """The symmetric matrices [C, P, P] with the SoftAbs of their eigenvalues.

    XLA's eigendecomposition on a CPU stops at errors of 1e-7 of the largest eigenvalue. The
    eigenvectors are orthonormal to rounding, so the metric is one, if not quite this one.

    References:
        Betancourt 2013, arXiv:1212.4693.
    """
    hessian, is_finite = _finite(hessian)
    values, vectors = tf.linalg.eigh(hessian)
    values = softabs(values, alpha)
    scale = tf.sqrt(values)[:, None, :]
    return _metric(vectors * scale, vectors / scale, values, is_finite)


def cholesky_metric(matrix):
    """Positive semi-definite matrices [C, P, P], damped at the level of rounding errors.

    Their diagonals are raised by P^2 units in the last place, with which the factorisation of a
    matrix of positive diagonal cannot fail (Higham 2002, Accuracy and Stability of Numerical
    Algorithms, theorem 10.7).
    """
    matrix, is_finite = _finite(matrix)
    size = matrix.shape[-1]
    diagonal = tf.linalg.diag_part(matrix)
    damped = diagonal * (1.0 + size**2 * np.finfo(np.float64).eps)
    root = tf.linalg.cholesky(tf.linalg.set_diag(matrix, damped))
    identity = tf.eye(size, batch_shape=matrix.shape[:1], dtype=matrix.dtype)
    inverse = tf.linalg.triangular_solve(root, identity)
    squares = tf.linalg.diag_part(root) ** 2
    return _metric(root, tf.linalg.matrix_transpose(inverse), squares, is_finite)


def _finite(matrix):
    """(matrices with the identity in place of those that are not finite, which are [C])."""
    is_finite = tf.reduce_all(tf.math.is_finite(matrix), axis=[-2, -1])
    identity = tf.eye(matrix.shape[-1], dtype=matrix.dtype)
    return tf.where(is_finite[:, None, None], matrix, identity), is_finite


def _metric(root, inverse_root, factors, is_finite):
    log_det = tf.reduce_sum(tf.math.log(factors), axis=-1)
    missing = tf.constant(np.nan, log_det.dtype)
    return MetricTensor(root, inverse_root, tf.where(is_finite, log_det, missing))
