"""Base classes of user-defined priors and noise, with integrals of their densities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, pi
from typing import Any, ClassVar

import numpy as np

from tfbnn.spec.choices import AUTO
from tfbnn.spec.distributions import gauss_points
from tfbnn.spec.likelihoods import LEARNED, LocationScale
from tfbnn.spec.priors import ScalePrior, WeightPrior
from tfbnn.system.arrays import Array

# End of the line, about 1e30 widths from the centre, and length of the first pieces, both in t.
_END, _LENGTH = 4.5, 0.2
# Allowed difference between a piece and its halves, in units of the integral; and how often a piece
# is halved, which locates a jump as sharply as float64 can.
_TOLERANCE, _ROUNDS = 1e-10, 60
# More pieces than a density with some kinks and jumps ever needs.
_MOST_PIECES = 20_000

Integrand = Callable[[Array], Array]


def integrals(
    integrand: Integrand, centre: float, width: float, edges: Sequence[float] | Array = ()
) -> Array:
    """Compute integrals over the cells into which ascending `edges` cut the real line: [cells, k].

    With z = centre + width sinh(pi/2 sinh t), tails of every power fall off doubly exponentially in
    t (Takahasi and Mori 1974, Publ. RIMS 9, 721). Pieces of t are halved where their Gauss-Legendre
    rule differs from that of the halves, so that kinks, jumps and logarithmic peaks are resolved
    too.

    Args:
        integrand: Points z, any shape, float64 -> k values at each, [k, *shape of z].
        centre, width: Approximate centre and width of the bulk of the integrand.
        edges: Ends of the inner cells, by default none: one cell.

    Raises:
        ValueError: If the integrand is not finite somewhere, or the integral does not converge.
    """
    transformed = np.arcsinh(
        2.0 / pi * np.arcsinh((np.asarray(edges, np.float64) - centre) / width)
    )
    inner = np.clip(transformed, -_END, _END)
    grid = np.linspace(-_END, _END, round(2 * _END / _LENGTH) + 1)
    ends = np.unique(np.concatenate([grid, inner]))
    low, high = ends[:-1], ends[1:]
    cell = np.searchsorted(inner, 0.5 * (low + high))

    def rule(low: Array, high: Array) -> Array:
        points, weights = gauss_points()
        t = low[:, None] + (high - low)[:, None] * points
        inner, slope = 0.5 * pi * np.sinh(t), 0.5 * pi * np.cosh(t)
        z = centre + width * np.sinh(inner)
        values = integrand(z)
        bad = ~np.isfinite(values).all(axis=0)
        if bad.any():
            raise ValueError(f"it is not finite at {z[bad].flat[0]:.6g}")
        return (high - low) * ((values * (width * np.cosh(inner) * slope)) @ weights)

    whole = rule(low, high)
    total = np.zeros((len(inner) + 1, len(whole)))
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        halves = np.stack([rule(low, middle), rule(middle, high)])
        found = halves.sum(axis=0)
        open_ = np.any(np.abs(found - whole) > _TOLERANCE * (1.0 + np.abs(found)), axis=0)
        np.add.at(total, cell[~open_], found[:, ~open_].T)
        if not open_.any():
            return total
        low = np.concatenate([low[open_], middle[open_]])
        high = np.concatenate([middle[open_], high[open_]])
        whole, cell = np.concatenate(list(halves[..., open_]), axis=1), np.tile(cell[open_], 2)
        if len(low) > _MOST_PIECES:
            raise ValueError("it varies too fast for its integral to be found")
    np.add.at(total, cell, whole.T)  # the remaining pieces have no width
    return total


_DRAWS = 40_001


class CustomPrior(WeightPrior):
    """Base class of user-defined priors: frozen dataclasses of numbers, names and booleans.

    The weights are independent, and each has the density that `log_prob` gives. Everything else
    follows: sampling, starts, the width by which coordinates are whitened, files. `check_prior`
    checks that the two methods agree. Files hold the name of the class and its settings but no
    code, so pass the class to load one: `tfbnn.load(path, custom=[Horseshoe])`.

    The ntk parameterisation takes a setting called `scale`, a positive number, out of the weights.
    Without such a setting, a model needs the standard parameterisation.

    Attributes:
        is_even: Whether w and -w have the same density, default False. If True, networks that
            differ only by the signs of their units are taken for one.
        limits: Ends (low, high) of the interval outside which the density is zero, by default the
            whole line; both finite or both infinite.

    Example:
        @dataclass(frozen=True)
        class Logistic(tfbnn.priors.CustomPrior):
            scale: float = 1.0
            is_even = True

            def log_prob(self, weights):
                z = weights / self.scale
                return -z - 2.0 * tf.math.softplus(-z) - math.log(self.scale)

            def sample(self, generator, shape):
                return generator.logistic(scale=self.scale, size=shape)

        tfbnn.priors.check_prior(Logistic(0.5))
        model = tfbnn.BayesianMLP([5, 50, 1], prior=Logistic(0.5))
    """

    is_own: ClassVar[bool] = True
    is_even = False

    @abstractmethod
    def log_prob(self, weights: Any) -> Any:
        """Compute the normalised log density of every weight.

        Args:
            weights: Tensor of any shape, float32 or float64.

        Returns:
            Tensor of the same shape and dtype, from pure TensorFlow operations with gradients;
            minus infinity outside the limits. XLA compiles it unless a fit says jit_compile=False.
        """

    @abstractmethod
    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw an array of independent weights of this shape.

        The NumPy generator must be the only source of randomness.
        """

    @property
    def spread(self) -> float:
        """Half the width of the central 68.27 %, from draws; it exists even without a variance.

        Coordinates are whitened as if weights were normal with this standard deviation. It affects
        how well chains move, but not what they sample.
        """
        return _spread_of_draws(self)

    @property
    def sizes(self) -> tuple[float, ...]:
        return (self.spread,)


