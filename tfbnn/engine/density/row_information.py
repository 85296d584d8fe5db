"""What single rows say of parameters at one network: leverages, scores and information."""

from __future__ import annotations

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.densities import row_log_likelihood
from tfbnn.engine.density.gauss_newton import counted_columns, output_jacobian
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array


def row_leverages(spec: NetworkSpec, theta: Array, data: Data, factor: Array) -> Array:
    """How many parameters each row determines, the trace of Lambda J H^-1 J^T of it: [N], float64.

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
    """Of each row the gradient of its log likelihood through the outputs, and its J^T Lambda J.

    Returns:
        [P + P (P + 1) / 2, N], float64: gradients, then the upper triangles.
    """
    rows = data.rows()
    theta = tf.constant(theta, tf.float64)
    log_noise = theta[spec.layout.log_noise_scale]
    jacobian, outputs = output_jacobian(spec, theta, rows.x)
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        terms = row_log_likelihood(
            spec.likelihood, outputs[None], log_noise[None], rows.y, rows.row_noise
        )
    pull = tape.gradient(terms, outputs)
    scores = tf.einsum("kpn,kn->pn", jacobian, pull).numpy()
    columns = np.concatenate(list(counted_columns(spec, theta, data)), axis=-1)
    information = np.einsum("pkn,qkn->pqn", columns, columns)
    return np.concatenate([scores, information[np.triu_indices(len(scores))]])
