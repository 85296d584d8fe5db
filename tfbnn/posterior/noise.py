"""The noise in a predictive distribution: its spread, and points that stand for it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tfbnn.posterior.averages import root_mean_square
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.likelihoods import NormalNoise, Regression
from tfbnn.system.arrays import Array, read_only

# Equally weighted points that stand for the predictive distribution with noise.
NOISE_POINTS = 4096


def noise_spread(scale: Array, weights: Array) -> Array:
    """Root mean square over draws of noise scales that fit locations [C * S, n, K]: fits [n, K]."""
    return root_mean_square(scale, weights) if scale.ndim == 3 else scale


def sample_noisy(ensemble: Ensemble, location: Array, scale: Array) -> tuple[Array, Array]:
    """Represents the predictive distribution with noise by weighted points.

    Every draw contributes its noise quantiles at stratified levels that are shared by all rows, so
    results depend neither on the order of rows nor on how they are split, and need no seed.

    Args:
        ensemble: Ensemble.
        location: [C * S, n, K] in transformed space.
        scale: Noise standard deviations, broadcastable to `location`.

    Returns:
        (points [C * S * R, n, K] in transformed space, weights [C * S * R]).
    """
    noise = _noise_quantiles(ensemble.spec.regression_likelihood, ensemble.num_draws)
    repeats = noise.shape[1]
    scale = np.broadcast_to(scale, location.shape)
    points = location[:, None] + noise[:, :, None, None] * scale[:, None]
    weights = np.repeat(ensemble.draw_weights / repeats, repeats)
    return points.reshape(-1, *location.shape[1:]), weights


def mean_of_target(ensemble: Ensemble, location: Array, scale: Array) -> Array:
    """Mean of a new target in original units [n, K], noise included, without sampling it.

    It is infinite where the transform is not affine and the noise has tails such as a Student-t's.

    Args:
        ensemble, location, scale: As in `sample_noisy`.
    """
    likelihood, pipeline = ensemble.spec.regression_likelihood, ensemble.y_pipeline
    if not ensemble.has_mean_of_target:
        return np.full(location.shape[1:], np.inf)
    weights, means = ensemble.draw_weights, None
    if pipeline.is_affine:
        means = pipeline.inverse(location)
    elif isinstance(likelihood, NormalNoise):
        means = pipeline.mean_of_normal(location, scale)
    if means is None:
        points, weights = sample_noisy(ensemble, location, scale)
        means = pipeline.inverse(points)
    mean: Array = np.einsum("s,snk->nk", weights, means)
    return mean


@lru_cache(maxsize=8)  # the same for every tile
def _noise_quantiles(likelihood: Regression, num_draws: int) -> Array:
    """Quantiles of the noise with standard deviation 1 at the levels of each draw [C * S, R]."""
    repeats = -(-NOISE_POINTS // num_draws)
    levels = (np.arange(repeats) + _radical_inverse(num_draws)[:, None]) / repeats
    return read_only(likelihood.noise_quantile(levels))


def _radical_inverse(count: int) -> Array:
    """The first `count` numbers of van der Corput's sequence in base 2, strictly inside (0, 1)."""
    indices = np.arange(1, count + 1)
    result, weight = np.zeros(count), 0.5
    while indices.any():
        result += weight * (indices & 1)
        indices >>= 1
        weight *= 0.5
    return result