@lru_cache(maxsize=256)
def _spread_of_draws(prior: CustomPrior) -> float:
    draws = prior.sample(np.random.default_rng(0), (_DRAWS,))
    low, high = np.quantile(draws, [0.158655, 0.841345])
    return float(0.5 * (high - low))


# Share of the second moment that may come from beyond _FAR widths: with a larger share, the
# standard deviation depends on where the integral ends.
_MOST_BEYOND, _FAR = 1e-3, 1e15
# How far the integral of a density may be from one.
MASS_TOLERANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class CustomNoise(LocationScale):
    """Base class of user-defined noise around the outputs: frozen dataclasses of settings.

    You write the noise in whatever form is easiest, with two methods: the log density of z in
    TensorFlow, and its quantiles in NumPy. It is then shifted and scaled to mean 0 and standard
    deviation `noise_scale`, so that f(x) is the mean of the targets and `noise_scale` has its usual
    meaning. Mean and standard deviation of z, and the Fisher information, are computed by
    quadrature. `check_noise` checks that the two methods agree. Scales are fixed, per row or
    learned, as for `Gaussian`. Files hold the name of the class and its settings but no code, so
    pass the class to load one: `tfbnn.load(path, custom=[Logistic])`.

    Attributes:
        noise_scale: Standard deviation after the y transform: a number, an array [K], or "learned"
            (default), which samples one log scale per output.
        scale_prior: Prior of a learned scale; "auto" (default): HalfNormal(1.0).
        has_exponential_moments: Whether exp(a z) has a mean for every a, which 10**y needs; default
            False. Means of targets behind log10 are then infinite if noise is included; use
            quantiles instead.

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

    has_exponential_moments = False

    @abstractmethod
    def log_prob(self, z: Any) -> Any:
        """Compute the normalised log density of z, elementwise: finite everywhere, with gradients.

        Args:
            z: Tensor or array of any shape, float32 or float64.

        Returns:
            Tensor of the same shape and dtype, from pure TensorFlow operations. XLA compiles it
            unless a fit says jit_compile=False.
        """

    @abstractmethod
    def quantile(self, probability: Array) -> Array:
        """Compute z at probabilities in (0, 1) with NumPy: an array of the same shape."""

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of z.

        They are computed by quadrature of `log_prob`, unless a class overrides this property with
        two known numbers. Predictions with noise then need no TensorFlow.

        Raises:
            ValueError: If z has no standard deviation, or `log_prob` is no density.
        """
        return moments_by_quadrature(self)

    def standardised(self, residual: Any, scale: Any) -> Any:
        """Return z for residuals y - f(x), arrays or tensors, with standard deviation `scale`."""
        mean, stddev = self.moments
        return residual / scale * stddev + mean

    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        z = np.asarray(self.standardised(residual, scale), np.float64)
        constant = np.log(self.moments[1]) - np.log(scale)
        return density_values(self, z) + constant

    def noise_quantile(self, probability: Array) -> Array:
        mean, stddev = self.moments
        return (np.asarray(self.quantile(probability), np.float64) - mean) / stddev


def density_values(noise: CustomNoise, z: Array) -> Array:
    """Evaluate `log_prob` at an array.

    Raises:
        ValueError: If the result has another shape.
    """
    values = np.asarray(noise.log_prob(z), np.float64)
    if values.shape != z.shape:
        raise ValueError(
            f"{type(noise).__name__}.log_prob must return the shape of its argument, "
            f"{list(z.shape)}, received {list(values.shape)}. Compute elementwise, and sum nothing."
        )
    return values


def centre_and_width_of(noise: CustomNoise) -> tuple[float, float]:
    """Compute the median, and half the width of the central half, from the quantiles.

    Raises:
        ValueError: If the quantiles are not ascending finite numbers.
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
    """Compute the mean and standard deviation of z, as described in `CustomNoise.moments`."""
    centre, width = centre_and_width_of(noise)
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
