"""Three ways to solve with the Gauss-Newton matrix H at one point: by its size, whichever is cheap.

Each offers, for the parameters `free`, `solve(gradient, damping)` = (H + damping I)^-1 gradient and
`inverse_diagonal()` = diag(H^-1), and for all parameters `diagonal`. NumPy, float64.
"""

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.fisher import compiled_prior_curvature
from tfbnn.engine.density.gauss_newton import (
    GaussNewtonProduct,
    gauss_newton_diagonal,
    gauss_newton_matrix,
    scaled_jacobian,
)

MAX_CG_STEPS = 60
_CG_TOLERANCE = 1e-3


class DenseCurvature:
    """Cholesky factorisation of the whole matrix: about 2 N K P^2 + 3 P^3 operations."""

    def __init__(self, spec, theta, data, free):
        matrix = gauss_newton_matrix(spec, theta, data)
        self.diagonal = np.diag(matrix)
        self._matrix = matrix[np.ix_(free, free)]

    def solve(self, gradient, damping):
        return _solve_positive(self._matrix + damping * np.eye(len(gradient)), gradient)

    def inverse_diagonal(self):
        return np.diag(_solve_positive(self._matrix, np.eye(len(self._matrix))))


class RowCurvature:
    """Woodbury's identity for fewer rows than parameters: about 2 (N K)^2 P + 3 (N K)^3 operations.

    With A = Lambda^(1/2) J [N K, P] and D the prior's curvature plus damping,
    (A^T A + D)^-1 = D^-1 - D^-1 A^T (I + A D^-1 A^T)^-1 A D^-1.
    """

    def __init__(self, spec, theta, data, free):
        self.diagonal = gauss_newton_diagonal(spec, theta, data)
        self._lines = scaled_jacobian(spec, theta, data)[:, free]
        self._prior = compiled_prior_curvature(spec)(tf.constant(theta)).numpy()[free]

    def solve(self, gradient, damping):
        diagonal, inner = self._inner(damping)
        right = self._lines @ (gradient / diagonal)
        return (gradient - self._lines.T @ _solve_positive(inner, right)) / diagonal

    def inverse_diagonal(self):
        diagonal, inner = self._inner(0.0)
        lines = self._lines / diagonal
        return 1.0 / diagonal - np.sum(lines * _solve_positive(inner, lines), axis=0)

    def _inner(self, damping):
        diagonal = self._prior + damping
        return diagonal, np.eye(len(self._lines)) + (self._lines / diagonal) @ self._lines.T


class ProductCurvature:
    """Conjugate gradients on matrix-vector products, preconditioned by the diagonal.

    A solve is approximate: it ends at MAX_CG_STEPS products, or once the residual has shrunk to a
    thousandth. The diagonal of the inverse is estimated from one fixed probe of random signs
    (Hutchinson 1990, Commun. Stat. Simul. 19, 433): good in sums over many parameters only.
    """

    def __init__(self, spec, theta, data, free):
        self.diagonal = gauss_newton_diagonal(spec, theta, data)
        self._free, self._product = free, GaussNewtonProduct(spec, theta, data)

    def solve(self, gradient, damping):
        preconditioner = 1.0 / (self.diagonal[self._free] + damping)
        solution, residual = np.zeros_like(gradient), gradient
        scaled = preconditioner * residual
        direction, size = scaled, residual @ scaled
        target = _CG_TOLERANCE**2 * size
        for _ in range(MAX_CG_STEPS):
            if size <= target:
                break
            image = self._times(direction) + damping * direction
            length = size / (direction @ image)
            solution = solution + length * direction
            residual = residual - length * image
            scaled = preconditioner * residual
            size, previous = residual @ scaled, size
            direction = scaled + size / previous * direction
        return solution

    def inverse_diagonal(self):
        probe = np.random.default_rng(0).choice([-1.0, 1.0], size=len(self._free))
        return probe * self.solve(probe, 0.0)

    def _times(self, vector):
        padded = np.zeros_like(self.diagonal)
        padded[self._free] = vector
        return self._product(padded)[self._free]


CURVATURES = {"dense": DenseCurvature, "rows": RowCurvature, "products": ProductCurvature}


def _solve_positive(matrix, right):
    # TensorFlow's Cholesky: the threads of LAPACK's wait for each other on a busy machine.
    factor, columns = tf.linalg.cholesky(matrix), right.reshape(len(right), -1)
    return tf.linalg.cholesky_solve(factor, columns).numpy().reshape(right.shape)
