"""Likelihoods of counts: Poisson, and negative binomial with learned overdispersion.

The outputs are logarithms of rates. A row may have a known offset, the logarithm of its exposure,
which adds to the outputs. It is passed where other likelihoods take the known noise scale of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbnn.spec.choices import AUTO
from tfbnn.spec.likelihoods import LEARNED, Regression, ScaledNoise
from tfbnn.spec.priors import ScalePrior
from tfbnn.system.arrays import Array
from tfbnn.system.words import required


class CountLikelihood(Regression):
    """Base class of the likelihoods of counts 0, 1, 2, ..

    Locations are rates times exposures, in the units of the targets, which no transform changes.
    Distribution functions are continuous between counts, as incomplete gamma and beta functions
    are. Distribution functions and densities need SciPy; means and standard deviations do not.
    """

    link = "exp"
    has_counts = True
    has_exponential_moments = False

    @property
    def learns_noise(self) -> bool:
        """False: the scatter of counts is not additive noise."""
        return False

    def location(self, outputs: Array, offset: Array | None = None) -> Array:
        logs = super().location(outputs)
        rates: Array = np.exp(logs if offset is None else logs + offset)
        return rates

    def inverse_link(self, location: Array) -> Array:
        """Return the locations unchanged: they are rates already."""
        return location

    def noise_quantile(self, probability: Array) -> Array:
        """Return the probability itself, from which `noisy` finds a count."""
        return probability


@dataclass(frozen=True)
class Poisson(CountLikelihood, name="poisson"):
    """Counts y ~ Poisson(exp(f(x) + offset)), independent over rows and outputs.

    Targets are whole numbers, 0 or more. The variance of a row is its mean; where rows scatter more,
    `NegativeBinomial` learns by how much.
    """

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array:
        return np.sqrt(self.location(outputs, row_noise))

    def log_densities(self, target: Array, location: Array, scale: Any) -> Array:
        special = _special()
        return special.xlogy(target, location) - location - special.gammaln(target + 1.0)

    def cdf(self, target: Array, location: Array, scale: Any) -> Array:
        below = _special().gammaincc(np.maximum(target, 0.0) + 1.0, location)
        return np.where(target < 0.0, 0.0, below)

    def noisy(self, score: Array, location: Array, scale: Any) -> Array:
        return _stats().poisson.ppf(score, location)


@dataclass(frozen=True)
class NegativeBinomial(ScaledNoise, CountLikelihood, name="negative_binomial"):
    """Counts whose rate scatters: mean m = exp(f(x) + offset), variance m + (noise_scale m)^2.

    The rate of a row is gamma distributed around m with the relative standard deviation
    `noise_scale`.

    Attributes:
        noise_scale: That relative standard deviation: a number, an array [K], or "learned"
            (default), which samples one log scale per output.
        scale_prior: Prior of a learned scale; "auto" (default): HalfNormal(1.0).
    """

    noise_scale: float | tuple[float, ...] | str = LEARNED
    scale_prior: ScalePrior | str = AUTO

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array:
        mean, relative = self.location(outputs, row_noise), np.asarray(self.noise_scale)
        if self.noise_scale == LEARNED:
            relative = np.exp(log_noise_scale)[:, None, :]
        return np.sqrt(mean + (relative * mean) ** 2)

    def log_densities(self, target: Array, location: Array, scale: Any) -> Array:
        special, number = _special(), _number(location, scale)
        # Differences of gammaln would lose their digits for large numbers.
        log_choices = -special.betaln(number, target + 1.0) - np.log(number + target)
        of_zero = -number * np.log1p(location / number)
        return log_choices + of_zero + special.xlogy(target, location / (number + location))

    def cdf(self, target: Array, location: Array, scale: Any) -> Array:
        number, counts = _number(location, scale), np.maximum(target, 0.0)
        below = _special().betainc(number, counts + 1.0, number / (number + location))
        return np.where(target < 0.0, 0.0, np.where(np.isposinf(target), 1.0, below))

    def noisy(self, score: Array, location: Array, scale: Any) -> Array:
        number = _number(location, scale)
        return _stats().nbinom.ppf(score, number, number / (number + location))


def _number(location: Array, scale: Array) -> Array:
    """Return the number r of a negative binomial distribution: variance = mean + mean^2 / r."""
    # Lower bound against rounding, for a variance hardly above the mean and for a rate of zero.
    least = np.finfo(np.float64).eps * location + np.finfo(np.float64).tiny
    return np.maximum(location**2 / np.maximum(scale**2 - location, least), 1e-12)


def _special() -> Any:
    return required("scipy.special", "Distributions of counts need SciPy", "fit")


def _stats() -> Any:
    return required("scipy.stats", "Distributions of counts need SciPy", "fit")
