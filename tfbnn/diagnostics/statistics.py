"""Convergence diagnostics of Markov chains, vectorised over any number of quantities.

Every function takes draws shaped [C, S, ...] (chains, draws per chain, any shape) and works on
each trailing element by itself. A quantity is undefined, and its result NaN without a NumPy
warning, if it has fewer than four draws per chain, a non-finite draw, or one value in all draws.

References:
    Vehtari, Gelman, Simpson, Carpenter and Burkner (2021), "Rank-normalization, folding, and
    localization: an improved R-hat for assessing convergence of MCMC", arXiv:1903.08008.
    Geyer (1992), "Practical Markov chain Monte Carlo", Statistical Science 7(4).
    Papamarkou, Hinkle, Young and Womble (2019), "Challenges in Markov chain Monte Carlo for
    Bayesian neural networks", arXiv:1910.06539.
    Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari and Gelman (2022), "Nested R-hat: assessing the
    convergence of Markov chain Monte Carlo when running many short chains", arXiv:2110.13017.
    Betancourt (2016), "Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte
    Carlo", arXiv:1604.00695.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.diagnostics.autocovariance import autocovariance, centre, geyer_time, multi_chain_ess
from tfbnn.diagnostics.ranks import fold, normal_scores, split_chains
from tfbnn.system.arrays import Array, row_slices

# A block [m, C, S] of m quantities -> [m].
Statistic = Callable[[Array], Array]

# Two halves of two draws: the fewest for a variance within and between half chains.
MIN_DRAWS = 4
# Values per block of quantities: 8 MiB of draws, some 80 MiB with all intermediate arrays.
_BLOCK_VALUES = 1 << 20


def as_draws(draws: ArrayLike) -> Array:
    """Return draws as an array.

    Raises:
        ValueError: Unless draws have a chain and a draw dimension.
    """
    draws = np.asarray(draws)
    if draws.ndim < 2:
        raise ValueError(f"draws must have shape [C, S, ...], received {list(draws.shape)}.")
    return draws


def per_quantity(function: Statistic, draws: ArrayLike, *, in_units: bool = False) -> Array:
    """Apply a function to every quantity for which it is defined.

    Args:
        function: Maps a block [m, C, S] of m quantities, float64, finite, none of them constant
            and each scaled to at most one, to [m]. NumPy warnings are off while it runs.
        draws: [C, S, ...]; every trailing element is a quantity.
        in_units: Whether results [m] are in the units of the draws, and so are scaled back.

    Returns:
        [...], NaN for a quantity with fewer than four draws per chain, a non-finite draw, or the same
        value in all draws.

    Raises:
        ValueError: If draws has fewer than two dimensions.
    """
    draws = as_draws(draws)
    num_chains, num_draws, *trailing = draws.shape
    columns = draws.reshape(num_chains, num_draws, math.prod(trailing))
    results = np.full(columns.shape[2], np.nan)
    if num_chains > 0 and num_draws >= MIN_DRAWS:
        width = max(1, _BLOCK_VALUES // (num_chains * num_draws))
        for part in row_slices(columns.shape[2], width):
            _fill(results[part], function, columns[:, :, part], in_units)
    return results.reshape(trailing)[()]


def _fill(results: Array, function: Statistic, columns: Array, in_units: bool) -> None:
    """Write the results of the quantities that are defined, and leave the others."""
    # A contiguous copy [m, C, S]: sorts and FFTs then run along memory.
    block = np.ascontiguousarray(np.moveaxis(columns, -1, 0), dtype=float)
    defined = np.isfinite(block).all(axis=(1, 2)) & (block != block[:, :1, :1]).any(axis=(1, 2))
    if not defined.any():
        return
    # Scaling by powers of two is exact, and keeps the squares of extreme draws in range.
    exponents = np.frexp(np.abs(block[defined]).max(axis=(1, 2)))[1]
    # Chains that stand still divide by zero, which gives an infinite R-hat.
    with np.errstate(all="ignore"):
        values = function(np.ldexp(block[defined], -exponents[:, None, None]))
        results[defined] = np.ldexp(values, exponents) if in_units else values


def rhat(draws: ArrayLike, superchains: ArrayLike | None = None) -> Array:
    """Compute rank-normalised split R-hat: the larger of the plain and the folded version.

    The folded version detects chains that share a location and differ in scale. One chain is
    allowed: its two halves are compared, which finds drift but no second mode. If every half
    chain stands still, at more than one point, the result is infinite.

    Chains that share a start are not independent evidence. With several superchains the result is
    the larger of R-hat and nested R-hat (Margossian et al. 2022), which compares the means of
    superchains.

    Args:
        draws: [C, S, ...].
        superchains: Number of the superchain of each chain [C]: chains of one number share their
            start. By default each chain has its own.

    Raises:
        ValueError: If there are not as many superchain numbers as chains.

    Returns:
        [...], near 1 for chains that agree, NaN where undefined (see the module).
    """
    if superchains is not None and np.shape(superchains) != np.shape(draws)[:1]:
        raise ValueError(
            f"superchains must have one number per chain, shape {list(np.shape(draws)[:1])}, received "
            f"{list(np.shape(superchains))}."
        )
    if superchains is None or len(np.unique(superchains)) == 1:
        return per_quantity(_rank_rhat, draws)
    return np.fmax(rhat(draws), per_quantity(partial(_nested_rhat, np.asarray(superchains)), draws))


def split_rhat(draws: ArrayLike) -> Array:
    """Compute split R-hat of the draws themselves; it needs a finite variance, unlike `rhat`.

    Args:
        draws: [C, S, ...].

    Returns:
        [...], NaN where undefined (see the module), infinite as for `rhat`.
    """
    return per_quantity(lambda block: _rhat(split_chains(block)), draws)


def bulk_ess(draws: ArrayLike) -> Array:
    """Compute the effective sample size of rank-normalised draws, for the centre of the distribution.

    Args:
        draws: [C, S, ...].

    Returns:
        [...], a number of draws over all chains, NaN where undefined (see the module).
    """
    return per_quantity(lambda block: multi_chain_ess(normal_scores(split_chains(block))), draws)


def tail_ess(draws: ArrayLike) -> Array:
    """Compute the effective sample size of the indicators of the 5 % and 95 % quantiles, the smaller one.

    A tail in which ties make the indicator constant (many draws at a bound) is left out.

    Args:
        draws: [C, S, ...].

    Returns:
        [...], NaN where undefined (see the module) or where both indicators are constant.
    """
    return per_quantity(_tail_ess, draws)


def mcse_mean(draws: ArrayLike) -> Array:
    """Compute the Monte Carlo standard error of the mean: sd / sqrt(effective sample size of the mean).

    Args:
        draws: [C, S, ...].

    Returns:
        [...], in the unit of the draws, NaN where undefined (see the module).
    """
    return per_quantity(_mcse_mean, draws, in_units=True)


def geyer_ess(draws: ArrayLike) -> Array:
    """Compute the effective sample size of one chain, averaged over chains.

    Per chain it is S * naive variance / asymptotic variance, the latter from Geyer's initial
    monotone sequence, and at most S * log10(S). It does not detect disagreement between chains.
    Papamarkou et al. (2019) report it.

    Args:
        draws: [C, S, ...].

    Returns:
        [...], draws per chain, NaN where undefined (see the module) or where a chain is constant.
    """
    return per_quantity(_geyer_ess, draws)


def ebfmi(energy: ArrayLike) -> Array:
    """Compute the energy Bayesian fraction of missing information of every chain (Betancourt 2016).

    It is sum_s (E_s - E_s-1)^2 / sum_s (E_s - mean E)^2. Below about 0.3 the momentum draws
    change the energy too little for the sampler to reach the tails.

    Args:
        energy: [C, S], the Hamiltonian at every draw.

    Returns:
        [C], NaN for a chain that is constant, not finite or shorter than four.
    """
    return per_quantity(_ebfmi, as_draws(energy).T[None])


def _rhat(block: Array) -> Array:
    """Compute sqrt(var_plus / W): [m, C, S] -> [m], C >= 2."""
    num_draws = block.shape[-1]
    deviations, means = centre(block)
    within = np.sum(deviations**2, axis=-1).mean(axis=-1) / (num_draws - 1)
    return np.sqrt((num_draws - 1) / num_draws + means.var(axis=-1, ddof=1) / within)


def _rank_rhat(block: Array) -> Array:
    halves = split_chains(block)
    plain = _rhat(normal_scores(halves))
    # Folding may leave a constant (two values with the median between them): then plain R-hat counts.
    return np.fmax(plain, _rhat(normal_scores(fold(halves))))


def _nested_rhat(superchains: Array, block: Array) -> Array:
    """Compute nested R-hat of unsplit chains by ranks: the larger of the plain and the folded version."""
    members = [superchains == number for number in np.unique(superchains)]

    def of(scores: Array) -> Array:
        deviations, means = centre(scores)
        within = np.sum(deviations**2, axis=-1) / (scores.shape[-1] - 1)
        inside = [
            within[:, chains].mean(axis=1)
            + means[:, chains].var(axis=1, ddof=min(1, chains.sum() - 1))
            for chains in members
        ]
        between = np.var([means[:, chains].mean(axis=1) for chains in members], axis=0, ddof=1)
        return np.sqrt(1.0 + between / np.mean(inside, axis=0))

    return np.fmax(of(normal_scores(block)), of(normal_scores(fold(block))))


def _tail_ess(block: Array) -> Array:
    ends = np.quantile(block, [0.05, 0.95], axis=(1, 2), keepdims=True)
    return np.fmin(*(multi_chain_ess(split_chains(block <= end).astype(float)) for end in ends))


def _mcse_mean(block: Array) -> Array:
    return block.std(axis=(1, 2), ddof=1) / np.sqrt(multi_chain_ess(split_chains(block)))


def _geyer_ess(block: Array) -> Array:
    num_draws = block.shape[-1]
    covariances = autocovariance(centre(block)[0], num_draws)
    # The 0 / 0 of a constant chain is NaN.
    time = geyer_time(covariances / covariances[..., :1])
    return np.mean(num_draws / np.maximum(time, 1.0 / np.log10(num_draws)), axis=-1)


def _ebfmi(block: Array) -> Array:
    """Compute the fraction for m chains: [m, 1, S] -> [m]."""
    steps = np.diff(block, axis=-1)
    return np.sum(steps**2, axis=(1, 2)) / np.sum(centre(block)[0] ** 2, axis=(1, 2))
