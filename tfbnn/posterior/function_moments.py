"""Mean and spread of the function over all draws, and the noise around it.

`predict` and the exports ask here, so that their numbers agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tfbnn.posterior.averages import root_mean_square
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.forward import network_outputs
from tfbnn.spec.likelihoods import NormalNoise, Regression
from tfbnn.system.arrays import Array, read_only

# Equally weighted points that stand for the predictive distribution with noise.
NOISE_POINTS = 4096


@dataclass(frozen=True, eq=False)
class MomentNetworks:
    """Networks out of whose outputs come the moments.

    Attributes:
        ensemble: Theirs: the draws, with their mirror images where only those are known.
        in_closed_form: Whether all readouts are integrated out. The outputs then have means of
            readouts in place of readouts, and behind them G p further lines: the squares of those
            of a target, one of G, add up to the variance of its readout. Moments are taken on the
            scale the network sees, and carried to original units by `Ensemble.target_unit`.
    """

    ensemble: Ensemble
    in_closed_form: bool

    @property
    def weights(self) -> list[Array]:
        """Per layer what the network multiplies with, the bias last: [C * S, out, in + 1]."""
        stacked = self.ensemble.stacked_weights if self.in_closed_form else None
        return self.ensemble.effective_weights if stacked is None else stacked

    @property
    def roots_shape(self) -> tuple[int, int]:
        """(G, p) of the lines behind the outputs; p is the bias and the units of the last layer."""
        _, num_lines, num_features = self.weights[-1].shape
        return (num_lines - self.ensemble.spec.num_outputs) // num_features, num_features

    def moments(self, x: Array) -> tuple[Array, Array]:
        """(mean [n, K], standard deviation [n, K]) at inputs x [n, D], all of it transformed.

        For networks in closed form.
        """
        spec, weights = self.ensemble.spec, self.ensemble.draw_weights
        num_outputs = spec.num_outputs
        outputs = network_outputs(self.ensemble, x, self.weights).astype(np.float64)
        of_draw, roots = outputs[:, :num_outputs], outputs[:, num_outputs:]
        mean = np.einsum("s,skn->kn", weights, of_draw)
        # [C * S, p, G, n]; with G = 1 the same for all outputs.
        roots = roots.reshape(len(roots), *self.roots_shape, len(x)).swapaxes(1, 2)
        roots = np.broadcast_to(roots, (*roots.shape[:2], num_outputs, len(x)))
        deviations = np.concatenate([(of_draw - mean)[:, None], roots], axis=1)
        repeated = np.repeat(weights, deviations.shape[1])
        spread = root_mean_square(deviations.reshape(-1, num_outputs, len(x)), repeated)
        return mean.T, spread.T


def moment_networks(ensemble: Ensemble, space: str = "original") -> MomentNetworks:
    """Return the networks for the moments in `space`, of the chains that have a weight.

    In closed form where readouts were collapsed and their distributions kept, but only up to affine
    transforms: any other carries a normal distribution to one with moments of its own.
    """
    ensemble = ensemble.weighted
    is_affine = space == "transformed" or ensemble.y_pipeline.is_affine
    in_closed_form = is_affine and ensemble.stacked_weights is not None
    return MomentNetworks(ensemble if in_closed_form else ensemble.averaged, in_closed_form)


def noise_spread(scale: Array, weights: Array) -> Array:
    """Root mean square over draws of noise scales that fit locations [C * S, n, K]: fits [n, K]."""
    return root_mean_square(scale, weights) if scale.ndim == 3 else scale


def sample_noisy(ensemble: Ensemble, location: Array, scale: Array) -> tuple[Array, Array]:
    """Represent the predictive distribution with noise by weighted points.

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
    return np.einsum("s,snk->nk", weights, means)


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
