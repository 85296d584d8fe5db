"""Bayesian linear regression in closed form: y = x^T v + noise, v ~ N(0, I), unit noise variance.

Rows are in the last place: x [..., p, N] are the features of N rows and y [..., J, N] their targets,
each divided by the row's noise scale; the J targets have independent v [..., p, J]. Given y, v is
normal with covariance Sigma = (I + x x^T)^-1 and mean Sigma x y^T. Matrices are p x p where p <= N
(feature space), else N x N (data space). Everything is float64 inside, whatever the dtype of x: the
eigenvalues of I + x x^T run from 1 to N / noise variance.

References:
    Hron et al. 2022, arXiv:2206.07673, for the map in feature space. Andrews 1968, AIAA Journal 6,
    1165, for the square root of the covariance in data space, which takes a Cholesky factor alone.
"""

from typing import NamedTuple

from tfbnn.engine.basis.libraries import tf

_LOG_2PI = 1.8378770664093453


class Factor(NamedTuple):
    """The Cholesky factor `lower` of I + x x^T (in feature space), or of I + x^T x."""

    x: object
    lower: object
    in_feature_space: bool

    @property
    def half_log_det(self):
        """Half the log determinant of either matrix [...]: the two are equal."""
        return tf.reduce_sum(tf.math.log(tf.linalg.diag_part(self.lower)), axis=-1)

    def mean(self, y):
        """Posterior mean of v for targets y [..., J, N]: [..., p, J]."""
        if self.in_feature_space:
            return tf.linalg.cholesky_solve(self.lower, tf.matmul(self.x, y, transpose_b=True))
        return tf.matmul(
            self.x, tf.linalg.cholesky_solve(self.lower, tf.linalg.matrix_transpose(y))
        )


def log_marginal(x, y, num_rows=None):
    """Log density of y with v integrated out, summed over targets: float64 [...].

    Its gradient is the closed form, which costs another product of the features with a matrix and
    no derivative of a factorisation; that product is made in the dtype of x.

    Args:
        x: [..., p, N].
        y: [..., J, N], of the same leading shape.
        num_rows: The rows that count, a scalar tensor; x and y are zero in the others. By default
            all.
    """

    count = y.shape[-1] if num_rows is None else num_rows

    @tf.custom_gradient
    def value_of(x, y):
        factor = _factorise(x)
        targets = tf.cast(y, tf.float64)
        mean = factor.mean(targets)
        residual = targets - tf.matmul(mean, factor.x, transpose_a=True)
        num_targets = y.shape[-2]
        # Equal to y^T (I + x^T x)^-1 y, without its cancellation.
        square = tf.reduce_sum(residual**2, [-2, -1]) + tf.reduce_sum(mean**2, [-2, -1])
        constant = 0.5 * num_targets * _LOG_2PI * tf.cast(count, tf.float64)

        def gradient(upstream):
            scale = tf.cast(upstream, x.dtype)[..., None, None]
            pull = tf.matmul(tf.cast(mean, x.dtype), tf.cast(residual, x.dtype))
            by_x = pull - num_targets * _covariance_times_x(factor, x)
            return scale * by_x, -scale * tf.cast(residual, y.dtype)

        return -0.5 * square - num_targets * factor.half_log_det - constant, gradient

    return value_of(x, y)


class Draw(NamedTuple):
    """v = mean + deviation of the posterior, float64.

    Attributes:
        mean: [..., p, J].
        deviation: [..., p, J].
        log_det: Log determinant of the map from standard normal numbers to v [...].
    """

    mean: object
    deviation: object
    log_det: object

    @property
    def v(self):
        return self.mean + self.deviation


def draw(x, y, normal):
    """Turns standard normal numbers into v of the posterior.

    Args:
        x: [..., p, N].
        y: [..., J, N].
        normal: [..., p, J].

    Returns:
        Draw.
    """
    factor, normal = _factorise(x), tf.cast(normal, tf.float64)
    return Draw(
        mean=factor.mean(tf.cast(y, tf.float64)),
        deviation=_root(factor, normal),
        log_det=-normal.shape[-1] * factor.half_log_det,
    )


def to_normal(x, y, v):
    """The inverse of `draw`: v [..., p, J] -> standard normal numbers [..., p, J], float64."""
    factor = _factorise(x)
    shift = tf.cast(v, tf.float64) - factor.mean(tf.cast(y, tf.float64))
    if factor.in_feature_space:
        return tf.matmul(factor.lower, shift, transpose_a=True)
    inside = tf.matmul(factor.x, shift, transpose_a=True)
    inside = tf.linalg.triangular_solve(_plus_identity(factor.lower), inside, adjoint=True)
    return shift + tf.matmul(factor.x, inside)


def covariance_root(x):
    """F, upper triangular, with F F^T the covariance of v: float64 [..., p, p]."""
    factor = _factorise(x, in_feature_space=True)
    identity = tf.eye(x.shape[-2], batch_shape=x.shape[:-2], dtype=tf.float64)
    return _root(factor, identity)


def _factorise(x, in_feature_space=None):
    if in_feature_space is None:
        in_feature_space = _is_tall(x)
    x = tf.cast(x, tf.float64)
    gram = tf.matmul(x, x, transpose_a=not in_feature_space, transpose_b=in_feature_space)
    return Factor(x, tf.linalg.cholesky(_plus_identity(gram)), in_feature_space)


def _is_tall(x):
    """Whether there are at least as many rows as features, so that feature space is smaller."""
    return x.shape[-2] <= x.shape[-1]


def _plus_identity(matrix):
    return matrix + tf.eye(matrix.shape[-1], dtype=matrix.dtype)


def _root(factor, columns):
    """A square root of the covariance times columns [..., p, J]."""
    if factor.in_feature_space:
        return tf.linalg.triangular_solve(factor.lower, columns, adjoint=True)
    inside = tf.matmul(factor.x, columns, transpose_a=True)
    inside = tf.linalg.triangular_solve(_plus_identity(factor.lower), inside)
    inside = tf.linalg.triangular_solve(factor.lower, inside, adjoint=True)
    return columns - tf.matmul(factor.x, inside)


def _covariance_times_x(factor, x):
    """Sigma x [..., p, N], in the dtype of x."""
    size = factor.lower.shape[-1]
    identity = tf.eye(size, batch_shape=factor.lower.shape[:-2], dtype=tf.float64)
    inverse = tf.cast(tf.linalg.cholesky_solve(factor.lower, identity), x.dtype)
    return tf.matmul(inverse, x) if factor.in_feature_space else tf.matmul(x, inverse)
