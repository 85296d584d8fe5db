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

import warnings
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
from tfbnn.engine.density.row_blocks import taped
from tfbnn.engine.starts.tops import Top, find_top, jacobian_at
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
    data, counts = make_data(*rows, "float64"), chain_weights > 0
    draws, chain_weights = draws[counts].astype(np.float64), chain_weights[counts]
    spread = draws[..., spec.layout.log_noise_scale].var(axis=(0, 1))
    with single_threaded_blas():  # or the last bits would depend on the number of cores
        tops = [find_top(spec, data, chain) for chain in draws]
        inputs = _kept_inputs(spec, rows.x, tops)
        parts = [_component(spec, data, top, inputs, spread) for top in tops]
    first = _first_alike(parts)
    kept = sorted(set(first))
    lines = _most_telling([parts[chain] for chain in kept], len(inputs) * spec.num_outputs)
    return FunctionPrior.of(
        num_rows=_num_rows(spec, tops[0]),
        inputs=inputs,
        weights=np.array([chain_weights[np.array(first) == chain].sum() for chain in kept]),
        networks=np.stack([parts[chain].theta for chain in kept]),
        lines=np.stack([parts[chain].lines[lines] for chain in kept]),
        offsets=np.stack([parts[chain].offsets[lines] for chain in kept]),
        log_noise=np.stack([parts[chain].log_noise for chain in kept]),
        log_noise_scale=np.stack([parts[chain].log_noise_scale for chain in kept]),
    )


def _most_telling(parts: list[_Part], num_outputs: int) -> slice:
    """Which lines there is room for: the last ones, of which rows say most."""
    size = len(parts[0].lengths)
    rank = min(size, int(_MOST_NUMBERS / (len(parts) * num_outputs)))
    left_out = max(int(np.sum(part.lengths[: size - rank] > 1.0)) for part in parts)
    if left_out:
        warnings.warn(
            f"FromPosterior has room for {rank} of {size} directions of the parameters, and leaves out "
            f"{left_out} of which the rows say more than a prior of scale one. The posterior of later "
            "rows will be that much wider. Use fewer parameters, or a run whose chains agree.",
            UserWarning,
            stacklevel=4,
        )
    return slice(size - rank, size)


class _Part(NamedTuple):
    """A component, as of `FunctionPrior`.

    Attributes besides those:
        theta: Its network [P].
        outputs: Its outputs at the inputs that are kept [M * K].
        lengths: What rows say of the directions that the lines are for, rising [R].
    """

    theta: Array
    lines: Array
    offsets: Array
    log_noise: Array
    log_noise_scale: Array
    outputs: Array
    lengths: Array

    def misses(self, other: _Part) -> float:
        """By how much the density of this one is smaller at the top of another, in nats."""
        of_outputs = self.lines @ (other.outputs - self.outputs)
        of_noise = (other.log_noise - self.log_noise) / self.log_noise_scale
        return 0.5 * float(np.square(of_outputs).sum() + np.square(of_noise).sum())


def _first_alike(parts: list[_Part]) -> list[int]:
    """For each the number of the first that is as good as the same: chains that mix have one top."""
    return [
        next(j for j in range(i + 1) if j == i or parts[j].misses(part) < _SAME)
        for i, part in enumerate(parts)
    ]


def _num_lines(spec: NetworkSpec, num_rows: int) -> int:
    """The rank that the information can have at most."""
    earlier = 0 if spec.earlier is None else spec.earlier.offsets.shape[1]
    return earlier + num_rows * spec.num_outputs


def _num_rows(spec: NetworkSpec, top: Top) -> int:
    """Of the fit and before it."""
    return len(top.leverages) + (0 if spec.earlier is None else spec.earlier.num_rows)


def _kept_inputs(spec: NetworkSpec, x: Array, tops: list[Top]) -> Array:
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


def _component(spec: NetworkSpec, data: Data, top: Top, inputs: Array, spread: Array) -> _Part:
    """What the rows have told a chain, in outputs at some inputs; `spread` as of `_of_noise`."""
    information = top.matrix - np.diag(prior_curvature(spec, tf.constant(top.theta)))
    lengths, directions = _of_outputs(information, spec.layout.log_noise_scale)
    rank = min(len(lengths), _num_lines(spec, len(top.leverages)))
    lengths, directions = lengths[-rank:], directions[:, -rank:]
    informs = lengths > _NO_INFORMATION
    roots = np.sqrt(np.where(informs, lengths, 0.0))
    jacobian, outputs = jacobian_at(spec, top.theta, inputs)
    lines = (roots * directions).T @ _pseudo_inverse(jacobian)
    of_a_row = _information_of_a_row(spec, top.theta, outputs, data)
    lines = _bounded(lines, of_a_row, _num_rows(spec, top) / len(inputs))
    pull = np.where(informs, directions.T @ top.pull, 0.0) / np.where(informs, roots, 1.0)
    noise, noise_scale = _of_noise(spec, top, spread)
    return _Part(top.theta, lines, lines @ outputs + pull, noise, noise_scale, outputs, lengths)


def _information_of_a_row(spec: NetworkSpec, theta: Array, outputs: Array, data: Data) -> Array:
    """What one row may tell of each of the outputs [M * K], an inverse variance: [M * K].

    Of noise that is known row by row the smallest counts, as of inputs that were kept earlier none is.
    """
    found = outputs.reshape(-1, spec.num_outputs).T
    noise = data.row_noise
    if noise is not None:
        noise = np.min(noise, axis=-1, keepdims=True) * np.ones_like(found)
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


def _of_noise(spec: NetworkSpec, top: Top, spread: Array) -> tuple[Array, Array]:
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
