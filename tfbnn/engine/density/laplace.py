"""The Laplace approximation around one network, and the contributions of single rows to it.

The precision is the Gauss-Newton matrix of minus the log density in all parameters, including noise
and prior scales. It is positive definite wherever the priors have curvature; the Hessian of a
network need not be. A prior without curvature at the mode still gets a finite width from rounding.

References:
    MacKay 1992, Neural Computation 4, 448. Immer, Korzepa and Bauer 2021, arXiv:2008.08400.
"""

from typing import cast

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.densities import Noise, row_log_likelihood
from tfbnn.engine.density.density_of import density_of
from tfbnn.engine.density.gauss_newton import counted_columns, output_jacobian
from tfbnn.engine.density.potential import Potential
from tfbnn.exceptions import StartError
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array
from tfbnn.system.threads import single_threaded_blas


def precision_factors(curvature: Array) -> Array:
    """Compute the lower Cholesky factors of curvatures [..., P, P], float64.

    Directions that neither prior nor data determine keep a finite width.

    Raises:
        numpy.linalg.LinAlgError: If a curvature is not positive definite.
    """
    floors = np.finfo(np.float64).eps * np.trace(curvature, axis1=-2, axis2=-1)
    return np.linalg.cholesky(curvature + floors[..., None, None] * np.eye(curvature.shape[-1]))


def factor_at(spec: NetworkSpec, theta: Array, data: Data) -> Array | None:
    """Compute the lower Cholesky factor [P, P] of the Gauss-Newton matrix at a network theta [P].

    Return None if the matrix is not finite or not positive definite.
    """
    precision = cast(Potential, density_of(spec)).curvature(theta, data)
    with single_threaded_blas():  # otherwise the last bits depend on the number of cores
        try:
            factor = precision_factors(precision)
        except np.linalg.LinAlgError:
            return None
    return factor if np.isfinite(factor).all() else None


def laplace_draws(spec: NetworkSpec, mode: Array, data: Data, num_draws: int, seed: int) -> Array:
    """Draw from N(mode, H^-1), with H the Gauss-Newton matrix at the mode.

    With H = L L^T, a draw is mode + L^-T z, z standard normal. No inverse is formed.

    Args:
        spec: NetworkSpec.
        mode: Parameters [P].
        data: Data.
        num_draws: Number of draws.
        seed: Seed of z, which is the same on every device.

    Returns:
        Draws [num_draws, P], float64.

    Raises:
        StartError: If the matrix is not finite or not positive definite.
    """
    from scipy.linalg import solve_triangular

    factor = factor_at(spec, mode, data)
    if factor is None:
        raise StartError(
            "The Gauss-Newton matrix is not positive definite and finite at the network that "
            "fit_laplace found. Use dtype='float64', or a likelihood with a larger noise_scale."
        )
    standard = seeds.generator(seed, "laplace", 0).standard_normal((num_draws, len(mode)))
    with single_threaded_blas():
        shift: Array = solve_triangular(factor, standard.T, lower=True, trans="T").T
    return np.asarray(mode, np.float64) + shift


def row_leverages(spec: NetworkSpec, theta: Array, data: Data, factor: Array) -> Array:
    """Compute the leverage of each row, the trace of its Lambda J H^-1 J^T: [N], float64.

    It is the number of parameters that the row determines.

    Args:
        spec: NetworkSpec.
        theta: Parameters [P].
        data: Data.
        factor: Lower Cholesky factor of H [P, P].
    """
    found = []
    for columns in counted_columns(spec, theta, data):
        lines = tf.linalg.triangular_solve(factor, columns.reshape(len(theta), -1)).numpy()
        found.append(np.square(lines).reshape(columns.shape).sum(axis=(0, 1)))
    return np.concatenate(found)


def row_scores_and_information(spec: NetworkSpec, theta: Array, data: Data) -> Array:
    """Compute the gradient of each row's log likelihood through the outputs, and its J^T Lambda J.

    Returns:
        [P + P (P + 1) / 2, N], float64: gradients, then the upper triangles.
    """
    rows = data.rows()
    theta = tf.constant(theta, tf.float64)
    noise = Noise(theta[spec.layout.log_noise_scale][None], rows.row_noise)
    jacobian, outputs = output_jacobian(spec, theta, rows.x)
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        terms = row_log_likelihood(spec.likelihood, outputs[None], rows.y, noise)
    pull = tape.gradient(terms, outputs)
    scores = tf.einsum("kpn,kn->pn", jacobian, pull).numpy()
    columns = np.concatenate(list(counted_columns(spec, theta, data)), axis=-1)
    information = np.einsum("pkn,qkn->pqn", columns, columns)
    return np.concatenate([scores, information[np.triu_indices(len(scores))]])
