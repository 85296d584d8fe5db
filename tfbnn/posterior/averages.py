"""Weighted averages over draws."""

from collections.abc import Sequence

import numpy as np

from tfbnn.system.arrays import Array

# Exponent of two such that its inverse, and the square of any number scaled by it, are finite.
_MOST_EXPONENT = 1000


def moments(values: Array, weights: Array) -> tuple[Array, Array]:
    """Compute mean and standard deviation over the first axis: values [M, ...], weights [M] -> [...]."""
    mean = np.einsum("s,s...->...", weights, values)
    with np.errstate(invalid="ignore"):  # infinite draws have an undefined spread
        return mean, root_mean_square(values - mean, weights)


def root_mean_square(values: Array, weights: Array) -> Array:
    """Compute the root mean square over the first axis: values [M, ...], weights [M] -> [...].

    Squares of 1e200 or 1e-200 are out of range, so every entry of the result has a unit: a power of
    two, which changes no digit.
    """
    largest = np.maximum(values.max(axis=0), -values.min(axis=0))
    exponent = np.minimum(np.maximum(np.frexp(largest)[1], -_MOST_EXPONENT), _MOST_EXPONENT)
    unit = np.ldexp(1.0, exponent)
    with np.errstate(over="ignore", invalid="ignore"):  # beside infinite values
        scaled = values * (1.0 / unit)
        mean = np.einsum("s,s...->...", weights, np.square(scaled, out=scaled))
        return unit * np.sqrt(mean)


def weighted_quantiles(values: Array, weights: Array, probabilities: Sequence[float]) -> Array:
    """Compute quantiles over the first axis: values [M, ...], weights [M] -> [Q, ...].

    Each value sits in the middle of its weight, with linear interpolation in between; for equal
    weights this is Hazen's definition.
    """
    used = weights > 0  # a point without weight would still bend the interpolation
    if not used.all():
        values, weights = values[used], weights[used]
    flat = values.reshape(len(values), -1)
    order = np.argsort(flat, axis=0)
    ordered = np.take_along_axis(flat, order, axis=0)
    spread = weights[order]
    middles = np.cumsum(spread, axis=0) - 0.5 * spread
    found = [
        np.interp(probabilities, middles[:, column], ordered[:, column])
        for column in range(flat.shape[1])
    ]
    return np.stack(found, axis=1).reshape(len(probabilities), *values.shape[1:])


def log_mean_exp(values: Array, weights: Array) -> Array:
    """Compute the log of the weighted mean of exp(values): values [S, ...], weights [S] -> [...].

    The result is -inf where all values are.

    Weights enter as logarithms. Values that carry no weight, or hardly any, then cannot push the
    others below the smallest number.
    """
    with np.errstate(divide="ignore"):  # log 0 of a chain without weight
        logarithms = np.log(weights)
    values = values + logarithms.reshape(-1, *[1] * (np.ndim(values) - 1))
    largest = values.max(axis=0)
    shift = np.where(np.isneginf(largest), 0.0, largest)
    with np.errstate(divide="ignore"):
        return shift + np.log(np.exp(values - shift).sum(axis=0))


def crps(points: Array, weights: Array, y: Array) -> Array:
    """Compute the CRPS of weighted points [M, n, K] against y [n, K].

    The continuous ranked probability score is E|X - y| - E|X - X'| / 2 (Gneiting and Raftery 2007,
    JASA 102, 359, equation 21). The second term is computed from sorted points.
    """
    distance = np.einsum("m,mnk->nk", weights, np.abs(points - y))
    with np.errstate(invalid="ignore"):  # infinite points have no finite score
        return distance - 0.5 * mean_difference(points, weights)


def mean_difference(points: Array, weights: Array) -> Array:
    """Compute E|X - X'| [n, K] of two independent draws of weighted points [M, n, K]."""
    order = np.argsort(points, axis=0)
    ordered, spread = np.take_along_axis(points, order, axis=0), weights[order]
    below = np.cumsum(spread, axis=0)
    with np.errstate(invalid="ignore"):
        return 2.0 * np.sum(spread * ordered * (2.0 * below - spread - 1.0), axis=0)
