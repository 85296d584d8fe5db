"""Likelihoods of numbers: settings and the NumPy side (location, noise scale, density, quantiles).

Their log densities in TensorFlow are in `tfbnn.engine.density.densities`; tests hold the two together.
`noise_scale` is always a standard deviation, on the scale the network sees.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import lgamma, log, pi, sqrt
from typing import Any

import numpy as np

from tfbnn.data.validation import check_number
from tfbnn.spec.choices import AUTO, is_auto
from tfbnn.spec.distributions import normal_quantile, student_t_quantile
from tfbnn.spec.likelihoods.base import Likelihood
from tfbnn.spec.priors import ScalePrior, check_scale_prior
from tfbnn.system.arrays import Array

LEARNED = "learned"


class Regression(Likelihood):
    """What all likelihoods of numbers share: noise of some scale around a location."""

    link = "identity"
    has_classes = False

    @property
    @abstractmethod
    def has_exponential_moments(self) -> bool:
        """Whether exp(noise) has a mean and a variance, as 10**y needs them."""

    @property
    def learns_noise(self) -> bool:
        """Whether rows tell at least a part of the noise, and not the user all of it."""
        return self.noise_scale is None or self.noise_scale == LEARNED

    @abstractmethod
    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array: ...

    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Log density summed over targets."""
        density: Array = self.log_noise_density(target - location, scale).sum(axis=-1)
        return density

    @abstractmethod
    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        """Elementwise log density of y - location for noise of standard deviation `scale`."""

    @abstractmethod
    def noise_quantile(self, probability: Array) -> Array:
        """Quantile of the noise with standard deviation 1."""


class NormalNoise(Regression):
    """Noise with a normal distribution."""

    has_exponential_moments = True

    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        density: Array = -0.5 * (residual / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
        return density

    def noise_quantile(self, probability: Array) -> Array:
        return normal_quantile(probability)


class LocationScale(Regression):
    """What Gaussian and StudentT share: every output is a location; the scale is fixed or learned.

    A known scale per row (`row_noise`) replaces a fixed scale and adds in quadrature to a learned
    one.
    """

    noise_scale: float | tuple[float, ...] | str
    scale_prior: ScalePrior | str

    def num_targets(self, num_outputs: int) -> int:
        return num_outputs

    def num_noise_parameters(self, num_outputs: int) -> int:
        """One per output where the scale is learned."""
        return num_outputs if self.noise_scale == LEARNED else 0

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array:
        if self.noise_scale == LEARNED:
            learned: Array = np.exp(log_noise_scale)[:, None, :]
            return learned if row_noise is None else np.hypot(learned, row_noise)
        if row_noise is not None:
            return row_noise
        return np.asarray(self.noise_scale, dtype=np.float64)

    def __post_init__(self) -> None:
        if not is_auto(self.scale_prior):
            check_scale_prior(self.scale_prior)
        if isinstance(self.noise_scale, str):
            if self.noise_scale != LEARNED:
                raise ValueError(
                    "noise_scale must be a positive number, one per output, or 'learned', "
                    f"received {self.noise_scale!r}."
                )
            return
        scales = np.asarray(self.noise_scale)
        if scales.ndim > 1:
            raise ValueError(
                f"noise_scale must be a number or an array [K], received shape {scales.shape}."
            )
        values = tuple(check_number("noise_scale", v, above=0) for v in scales.ravel().tolist())
        object.__setattr__(self, "noise_scale", values if scales.ndim else values[0])

    def check_outputs(self, num_outputs: int) -> None:
        """Refuses a number of outputs other than that of the noise scales."""
        if isinstance(self.noise_scale, tuple) and len(self.noise_scale) != num_outputs:
            raise ValueError(
                f"noise_scale must have one entry per output, {num_outputs}, received "
                f"{len(self.noise_scale)}."
            )


@dataclass(frozen=True)
class Gaussian(NormalNoise, LocationScale, name="gaussian"):
    """y ~ N(f(x), noise_scale^2), independent over rows and outputs.

    Attributes:
        noise_scale: Standard deviation after the y transform: a number, an array [K], or "learned"
            (default): one per output, sampled as log scale.
        scale_prior: Prior of a learned scale; "auto" (default): HalfNormal(1.0).
    """

    noise_scale: float | tuple[float, ...] | str = LEARNED
    scale_prior: ScalePrior | str = AUTO

    is_conjugate = True


@dataclass(frozen=True)
class StudentT(LocationScale, name="student_t"):
    """Student-t noise around f(x), for targets with outliers.

    The noise is t-distributed with `df` degrees of freedom, rescaled so that `noise_scale` is its
    standard deviation (the t scale is noise_scale * sqrt((df - 2) / df)).

    Attributes:
        df: Degrees of freedom, larger than 2 so that the standard deviation exists; default 4.
        noise_scale: Standard deviation after the y transform: a number, an array [K], or "learned"
            (default): one per output, sampled as log scale.
        scale_prior: Prior of a learned scale; "auto" (default): HalfNormal(1.0).
    """

    df: float = 4.0
    noise_scale: float | tuple[float, ...] | str = LEARNED
    scale_prior: ScalePrior | str = AUTO

    has_exponential_moments = False

    def __post_init__(self) -> None:
        check_number("df", self.df, above=2)
        super().__post_init__()

    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        spread = scale * np.sqrt((self.df - 2) / self.df)
        constant = lgamma((self.df + 1) / 2) - lgamma(self.df / 2) - 0.5 * log(self.df * pi)
        tail = -0.5 * (self.df + 1) * np.log1p((residual / spread) ** 2 / self.df)
        density: Array = constant - np.log(spread) + tail
        return density

    def noise_quantile(self, probability: Array) -> Array:
        quantile: Array = student_t_quantile(probability, self.df) * sqrt((self.df - 2) / self.df)
        return quantile


@dataclass(frozen=True)
class HeteroscedasticGaussian(NormalNoise, name="heteroscedastic"):
    """y ~ N(m(x), s(x)^2) where the network gives both: its last layer has 2 K units.

    The first K outputs are the means, softplus of the last K the standard deviations, after the y
    transform. A known scale per row adds in quadrature.
    """

    def num_targets(self, num_outputs: int) -> int:
        return num_outputs // 2

    def num_outputs(self, num_targets: int, num_classes: int = 0) -> int:
        """2 K for K targets."""
        return 2 * num_targets

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array:
        learned: Array = np.logaddexp(0.0, outputs[..., outputs.shape[-1] // 2 :])
        return learned if row_noise is None else np.hypot(learned, row_noise)

    def check_outputs(self, num_outputs: int) -> None:
        """Refuses a network whose last layer cannot hold means and scales."""
        if num_outputs % 2:
            raise ValueError(
                "HeteroscedasticGaussian needs an even last entry of layer_sizes, 2 K for K "
                f"targets (means, then scales), received {num_outputs}. "
                f"Use {2 * num_outputs} for {num_outputs} targets."
            )
