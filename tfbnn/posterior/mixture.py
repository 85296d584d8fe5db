"""Mixture over draws of noise around their locations, on the scale the network sees.

`predict`, `predict_distribution`, scores and exports use it, so that their numbers agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from tfbnn.posterior.averages import log_mean_exp, moments, root_mean_square, weighted_quantiles
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.distributions import normal_quantile
from tfbnn.spec.likelihoods import Likelihood, Regression
from tfbnn.system.arrays import Array, read_only

# Equally weighted points that represent the predictive distribution with noise.
NOISE_POINTS = 4096
# Counts use fewer points, as each of them takes microseconds.
_COUNT_POINTS = 256
# Error that a quantile of counts may have before it is rounded up.
_OF_COUNT = 1e-6
# Newton's method for quantiles: error of the probability at which it ends; error, as a share of the
# tail, from which one more step reaches it; and most steps, nearly all of them bisections.
_TOLERANCE, _CLOSE, _MOST_STEPS = 1e-10, 1e-5, 100

# Uniform numbers inside (0, 1) are made from integers below this.
LEVELS = 2**52


def _tolerance(level: float) -> float:
    """Return the error of the probability at which the search ends: a share of the tail beyond 1e-4."""
    return max(_TOLERANCE * min(1.0, 1e4 * min(level, 1.0 - level)), 2e-16 * level)


class Mixture(NamedTuple):
    """Mixture over draws of noise around locations.

    Attributes:
        likelihood: Likelihood of the draws; one of numbers if there is a scale.
        weights: Weights of the draws [M].
        location: Locations of the draws [M, n, K].
        scale: Standard deviations of the noise, broadcastable to `location`; None for the locations
            alone.
    """

    likelihood: Likelihood
    weights: Array
    location: Array
    scale: Array | None

    @classmethod
    def of(cls, ensemble: Ensemble, location: Array, scale: Array | None) -> Mixture:
        """Return the mixture of all draws of an ensemble."""
        return cls(ensemble.spec.likelihood, ensemble.draw_weights, location, scale)

    @property
    def noise(self) -> Regression:
        """The likelihood as one of numbers."""
        return cast(Regression, self.likelihood)

    def at(self, rows: Any) -> Mixture:
        """Return the mixture of some rows."""
        scale = self.scale
        if scale is not None:
            scale = np.broadcast_to(scale, self.location.shape)[:, rows]
        return self._replace(location=self.location[:, rows], scale=scale)

    def moments(self, known: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """Compute mean and standard deviation, [n, K] each; `known` are those of the locations."""
        centre, spread = known or moments(self.location, self.weights)
        return centre, spread if self.scale is None else np.hypot(spread, self.noise_spread())

    def noise_spread(self) -> Array:
        """Compute the root mean square of the noise scales over draws, broadcastable to [n, K]."""
        scale: Any = self.scale
        return root_mean_square(scale, self.weights) if scale.ndim == 3 else scale

    def points(self) -> tuple[Array, Array]:
        """Return weighted points that represent the distribution: ([M * R, n, K], weights [M * R]).

        Every draw contributes its noise quantiles at stratified levels that are shared by all rows.
        Results thus depend neither on the order of rows nor on how they are split, and need no
        seed.
        """
        _, weights, location, scale = self
        if scale is None:
            return location, weights
        scale, num_points = np.broadcast_to(scale, location.shape), NOISE_POINTS
        if self.likelihood.has_counts:
            num_points = _COUNT_POINTS
            some = slice(None, None, max(1, len(weights) // num_points))
            weights, location, scale = weights[some], location[some], scale[some]
            weights = weights / weights.sum()
        scores = _noise_scores(self.noise, len(weights), num_points)
        repeats = scores.shape[1]
        points = self.noise.noisy(scores[:, :, None, None], location[:, None], scale[:, None])
        weights = np.repeat(weights / repeats, repeats)
        return points.reshape(-1, *location.shape[1:]), weights

    def cdf(self, t: Array) -> Array:
        """Compute the probability of at most t [n, K]."""
        is_count = self.likelihood.has_counts and self.scale is not None
        return self._cdf(np.floor(t) if is_count else t)

    def _cdf(self, t: Array) -> Array:
        """Compute the same, for counts continuous between integers."""
        if self.scale is None:
            below: Array = self.location <= t
        else:
            below = self.noise.cdf(t, self.location, self.scale)
        # Rounded weights may add up to more than 1.
        return np.minimum(np.einsum("m,mnk->nk", self.weights, below), 1.0)

    def log_density(self, t: Array) -> Array:
        """Compute the log density of each target at t [n, K]."""
        return log_mean_exp(self.noise.log_densities(t, self.location, self.scale), self.weights)

    def sample(self, size: int, joint: bool, generator: np.random.Generator) -> Array:
        """Draw t [size, n, K]; each joint draw is that of one network at all rows."""
        num_rows = self.location.shape[1]
        network = generator.choice(
            len(self.weights), size=(size, 1 if joint else num_rows), p=self.weights
        )
        t: Array = self.location[network, np.arange(num_rows)]
        if self.scale is None:
            return t
        scale = np.broadcast_to(self.scale, self.location.shape)[network, np.arange(num_rows)]
        return self.noise.noisy(self.noise.noise_quantile(uniform(generator, t.shape)), t, scale)

    def quantiles(self, levels: Sequence[float]) -> Array:
        """Compute the quantiles t [Q, n, K] at probabilities `levels`."""
        if self.scale is None:
            return weighted_quantiles(self.location, self.weights, levels)
        if not levels:
            return np.empty((0, *self.location.shape[1:]))
        centre, spread = self.moments()
        found = np.stack([self._quantile(level, centre, spread) for level in levels])
        if not self.likelihood.has_counts:
            return found
        found = np.maximum(np.ceil(found - _OF_COUNT), 0.0) + 0.0
        # Between counts the slope is rough, and Newton's method may end one count beside.
        for counts, level in zip(found, levels):
            counts -= (counts > 0) & (self._cdf(counts - 1.0) >= level)
            counts += self._cdf(counts) < level - _tolerance(level)
        return found

    def _ends(self, level: float, centre: Array, spread: Array) -> tuple[Array, Array]:
        """Return lower and upper bounds of a quantile [n, K]."""
        if self.likelihood.has_counts:  # Cantelli 1928, by mean and standard deviation
            below, above = np.sqrt((1.0 - level) / level), np.sqrt(level / (1.0 - level))
            return np.maximum(centre - below * spread, 0.0), centre + above * spread
        each = self.noise.noisy(
            self.noise.noise_quantile(np.array(level)), self.location, self.scale
        )
        return each.min(axis=0), each.max(axis=0)

    def _quantile(self, level: float, centre: Array, spread: Array) -> Array:
        # Newton's method starts at the quantile of a normal distribution. A step that leaves the bracket is
        # replaced by a bisection.
        low, high = self._ends(level, centre, spread)
        t = np.clip(centre + spread * normal_quantile(np.array(level)), low, high)
        rows, part, close = np.arange(len(t)), self, _CLOSE * min(level, 1.0 - level)
        for _ in range(_MOST_STEPS):
            here = t[rows]
            excess = part._cdf(here) - level
            low[rows] = np.where(excess < 0, here, low[rows])
            high[rows] = np.where(excess > 0, here, high[rows])
            left = np.any((np.abs(excess) > _tolerance(level)) & (low < high)[rows], axis=1)
            if not left.any():
                break
            if not left.all():
                rows, part, here, excess = rows[left], part.at(left), here[left], excess[left]
            densities = np.exp(self.noise.log_densities(here, part.location, part.scale))
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                new = here - excess / np.einsum("m,mnk->nk", self.weights, densities)
            inside = (new > low[rows]) & (new < high[rows])
            t[rows] = np.where(inside, new, 0.5 * (low[rows] + high[rows]))
            # Newton's method squares the error, so that one step more is enough.
            left = np.any(~inside | (np.abs(excess) > close), axis=1)
            if not left.any():
                break
            rows, part = rows[left], part.at(left)
        return t


def uniform(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw uniform random numbers strictly between 0 and 1."""
    return (generator.integers(LEVELS, size=shape) + 0.5) / LEVELS


@lru_cache(maxsize=8)  # the same for every tile
def _noise_scores(noise: Regression, num_draws: int, num_points: int) -> Array:
    """Return the noise scores at the levels of each draw [M, R]; see `Regression.noisy`."""
    repeats = -(-num_points // num_draws)
    levels = (np.arange(repeats) + _radical_inverse(num_draws)[:, None]) / repeats
    return read_only(noise.noise_quantile(levels))


def _radical_inverse(count: int) -> Array:
    """Return the first `count` numbers of van der Corput's sequence in base 2, strictly inside (0, 1)."""
    indices = np.arange(1, count + 1)
    result, weight = np.zeros(count), 0.5
    while indices.any():
        result += weight * (indices & 1)
        indices >>= 1
        weight *= 0.5
    return result
