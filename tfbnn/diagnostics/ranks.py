"""Normal scores of ranks: the transformation behind rank-normalised R-hat and bulk ESS.

References:
    Vehtari, Gelman, Simpson, Carpenter and Burkner (2021), "Rank-normalization, folding, and
    localization: an improved R-hat for assessing convergence of MCMC", arXiv:1903.08008.
    Blom (1958), "Statistical estimates and transformed beta-variables".
"""

from functools import lru_cache

import numpy as np

from tfbnn.spec.distributions import normal_quantile
from tfbnn.system.arrays import Array

_BLOM_OFFSET = 3.0 / 8.0


def split_chains(draws: Array) -> Array:
    """Cut every chain into its first and its second half.

    A drift within a chain then shows as a difference between two chains. The middle draw of an
    odd number of draws is left out.

    Args:
        draws: [..., C, S].

    Returns:
        [..., 2 * C, S // 2].
    """
    half = draws.shape[-1] // 2
    return np.concatenate([draws[..., :half], draws[..., draws.shape[-1] - half :]], axis=-2)


def fold(draws: Array) -> Array:
    """Return the distance of every draw to the median over all chains.

    Chains that agree in location and differ in scale differ in the location of these distances.

    Args:
        draws: [..., C, S].

    Returns:
        [..., C, S], nonnegative.
    """
    return np.abs(draws - np.median(draws, axis=(-2, -1), keepdims=True))


def normal_scores(draws: Array) -> Array:
    """Replace every draw by the normal quantile of its rank among all chains.

    The score of rank r among N draws is Phi^-1((r - 3/8) / (N + 1/4)); tied draws share the mean
    of their ranks.

    Args:
        draws: [..., C, S], finite.

    Returns:
        [..., C, S] float64.
    """
    pooled = draws.reshape(*draws.shape[:-2], -1)
    return _scores(pooled.shape[-1])[_doubled_ranks(pooled)].reshape(draws.shape)


@lru_cache(maxsize=2)  # successive blocks of quantities have the same number of draws
def _scores(count: int) -> Array:
    """Return the scores of the ranks 1, 3/2, 2, .. among `count` draws.

    Mean ranks are multiples of 1/2.
    """
    ranks = 1.0 + 0.5 * np.arange(2 * count - 1)
    return normal_quantile((ranks - _BLOM_OFFSET) / (count + 1.0 - 2.0 * _BLOM_OFFSET))


def rank_correlation(a: Array, b: Array) -> Array:
    """Compute the rank correlation (Spearman 1904): a, b [..., N] -> [...], NaN if one is constant."""
    ranks = (_doubled_ranks(values) for values in (a, b))
    off = [one - one.mean(axis=-1, keepdims=True) for one in ranks]
    product, *squares = (np.sum(u * v, axis=-1) for u, v in (off, (off[0],) * 2, (off[1],) * 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return product / np.sqrt(np.prod(squares, axis=0))


def _doubled_ranks(values: Array) -> Array:
    """Return 2 * (mean rank - 1) along the last axis: integers in [0, 2 * N - 2]."""
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    doubled = np.empty(values.shape, dtype=np.intp)
    np.put_along_axis(doubled, order, _tie_bounds_sum(ordered), axis=-1)
    return doubled


def _tie_bounds_sum(ordered: Array) -> Array:
    """Return, for sorted values, first + last index of the run of equal values around each."""
    position = np.arange(ordered.shape[-1])
    step = ordered[..., 1:] != ordered[..., :-1]
    if step.all():  # no ties, the usual case for continuous draws
        return np.broadcast_to(2 * position, ordered.shape)
    edges = np.pad(step, [(0, 0)] * (step.ndim - 1) + [(1, 1)], constant_values=True)
    first = np.maximum.accumulate(np.where(edges[..., :-1], position, 0), axis=-1)
    last = np.where(edges[..., 1:], position, position[-1])[..., ::-1]
    return first + np.minimum.accumulate(last, axis=-1)[..., ::-1]
