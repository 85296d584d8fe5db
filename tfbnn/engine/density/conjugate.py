"""Bayesian linear regression in closed form: y = x^T v + noise, v ~ N(0, I), unit noise variance.

Rows are the last axis: x [..., p, n] are the features of n rows and y [..., J, n] their targets,
each divided by the row's noise scale. The J targets have independent v [..., p, J]. Given y, v is
normal with covariance Sigma = (I + x x^T)^-1 and mean Sigma x y^T. With more rows than features,
matrices are p x p (feature space) and computed from sums over rows, which can be added block by
block. Otherwise they are N x N (data space) and need all rows at once. All computations are in
float64 for every dtype of x, because the eigenvalues of I + x x^T range from 1 to N / noise
variance.

References:
    Hron et al. 2022, arXiv:2206.07673, for the map in feature space. Andrews 1968, AIAA Journal 6,
    1165, for the square root of the covariance in data space, which needs only a Cholesky factor.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tfbnn.engine.basis.libraries import Tensor, tf

_LOG_2PI = 1.8378770664093453


class ReadoutPosterior(NamedTuple):
    """Posterior of v, in feature space or in data space.

    Attributes:
        lower: Cholesky factor of I + x x^T [..., p, p]; in data space of I + x^T x [..., N, N].
        mean: Posterior mean of v [..., p, J].
        x: All rows [..., p, N], float64, in data space; None in feature space.
    """

    lower: Tensor
    mean: Tensor
    x: Tensor | None = None

    @property
    def half_log_det(self) -> Tensor:
        """Half the log determinant of I + x x^T [...], which equals that of I + x^T x."""
        return tf.reduce_sum(tf.math.log(tf.linalg.diag_part(self.lower)), axis=-1)

    @property
    def covariance_root(self) -> Tensor:
        """Upper triangular F with F F^T the covariance of v: [..., p, p] in both spaces."""
        lower = self.lower
        if self.x is not None:
            lower = tf.linalg.cholesky(_plus_identity(tf.matmul(self.x, self.x, transpose_b=True)))
        return tf.linalg.triangular_solve(lower, _identity_like(lower), adjoint=True)

    def root_times(self, columns: Tensor) -> Tensor:
        """Multiply columns [..., p, J] by a square root of the covariance."""
        if self.x is None:
            return tf.linalg.triangular_solve(self.lower, columns, adjoint=True)
        inside = tf.matmul(self.x, columns, transpose_a=True)
        inside = tf.linalg.triangular_solve(_plus_identity(self.lower), inside)
        inside = tf.linalg.triangular_solve(self.lower, inside, adjoint=True)
        return columns - tf.matmul(self.x, inside)

    def inverse_root_times(self, columns: Tensor) -> Tensor:
        """Compute the inverse of `root_times`."""
        if self.x is None:
            return tf.matmul(self.lower, columns, transpose_a=True)
        inside = tf.matmul(self.x, columns, transpose_a=True)
        inside = tf.linalg.triangular_solve(_plus_identity(self.lower), inside, adjoint=True)
        return columns + tf.matmul(self.x, inside)

    def covariance_times_x(self, inverse: Tensor, x: Tensor) -> Tensor:
        """Compute Sigma x [..., p, n] for some rows, in data space for all.

        `inverse` is the inverse of the matrix whose Cholesky factor is `lower`.
        """
        return tf.matmul(inverse, x) if self.x is None else tf.matmul(x, inverse)


def products(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Compute x x^T [..., p, p] and x y^T [..., p, J], float64, to be summed over rows."""
    x, y = tf.cast(x, tf.float64), tf.cast(y, tf.float64)
    return tf.matmul(x, x, transpose_b=True), tf.matmul(x, y, transpose_b=True)


def in_feature_space(gram: Tensor, cross: Tensor) -> ReadoutPosterior:
    """Compute the posterior from `products` summed over all rows."""
    lower = tf.linalg.cholesky(_plus_identity(gram))
    return ReadoutPosterior(lower, tf.linalg.cholesky_solve(lower, cross))


def in_data_space(x: Tensor, y: Tensor) -> ReadoutPosterior:
    """Compute the posterior from all rows, x [..., p, N] and y [..., J, N]."""
    x, y = tf.cast(x, tf.float64), tf.cast(y, tf.float64)
    lower = tf.linalg.cholesky(_plus_identity(tf.matmul(x, x, transpose_a=True)))
    inside = tf.linalg.cholesky_solve(lower, tf.linalg.matrix_transpose(y))
    return ReadoutPosterior(lower, tf.matmul(x, inside), x)


def residuals(posterior: ReadoutPosterior, x: Tensor, y: Tensor) -> Tensor:
    """Compute y - mean^T x for some rows, float64 [..., J, n]."""
    return tf.cast(y, tf.float64) - tf.matmul(
        posterior.mean, tf.cast(x, tf.float64), transpose_a=True
    )


def log_marginal(posterior: ReadoutPosterior, squares: Tensor, num_rows: Tensor) -> Tensor:
    """Compute the log density of y with v integrated out, summed over targets: float64 [...].

    Args:
        posterior: ReadoutPosterior.
        squares: Squared `residuals`, summed over all rows and targets [...]. With the squares of
            the mean they add up to y^T (I + x^T x)^-1 y, without the cancellation of sums of y^2.
        num_rows: Number of rows that count, a scalar tensor; x and y are zero in the others.
    """
    num_targets = posterior.mean.shape[-1]
    squares += tf.reduce_sum(posterior.mean**2, [-2, -1])
    constant = 0.5 * num_targets * _LOG_2PI * tf.cast(num_rows, tf.float64)
    return -0.5 * squares - num_targets * posterior.half_log_det - constant


def pull_back(
    posterior: ReadoutPosterior, dtype: Any
) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return the function from (x, residuals) of some rows to the gradient of `log_marginal` in (x, y).

    It uses the closed form, which costs one more product of the features with a matrix, but no
    derivative of a factorisation. The product is computed in `dtype`, the dtype of x.
    """
    inverse = tf.linalg.cholesky_solve(posterior.lower, _identity_like(posterior.lower))
    mean = tf.cast(posterior.mean, dtype)
    minus_inverses = tf.cast(-mean.shape[-1] * inverse, dtype)

    def of_rows(x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        residual = tf.cast(residual, dtype)
        by_determinant = posterior.covariance_times_x(minus_inverses, x)
        return tf.matmul(mean, residual) + by_determinant, -residual

    return of_rows


def draw(posterior: ReadoutPosterior, normal: Tensor) -> tuple[Tensor, Tensor]:
    """Map standard normal numbers [..., p, J] to v; return v and the log determinant [...] of the map.

    Both are float64.
    """
    v = posterior.mean + posterior.root_times(tf.cast(normal, tf.float64))
    return v, -normal.shape[-1] * posterior.half_log_det


def to_normal(posterior: ReadoutPosterior, v: Tensor) -> Tensor:
    """Map v [..., p, J] to standard normal numbers [..., p, J], float64, the inverse of `draw`."""
    return posterior.inverse_root_times(tf.cast(v, tf.float64) - posterior.mean)


def _plus_identity(matrix: Tensor) -> Tensor:
    return matrix + tf.eye(matrix.shape[-1], dtype=matrix.dtype)


def _identity_like(matrix: Tensor) -> Tensor:
    return tf.eye(matrix.shape[-1], batch_shape=matrix.shape[:-2], dtype=matrix.dtype)
