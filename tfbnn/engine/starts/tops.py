"""Where a chain's posterior is largest given its noise scales, and what the rows say there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix, output_jacobian, row_leverages
from tfbnn.engine.density.laplace import precision_factors
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import taped
from tfbnn.engine.starts.newton import top_given_scales
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array


class Top(NamedTuple):
    """Where the posterior is largest given the noise scales of a chain.

    Attributes:
        theta: [P].
        pull: Gradient of the likelihood of all rows there, earlier ones included [P].
        matrix: Gauss-Newton matrix of the posterior [P, P].
        leverages: How many parameters every row determines, [N].
        earlier_leverages: The same of the inputs that stand for earlier rows.
        log_noise: Log noise scales of the chain [S draws, their number].
    """

    theta: Array
    pull: Array
    matrix: Array
    leverages: Array
    earlier_leverages: Array
    log_noise: Array


def find_top(spec: NetworkSpec, data: Data, draws: Array) -> Top:
    """That of the chain of draws [S, P]."""
    place = spec.layout.log_noise_scale
    start = draws[-1].copy()
    start[place] = draws[:, place].mean(axis=0)
    theta, gradient = top_given_scales(spec, start, data)
    matrix = gauss_newton_matrix(spec, theta, data)
    try:
        factor = precision_factors(matrix)
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "FromPosterior needs a Gauss-Newton matrix that is finite and positive definite at a "
            "network of every chain. Use dtype='float64', or a prior with curvature, such as Normal."
        ) from error
    _, of_prior = taped(Potential(spec.without_earlier()).log_prior, tf.constant(theta[None]))
    leverages = row_leverages(spec, theta, data, factor)
    of_earlier = _earlier_leverages(spec, theta, factor)
    pull = gradient - of_prior[0].numpy()
    return Top(theta, pull, matrix, leverages, of_earlier, draws[:, place])


def _earlier_leverages(spec: NetworkSpec, theta: Array, factor: Array) -> Array:
    """As those of rows, of the inputs of the earlier posterior as if its lines were independent."""
    if spec.earlier is None:
        return np.empty(0)
    prior = spec.earlier
    jacobian, _ = jacobian_at(spec, theta, prior.inputs.values)
    solved = np.square(tf.linalg.triangular_solve(factor, jacobian.T).numpy()).sum(axis=0)
    sizes = np.square(prior.lines.values).sum(axis=1).mean(axis=0)
    found: Array = (solved * sizes).reshape(prior.num_inputs, -1).sum(axis=1)
    return found


def jacobian_at(spec: NetworkSpec, theta: Array, inputs: Array) -> tuple[Array, Array]:
    """(Jacobian of the outputs at inputs [M * K, P], outputs [M * K]), input by input."""
    jacobian, outputs = output_jacobian(spec, tf.constant(theta), tf.constant(inputs.T))
    return jacobian.numpy().transpose(2, 0, 1).reshape(-1, len(theta)), outputs.numpy().T.ravel()
