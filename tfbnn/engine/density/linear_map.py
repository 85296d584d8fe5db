"""Linear coordinates in which the kernels run: theta = map(z).

Every kernel gets its preconditioner this way, so no kernel has to handle mass matrices. The map is
constant while a kernel uses it, so its Jacobian cancels in every acceptance ratio.
"""

from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.laplace import precision_factors
from tfbnn.system.arrays import Array


class DiagonalMap(NamedTuple):
    """Diagonal map theta = scale * z, elementwise.

    Attributes:
        scale: Array or tensor [C, P].
    """

    scale: Tensor

    def forward(self, z: Tensor) -> Tensor:
        """Map z [C, P] to theta [C, P]."""
        return self.scale * z

    def inverse(self, theta: Tensor) -> Tensor:
        """Map theta [C, P] to z [C, P]."""
        return theta / self.scale

    def pull_back(self, gradient: Tensor) -> Tensor:
        """Convert a gradient with respect to theta to one with respect to z, both [C, P]."""
        return self.scale * gradient


class DenseMap(NamedTuple):
    """Dense map theta = centre + matrix z.

    Attributes:
        centre: Centres [C, P].
        matrix: Upper triangular matrices [C, P, P].
        transposed: Transposes of `matrix` [C, P, P]. On a CPU, XLA multiplies by a transposed
            matrix up to eleven times more slowly than by a stored one (P = 1142).
    """

    centre: Tensor
    matrix: Tensor
    transposed: Tensor

    def forward(self, z: Tensor) -> Tensor:
        """Map z [C, P] to theta [C, P]."""

        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def times_matrix(z: Tensor) -> Any:
            return _times(self.matrix, z), self.pull_back

        return self.centre + times_matrix(z)

    def inverse(self, theta: Tensor) -> Tensor:
        """Map theta [C, P] to z [C, P], outside compiled programs."""
        shift = (theta - self.centre)[..., None]
        return tf.linalg.triangular_solve(self.matrix, shift, lower=False)[..., 0]

    def pull_back(self, gradient: Tensor) -> Tensor:
        """Convert a gradient with respect to theta to one with respect to z, both [C, P]."""
        return _times(self.transposed, gradient)


class LowRankMap(NamedTuple):
    """Map theta = centre + scale * (z + vectors (factors * vectors^T z)), for few rows and large P.

    Attributes:
        centre, scale: Centres and scales [C, P].
        vectors: Orthonormal columns [C, P, n].
        factors: Factors [C, n], above -1.
    """

    centre: Tensor
    scale: Tensor
    vectors: Tensor
    factors: Tensor

    def forward(self, z: Tensor) -> Tensor:
        """Map z [C, P] to theta [C, P]."""
        return self.centre + self.scale * self._scaled_along(z)

    def pull_back(self, gradient: Tensor) -> Tensor:
        """Convert a gradient with respect to theta to one with respect to z, both [C, P]."""
        return self._scaled_along(self.scale * gradient)

    def _scaled_along(self, z: Tensor) -> Tensor:
        """Scale z [C, P] along the vectors."""
        along = tf.linalg.matvec(self.vectors, z, transpose_a=True)
        return z + tf.linalg.matvec(self.vectors, self.factors * along)


def _times(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Multiply matrices [C, P, P] by vectors [C, P], with a column of zeros beside every vector.

    On a CPU, XLA fuses a product with a single column into one loop with the computation of the
    column. Each of its elements, a gradient from the slices of its layers, is then computed once
    per row of the matrix, which takes four times as long as the whole product (P = 351). A product
    with two columns uses a library routine.
    """
    return tf.matmul(matrices, tf.stack([vectors, tf.zeros_like(vectors)], axis=-1))[..., 0]


LinearMap = DiagonalMap | DenseMap


def as_tensors(linear_map: LinearMap) -> LinearMap:
    """Convert the arrays of a map to tensors."""
    return type(linear_map)(*map(tf.convert_to_tensor, linear_map))


def whitening_map(theta: Array, curvature: Array) -> DenseMap:
    """Return the map that makes the normal with this curvature, centred at theta, standard normal.

    Args:
        theta: Centres [C, P].
        curvature: Positive semi-definite matrices [C, P, P], float64.

    Returns:
        DenseMap in the dtype of theta, with the inverse transposed Cholesky factor of the
        curvature. It takes a tenth of the time of an eigendecomposition.
    """
    from scipy.linalg import solve_triangular

    identity = np.eye(theta.shape[-1])
    factors = precision_factors(curvature)
    matrix = np.stack(
        [solve_triangular(factor, identity, lower=True, trans="T") for factor in factors]
    ).astype(theta.dtype)
    return DenseMap(theta, matrix, np.ascontiguousarray(np.swapaxes(matrix, -1, -2)))


def low_rank_map(theta: Array, lines: Array, prior: Array) -> LowRankMap:
    """Return the map that makes normals with curvature lines^T lines + diag(prior) standard normal.

    The normals are centred at theta. With D = diag(prior) and V and s the eigenvectors and
    eigenvalues of D^(-1/2) lines^T lines D^(-1/2), the map is
    D^(-1/2) (I + V ((1 + s)^(-1/2) - 1) V^T). It takes n^2 P operations, not P^3.

    Args:
        theta: Centres [C, P].
        lines: Scaled Jacobians [C, n, P], float64; n is below P.
        prior: Curvature of the prior [C, P], positive.

    Returns:
        LowRankMap in the dtype of theta.
    """
    scale = prior**-0.5
    lines = lines * scale[:, None]
    values, inner = np.linalg.eigh(lines @ lines.swapaxes(1, 2))
    # Linearly dependent lines have no such vector, and nothing is scaled along it.
    values = np.maximum(values, np.finfo(float).eps * values[:, -1:])
    vectors = lines.swapaxes(1, 2) @ (inner / np.sqrt(values)[:, None])
    parts = theta, scale, vectors, (1.0 + values) ** -0.5 - 1.0
    return LowRankMap(*(part.astype(theta.dtype) for part in parts))


def scaling_map(scales: Array | float, theta: Array) -> DiagonalMap:
    """Return the map with scales [P], or one number, for all positions [C, P], in their dtype."""
    return DiagonalMap(np.broadcast_to(scales, theta.shape).astype(theta.dtype))


def diagonal_map(variance: Array, num_draws: int, previous: DiagonalMap) -> DiagonalMap:
    """Return a map that gives every coordinate about unit variance.

    The log variances are shrunk towards their mean with the weight of five draws. The weights of
    one network are determined to very different degrees. Shrinking the variances themselves, as
    Stan does towards 1e-3, would hide the best determined weights.

    Args:
        variance: Sample variances [C, P] of theta over a window.
        num_draws: Length of the window.
        previous: DiagonalMap of the window, kept by chains that did not move at all.

    Returns:
        DiagonalMap in the dtype of `variance`.
    """
    log_variance = np.log(np.maximum(variance, np.finfo(variance.dtype).tiny))
    centre = log_variance.mean(axis=-1, keepdims=True)
    shrunk = (num_draws * log_variance + 5.0 * centre) / (num_draws + 5.0)
    moved = variance.max(axis=-1, keepdims=True) > 0
    scale = np.where(moved, np.exp(0.5 * shrunk), np.asarray(previous.scale))
    return DiagonalMap(scale.astype(variance.dtype))
