"""Noise around a network's outputs that a user defines."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any, ClassVar

import numpy as np

from tfbnn.spec.choices import AUTO
from tfbnn.spec.likelihoods.regression import LEARNED, LocationScale
from tfbnn.spec.own.quadrature import integrals
from tfbnn.spec.priors.base import ScalePrior
from tfbnn.system.arrays import Array

# Of the second moment, what may come from beyond _FAR widths: of more a standard deviation is a
# number that depends on where the integral ends.
_MOST_BEYOND, _FAR = 1e-3, 1e15
# How far the integral of a density may be from one.
MASS_TOLERANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class CustomNoise(LocationScale):
    """Noise of your own around the outputs: inherit from this, in a frozen dataclass of settings.

    You write the noise in whatever form is easiest, by two methods: the log density of z in
    TensorFlow, and its quantiles in NumPy. It is then shifted and stretched to the mean 0 and the
    standard deviation `noise_scale`, so that f(x) is the mean of the targets and `noise_scale` means
    what it does everywhere; mean and standard deviation of z, and the Fisher information, are found by
    quadrature. `check_noise` tells whether the two methods belong together. Scales are fixed, per row
    or learned, as of `Gaussian`. Files have the name of the class and its settings and never code, so
    loading one takes the class: `tfbnn.load(path, custom=[Logistic])`.

    Attributes:
        noise_scale: Standard deviation after the y transform: a number, an array [K], or "learned"
            (default): one per output, sampled as log scale.
        scale_prior: Prior of a learned scale; "auto" (default): HalfNormal(1.0).
        has_exponential_moments: Whether exp(a z) has a mean for every a, as 10**y needs it; default
            False: means of targets behind log10 are then infinite where noise is included, and
            quantiles are what to use.

    Example:
        @dataclass(frozen=True)
        class Logistic(tfbnn.likelihoods.CustomNoise):
            def log_prob(self, z):
                return -z - 2.0 * tf.math.softplus(-z)

            def quantile(self, probability):
                return np.log(probability / (1.0 - probability))

        tfbnn.likelihoods.check_noise(Logistic())
        model = tfbnn.BayesianMLP([5, 50, 1], likelihood=Logistic())
    """

    noise_scale: float | tuple[float, ...] | str = LEARNED
    scale_prior: ScalePrior | str = AUTO

    is_own: ClassVar[bool] = True
    has_exponential_moments = False

    @abstractmethod
    def log_prob(self, z: Any) -> Any:
        """Normalised log density of z, elementwise: finite everywhere, with gradients.

        Args:
            z: Tensor or array of any shape, float32 or float64.

        Returns:
            Tensor of the same shape and dtype, by pure operations of TensorFlow. XLA compiles it
            unless a fit says jit_compile=False.
        """

    @abstractmethod
    def quantile(self, probability: Array) -> Array:
        """z at probabilities in (0, 1), an array of the same shape, by NumPy."""

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of z.

        By quadrature of `log_prob`, unless a class overrides it with two numbers that are known: then
        predictions with noise need no TensorFlow.

        Raises:
            ValueError: When z has no standard deviation, or `log_prob` is no density.
        """
        return moments_by_quadrature(self)

    def standardised(self, residual: Any, scale: Any) -> Any:
        """z of residuals y - f(x) of noise with standard deviation `scale`, arrays or tensors."""
        mean, stddev = self.moments
        return residual / scale * stddev + mean

    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        z = np.asarray(self.standardised(residual, scale), np.float64)
        constant = np.log(self.moments[1]) - np.log(scale)
        density: Array = density_values(self, z) + constant
        return density

    def noise_quantile(self, probability: Array) -> Array:
        mean, stddev = self.moments
        z: Array = (np.asarray(self.quantile(probability), np.float64) - mean) / stddev
        return z


def density_values(noise: CustomNoise, z: Array) -> Array:
    """`log_prob` at an array, as an array. Raises ValueError for another shape."""
    values = np.asarray(noise.log_prob(z), np.float64)
    if values.shape != z.shape:
        raise ValueError(
            f"{type(noise).__name__}.log_prob must return the shape of its argument, "
            f"{list(z.shape)}, received {list(values.shape)}. Compute elementwise, and sum nothing."
        )
    return values


def place_of(noise: CustomNoise) -> tuple[float, float]:
    """(Median, half of the width of the central half) by the quantiles.

    Raises:
        ValueError: When these are not ascending finite numbers.
    """
    low, median, high = np.asarray(noise.quantile(np.array([0.25, 0.5, 0.75])), float).tolist()
    if not -inf < low < median < high < inf:
        raise ValueError(
            f"{type(noise).__name__}.quantile must ascend, received {[low, median, high]} at 1/4, 1/2 "
            "and 3/4. Is it that of probabilities below z?"
        )
    return median, 0.5 * (high - low)


@lru_cache(maxsize=256)
def moments_by_quadrature(noise: CustomNoise) -> tuple[float, float]:
    """Mean and standard deviation of z, as in `CustomNoise.moments`."""
    centre, width = place_of(noise)
    name = type(noise).__name__

    def weighted(z: Array) -> Array:
        density, u = np.exp(density_values(noise, z)), (z - centre) / width
        return np.stack([density, u * density, u * u * density])

    try:
        cells = integrals(weighted, centre, width, [centre - _FAR * width, centre + _FAR * width])
    except ValueError as error:
        raise ValueError(f"{name}.log_prob has no moments: {error}.") from error
    mass, first, second = cells.sum(axis=0)
    if abs(mass - 1.0) > MASS_TOLERANCE:
        raise ValueError(
            f"{name}.log_prob must be a normalised density, found the integral {mass:.6g}. Is a "
            "constant missing, such as minus the log of a width?"
        )
    if second - cells[1, 2] > _MOST_BEYOND * second:
        raise ValueError(
            f"{name} must have a standard deviation, which its tails are too heavy for. Choose lighter "
            "ones, as of Student's t with more than two degrees of freedom."
        )
    stddev = width * float(np.sqrt(second - first**2))
    return float(centre + width * first), stddev
