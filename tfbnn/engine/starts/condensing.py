"""Condenses the rows of a fit to a `FunctionPrior`.

At the network theta* where the posterior is largest given a chain's noise scales, the likelihood of the
rows has the gradient g and the Gauss-Newton matrix A = U diag(l) U^T, J the Jacobian of the outputs at
the inputs that are kept. With W = diag(l)^(1/2) U^T J^+ and o = W f(theta*) + diag(l)^(-1/2) U^T g the
factor exp(-|W f(theta) - o|^2 / 2) has this gradient and this matrix at theta*, and depends on the
weights through the outputs alone: for a linear network it is the likelihood.

The priors of the layers stay what they are, and are not in it; nor is that of the noise scales, which is
divided out of the normal distribution of a chain's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import Data, make_data
from tfbnn.engine.density.densities import scale_log_prior
from tfbnn.engine.density.fisher import (
    likelihood_information,
    prior_curvature,
    scale_curvature,
)
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix, output_jacobian, row_leverages
from tfbnn.engine.density.laplace import precision_factors
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import taped
from tfbnn.engine.starts.newton import top_given_scales
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import FunctionPrior
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array
from tfbnn.system.threads import single_threaded_blas

# Outputs that are kept per parameter, as far as there are rows: with fewer than one the kept inputs
# would not tell all parameters.
_OUTPUTS_PER_PARAMETER = 2
# Numbers in the lines of all components: 32 MB, of which a file's text makes 43.
_MOST_NUMBERS = 4e6
# Directions of J^T J, and of A against a prior of scale one, below which there is but rounding.
_SMALL, _NO_INFORMATION = 1e-10, 1e-6
# How much better an output may be known than by the rows that there are for each input, as inputs are
# those that determine most for all chains together.
_MARGIN = 2.0
# Nats that components may differ by and be one.
_SAME = 0.1


def condense(
    spec: NetworkSpec, rows: NetworkRows, draws: Array, chain_weights: Array
) -> FunctionPrior:
    """What rows have told the chains of a fit.

    Args:
        spec: NetworkSpec of the fit, whose own `earlier` is carried on.
        rows: Its rows on the scale the network sees.
        draws: Of each chain [C, S, P].
        chain_weights: [C].

    Raises:
        ValueError: Where a Gauss-Newton matrix is not finite and positive definite.
    """
    spec = replace(spec, dtype="float64")
    data = make_data(*rows, "float64")
    with single_threaded_blas():  # or the last bits would depend on the number of cores
        tops = [_top(spec, data, chain.astype(np.float64)) for chain in draws]
        inputs = _kept_inputs(spec, rows.x, tops)
        most = int(_MOST_NUMBERS / (len(draws) * len(inputs) * spec.num_outputs))
        rank = min(most, spec.num_parameters, _num_lines(spec, rows))
        spread = draws[..., spec.layout.log_noise_scale].var(axis=(0, 1), dtype=np.float64)
        parts = [_component(spec, data, top, inputs, rank, spread) for top in tops]
    first = _first_alike(parts)
    kept = sorted(set(first))
    arrays = {name: np.stack([getattr(parts[chain], name) for chain in kept]) for name in _KEPT}
    arrays["weights"] = np.array([chain_weights[np.array(first) == chain].sum() for chain in kept])
    return FunctionPrior.of(inputs=inputs, num_rows=_num_rows(spec, tops[0]), **arrays)


class _Part(NamedTuple):
    """A component, as of `FunctionPrior`; and its outputs at the inputs that are kept [M * K]."""

    networks: Array
    lines: Array
    offsets: Array
    log_noise: Array
    log_noise_scale: Array
    outputs: Array

    def misses(self, other: _Part) -> float:
        """By how much the density of this one is smaller at the top of another, in nats."""
        of_outputs = self.lines @ (other.outputs - self.outputs)
        of_noise = (other.log_noise - self.log_noise) / self.log_noise_scale
        return 0.5 * float(np.square(of_outputs).sum() + np.square(of_noise).sum())


_KEPT = _Part._fields[:-1]


def _first_alike(parts: list[_Part]) -> list[int]:
    """For each the number of the first that is as good as the same: chains that mix have one top."""
    return [
        next(j for j in range(i + 1) if j == i or parts[j].misses(part) < _SAME)
        for i, part in enumerate(parts)
    ]


def _num_lines(spec: NetworkSpec, rows: NetworkRows) -> int:
    """The rank that the information can have at most."""
    earlier = 0 if spec.earlier is None else spec.earlier.offsets.shape[1]
    return earlier + len(rows.x) * spec.num_outputs


class _Top(NamedTuple):
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


def _num_rows(spec: NetworkSpec, top: _Top) -> int:
    """Of the fit and before it."""
    return len(top.leverages) + (0 if spec.earlier is None else spec.earlier.num_rows)


def _top(spec: NetworkSpec, data: Data, draws: Array) -> _Top:
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
    return _Top(theta, pull, matrix, leverages, of_earlier, draws[:, place])


def _earlier_leverages(spec: NetworkSpec, theta: Array, factor: Array) -> Array:
    """As those of rows, of the inputs of the earlier posterior as if its lines were independent."""
    if spec.earlier is None:
        return np.empty(0)
    prior = spec.earlier
    jacobian, _ = _jacobian(spec, theta, prior.inputs.values)
    solved = np.square(tf.linalg.triangular_solve(factor, jacobian.T).numpy()).sum(axis=0)
    sizes = np.square(prior.lines.values).sum(axis=1).mean(axis=0)
    found: Array = (solved * sizes).reshape(prior.num_inputs, -1).sum(axis=1)
    return found


def _kept_inputs(spec: NetworkSpec, x: Array, tops: list[_Top]) -> Array:
    """Inputs [M, D] of the rows that determine most, earlier ones among them.

    A row that by itself determines a parameter must be there: at other inputs its output has next to
    no derivative in that parameter, and would be asked to stand for it many times over.
    """
    leverages = sum(np.r_[top.earlier_leverages, top.leverages] for top in tops)
    if spec.earlier is not None:
        x = np.concatenate([spec.earlier.inputs.values, x])
    wanted = -(-_OUTPUTS_PER_PARAMETER * spec.num_parameters // spec.num_outputs)
    kept = np.argsort(-np.asarray(leverages), kind="stable")[:wanted]
    return np.asarray(x[np.sort(kept)], np.float64)


def _component(
    spec: NetworkSpec, data: Data, top: _Top, inputs: Array, rank: int, spread: Array
) -> _Part:
    """What the rows have told a chain, in outputs at some inputs; `spread` as of `_of_noise`."""
    information = top.matrix - np.diag(prior_curvature(spec, tf.constant(top.theta)))
    lengths, directions = _of_outputs(information, spec.layout.log_noise_scale)
    # Those that tell least come first.
    lengths, directions = lengths[-rank:], directions[:, -rank:]
    informs = lengths > _NO_INFORMATION
    roots = np.sqrt(np.where(informs, lengths, 0.0))
    jacobian, outputs = _jacobian(spec, top.theta, inputs)
    lines = (roots * directions).T @ _pseudo_inverse(jacobian)
    of_a_row = _information_of_a_row(spec, top.theta, outputs, data)
    lines = _bounded(lines, of_a_row, _num_rows(spec, top) / len(inputs))
    pull = np.where(informs, directions.T @ top.pull, 0.0) / np.where(informs, roots, 1.0)
    noise, noise_scale = _of_noise(spec, top, spread)
    return _Part(top.theta, lines, lines @ outputs + pull, noise, noise_scale, outputs)


def _information_of_a_row(spec: NetworkSpec, theta: Array, outputs: Array, data: Data) -> Array:
    """What one row tells of each of the outputs [M * K] by itself, its inverse variance: [M * K]."""
    found = outputs.reshape(-1, spec.num_outputs).T
    noise = data.row_noise
    if noise is not None:  # of rows, which inputs that were kept earlier are not
        noise = np.median(noise, axis=-1, keepdims=True) * np.ones_like(found)
    log_noise = tf.constant(theta[spec.layout.log_noise_scale])
    information, _ = likelihood_information(spec.likelihood, tf.constant(found), log_noise, noise)
    return spec.likelihood_power * information.diagonal.numpy().T.ravel()


def _bounded(lines: Array, of_a_row: Array, rows_per_input: float) -> Array:
    """Lines [R, M * K] with no more certainty in outputs than so many rows for each input give.

    What exceeds that stands for parameters that the kept inputs hardly see, and holds only next to the
    top: of 5-20-20-1 on 2937 rows the tenth of the singular values that exceeds it makes draws up to 1.8
    times as unlikely as the rows have them, in units of their log likelihood; without it they are within 5 %.
    """
    scales = np.sqrt(np.maximum(of_a_row, _SMALL * of_a_row.max()))
    left, sizes, right = np.linalg.svd(lines / scales, full_matrices=False)
    limit = _MARGIN * np.sqrt(max(1.0, rows_per_input))
    if sizes[0] <= limit:
        return lines
    bounded: Array = (left * np.minimum(sizes, limit)) @ right * scales
    return bounded


def _jacobian(spec: NetworkSpec, theta: Array, inputs: Array) -> tuple[Array, Array]:
    """(Jacobian of the outputs at inputs [M * K, P], outputs [M * K]), input by input."""
    jacobian, outputs = output_jacobian(spec, tf.constant(theta), tf.constant(inputs.T))
    return jacobian.numpy().transpose(2, 0, 1).reshape(-1, len(theta)), outputs.numpy().T.ravel()


def _of_outputs(information: Array, noise: slice) -> tuple[Array, Array]:
    """Eigenvalues, rising, and eigenvectors of the information, but that in the noise."""
    information = information.copy()
    information[noise], information[:, noise] = 0.0, 0.0
    lengths, directions = np.linalg.eigh(0.5 * (information + information.T))
    return lengths, directions


def _pseudo_inverse(jacobian: Array) -> Array:
    """Of the Jacobian [M * K, P]: [P, M * K]."""
    squares, directions = np.linalg.eigh(jacobian.T @ jacobian)
    squares = np.maximum(squares, 0.0)
    inverse = directions / (squares + _SMALL * squares[-1])
    return inverse @ (directions.T @ jacobian.T)


def _of_noise(spec: NetworkSpec, top: _Top, spread: Array) -> tuple[Array, Array]:
    """Means and standard deviations [S] of what rows say of the log noise scales of a chain.

    `spread` is their variance over the draws of all chains: a chain that has not arrived is too sure of
    its own, and later rows could not tell it otherwise. No chain is more certain than its rows are by
    their Fisher information.
    """
    mean = top.log_noise.mean(axis=0)
    if not len(mean):
        return mean, mean
    information = np.diag(top.matrix)[spec.layout.log_noise_scale]
    variance = np.maximum(spread, 1.0 / information)
    prior: Any = spec.noise_prior
    point = tf.constant(mean[None])

    def log_prior(theta):
        return scale_log_prior(prior, theta)

    slope = taped(log_prior, point)[1][0].numpy()
    bend = scale_curvature(prior, point)[0].numpy()
    # Of the normal distribution over the prior, which is nearly flat beside it.
    precision = np.maximum(1.0 / variance - bend, 0.5 / variance)
    return mean - slope / precision, precision**-0.5
