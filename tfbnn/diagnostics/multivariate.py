"""Diagnostics of draws as vectors, where `statistics` takes every quantity by itself.

References:
    Brooks and Gelman (1998), "General methods for monitoring convergence of iterative
    simulations", J. Comput. Graph. Stat. 7, 434.
    Hron, Novak, Pennington and Sohl-Dickstein (2022), "Wide Bayesian neural networks have a
    simple weight posterior: theory and accelerated sampling", arXiv:2206.07673.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.data.validation import check_integer
from tfbnn.diagnostics.autocovariance import centre
from tfbnn.diagnostics.statistics import MIN_DRAWS, as_draws, bulk_ess
from tfbnn.system.arrays import Array


def multivariate_psrf(draws: ArrayLike) -> float:
    """Multivariate potential scale reduction factor of Brooks and Gelman (1998).

    The root of (S - 1) / S + (C + 1) / C * lambda, with lambda the largest generalised eigenvalue
    of the covariance of the chain means against the mean covariance within chains. No linear
    combination of the quantities has a larger factor, and the worst one may be seen in none of
    them. The paper writes its square; the root is on the scale of `split_rhat`, from which it
    differs in (C + 1) / C, and in that chains are not split.

    It asks for several times more draws than quantities: as P nears C * (S - 1) it is large
    whatever the chains do. Of the weights of a network take some, or predictions.

    Args:
        draws: [C, S, ...]; the trailing elements, P in number, are the quantities.

    Returns:
        Near 1 for chains that agree. Infinite if a linear combination of the quantities stands
        still in every chain, at more than one place. NaN with fewer than two chains, fewer than
        four draws per chain, a non-finite draw, or a quantity or a linear combination of them that
        has one value in all draws.

    Raises:
        ValueError: If draws has fewer than two dimensions, or if P is above C * (S - 1): then the
            covariance within chains is singular, whatever the draws are.
    """
    draws = as_draws(draws)
    num_chains, num_draws, *trailing = draws.shape
    size, freedom = math.prod(trailing), num_chains * (num_draws - 1)
    if num_chains < 2 or num_draws < MIN_DRAWS or size == 0:
        return math.nan
    if size > freedom:
        raise ValueError(
            f"multivariate_psrf needs at most C * (S - 1) = {freedom} quantities for {num_chains} "
            f"chains of {num_draws} draws, received {size}: the covariance within chains is "
            "singular. Give more draws, or fewer quantities."
        )
    block = np.moveaxis(draws.reshape(num_chains, num_draws, size), -1, 0).astype(float)
    if not np.isfinite(block).all():
        return math.nan
    deviations, means = _standardised(block)
    ratio = _largest_ratio(deviations.reshape(size, -1).T, means.T)
    return math.sqrt((num_draws - 1) / num_draws + (num_chains + 1) / num_chains * freedom * ratio)


def projected_ess(draws: ArrayLike, num_projections: int = 100, seed: int = 0) -> Array:
    """Effective sample sizes of draws projected on random directions, as in Hron et al. (2022).

    Of many quantities, such as all weights of a wide network, each is nearly independent of the
    others and says little; a projection sees them all, as their variances weigh them.

    Args:
        draws: [C, S, ...]; the trailing elements are one vector.
        num_projections: How many directions; default 100, as in the paper.
        seed: Of the directions, a nonnegative integer; default 0.

    Returns:
        [num_projections], `bulk_ess` of each: a number of draws over all chains, which sees
        disagreement between them. NaN where undefined, as there; all of them with one draw that
        is not finite. (Hron et al. have one chain, and do not rank its draws.)

    Raises:
        TypeError, ValueError: If num_projections is not a positive integer, seed not a nonnegative
            one, or draws has fewer than two dimensions.
    """
    draws = as_draws(draws)
    size = math.prod(draws.shape[2:])
    directions = random_directions(size, num_projections, seed)
    # From the first draw: draws that are all the same then stay so, however products round.
    with np.errstate(all="ignore"):
        steps = (draws - draws[:1, :1]).reshape(*draws.shape[:2], size)
        return bulk_ess(steps @ directions)


def random_directions(size: int, num_projections: int = 100, seed: int = 0) -> Array:
    """Unit vectors [size, num_projections] of uniform direction, float32, for `projected_ess`.

    For draws that are projected as they come, because all of them would fill the memory.

    Raises:
        TypeError, ValueError: As in `projected_ess`.
    """
    check_integer("num_projections", num_projections, minimum=1)
    check_integer("seed", seed, minimum=0)
    generator = np.random.default_rng(seed)
    directions = generator.standard_normal((size, num_projections), dtype=np.float32)
    lengths: Array = np.linalg.norm(directions, axis=0)
    return directions / lengths


def _standardised(block: Array) -> tuple[Array, Array]:
    """Deviations [P, C, S] and chain means [P, C] about zero, each quantity over its spread.

    Both are NaN for a quantity that has one value in all draws.
    """
    # Scaling by powers of two is exact, and keeps the squares of extreme draws in range.
    exponents = np.frexp(np.abs(block).max(axis=(1, 2), keepdims=True))[1]
    deviations, means = centre(np.ldexp(block, -exponents))
    means = means - means.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.mean(deviations**2, axis=(1, 2)) + np.mean(means**2, axis=1))
    spread[spread == 0] = np.nan
    return deviations / spread[:, None, None], means / spread[:, None]


def _largest_ratio(deviations: Array, means: Array) -> float:
    """Largest variance of chain means over the sum of squared deviations, of all combinations.

    Args:
        deviations: [N, P] within chains, N >= P, of quantities with a spread of one.
        means: [C, P] of the same quantities, about zero.
    """
    if np.isnan(means).any():
        return math.nan
    # Singular values of the deviations, and not eigenvalues of their covariance, keep all digits.
    _, widths, axes = np.linalg.svd(np.linalg.qr(deviations, mode="r"))
    offsets = means @ axes.T
    rounding = len(deviations) * np.finfo(float).eps
    standing = widths <= rounding * math.sqrt(len(deviations))
    if standing.any():
        return math.inf if np.abs(offsets[:, standing]).max() > rounding else math.nan
    largest = np.linalg.svd(offsets / widths, compute_uv=False)[0]
    return float(largest**2) / (len(means) - 1)
