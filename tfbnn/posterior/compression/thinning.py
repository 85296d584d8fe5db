"""Choosing a few out of many draws: equal spacing and kernel thinning.

Everything here is NumPy on arrays; draws are numbered, and a choice is an array of numbers. A draw
may be chosen more than once.

References:
    Dwivedi and Mackey (2024), "Kernel thinning", JMLR 25(152), arXiv:2105.05842.
    Dwivedi and Mackey (2022), "Generalized kernel thinning", ICLR, arXiv:2110.01593.
    Sejdinovic, Sriperumbudur, Gretton and Fukumizu (2013), "Equivalence of distance-based and
    RKHS-based statistics in hypothesis testing", Ann. Statist. 41(5), 2263, arXiv:1207.6076.
"""

from __future__ import annotations

import numpy as np

from tfbnn.system.arrays import Array
from tfbnn.system.extras import required

# Weight of the squares in the kernel of predictions. Measured on cross sections at new inputs: more
# keeps standard deviations better where there are many reference inputs, and means worse.
_SQUARES = 0.1

# Failure probability of one halving, which sets how far it lets its sums wander.
_DELTA = 0.5
# A swap has to lower the discrepancy by more than its rounding error.
_LEAST_GAIN = 1e-12


def stride(weights: Array, count: int) -> Array:
    """Equally spaced draws, by weight: systematic sampling without a random start.

    Args:
        weights: Weights of the draws [N], adding up to 1.
        count: Number of draws to choose.

    Returns:
        Draws [count], ascending; with equal weights all different for count <= N.
    """
    levels = (np.arange(count) + 0.5) / count
    # A level between two draws belongs to the earlier one, whichever way the sum was rounded.
    return np.searchsorted(np.cumsum(weights) * (1.0 + 1e-9), levels).clip(max=len(weights) - 1)


def prediction_kernel(columns: Array, weights: Array) -> Array:
    """Gram matrix [N, N] of a kernel that compares the distributions of every column.

    k(u, v) = (|u| + |v| - |u - v|) / 2 + 0.1 u^2 v^2 of one column, standardised under the
    weights, averaged over columns. The discrepancy that the first part measures between two sets
    of draws is half their energy distance (Sejdinovic et al. 2013), the integral of the squared
    difference of the distribution functions: it holds means and quantiles, has no length scale,
    and far outliers cannot dominate it. The second part is the squared difference of the variances.

    Args:
        columns: Finite values [N, M].
        weights: [N], adding up to 1.

    Raises:
        ImportError: When SciPy is not installed.
        ValueError: When all draws are the same in every column.
    """
    spatial = required("scipy.spatial.distance", "compress needs SciPy", "fit")
    columns = columns[:, np.ptp(columns, axis=0) > 0]
    if not columns.size:
        raise ValueError(
            "All draws predict the same at the reference inputs, so that there is nothing to "
            "choose by. Pass other x_reference, or use method='stride'."
        )
    centred = columns - weights @ columns
    standardised = centred / np.sqrt(weights @ np.square(centred))
    size = np.abs(standardised).sum(axis=1)
    distance = spatial.squareform(spatial.pdist(standardised, "cityblock"))
    squares = np.square(standardised)
    products = squares @ squares.T
    gram: Array = (0.5 * (size[:, None] + size - distance) + _SQUARES * products) / len(squares.T)
    return gram


def kernel_thinning(gram: Array, weights: Array, count: int, seed: int) -> Array:
    """Draws whose kernel mean is close to that of all draws (Dwivedi and Mackey 2024).

    Repeated halving offers several choices (KT-SPLIT, with the kernel itself as in Dwivedi and
    Mackey 2022); the best of these and of the stride is then improved draw by draw (KT-SWAP),
    until no exchange helps. So it is never further off than the stride.

    Args:
        gram: Kernel between all draws [N, N].
        weights: Weights of the draws in the distribution to be kept [N], adding up to 1.
        count: Number of draws to choose, at most N.
        seed: Of the halving's coins.

    Returns:
        Draws [count], ascending.
    """
    generator = np.random.default_rng(seed)
    rounds = int(np.log2(len(gram) / count))
    parts = [stride(weights, count * 2**rounds)]
    for _ in range(rounds):
        parts = [half for part in parts for half in _halve(gram, part, generator)]
    target = gram @ weights

    def discrepancy(chosen: Array) -> float:
        return float(gram[np.ix_(chosen, chosen)].mean() - 2.0 * target[chosen].mean())

    best = min([stride(weights, count), *parts], key=discrepancy)
    return np.sort(_swap(gram, target, best))


def _halve(gram: Array, part: Array, generator: np.random.Generator) -> Array:
    """Splits an even number of draws into two halves of nearly the same kernel mean.

    Of every pair one goes to each half, at random, but preferably so that the difference of the
    halves' kernel sums stays small (Dwivedi and Mackey 2024, algorithm 1a).
    """
    halves = np.empty((2, len(part) // 2), int)
    difference, variance = np.zeros(len(gram)), 0.0
    spread = 2.0 * np.log(len(part) / _DELTA)
    for place, (one, other) in enumerate(part.reshape(-1, 2)):
        # Squared distance of the pair, and how the sums lean towards its first draw.
        distance = max(gram[one, one] + gram[other, other] - 2.0 * gram[one, other], 0.0)
        lean = difference[one] - difference[other]
        if distance > 0:
            bound = max(np.sqrt(distance * variance * spread), distance)
            growth = 1.0 + (distance - 2.0 * bound) * variance / bound**2
            variance += max(distance * growth, 0.0)
            if generator.random() < 0.5 * (1.0 + lean / bound):
                one, other = other, one
        halves[:, place] = one, other
        difference += gram[one] - gram[other]
    return halves


def _swap(gram: Array, target: Array, chosen: Array) -> Array:
    """Exchanges one draw after the other for the one that lowers the discrepancy most."""
    chosen, count = chosen.copy(), len(chosen)
    half_diagonal = 0.5 * np.diag(gram)
    total = gram[chosen].sum(axis=0)
    improved = True
    while improved:
        improved = False
        for place, old in enumerate(chosen):
            total -= gram[old]
            # Half the discrepancy times count, as far as it depends on the new draw.
            cost = (total + half_diagonal) / count - target
            new = int(np.argmin(cost))
            if cost[new] < cost[old] - _LEAST_GAIN:
                chosen[place], improved = new, True
            total += gram[chosen[place]]
    return chosen
