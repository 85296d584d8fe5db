"""Tests for user-defined priors and likelihoods: check that their methods agree with each other."""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import Any

import numpy as np

from tfbnn.engine.density.densities import check_gradient, noise_information, values_of
from tfbnn.spec.network_spec import REGISTRY
from tfbnn.spec.own_classes import check_settings, with_custom
from tfbnn.spec.own_densities import (
    MASS_TOLERANCE,
    CustomNoise,
    CustomPrior,
    centre_and_width_of,
    integrals,
    moments_by_quadrature,
)
from tfbnn.system.arrays import Array

# Number of draws compared with the distribution function, and levels of the quantiles at which it is
# evaluated. The rate at which a correct sampler is refused, over all seeds; the seed here is fixed.
_DRAWS, _LEVELS, _FALSE_ALARMS = 100_000, np.arange(1, 200) / 200, 1e-5
# Number of points at which derivatives are compared, and the relative step. The tolerance is relative to
# the gradient, or to one over the spread. Steps that cross a kink may differ, at few of the points.
_POINTS, _STEP, _GRADIENT_TOLERANCE, _MOST_KINKS = 500, 6e-6, 1e-4, 0.02
# Tolerance of values in float32 against those in float64, relative to 1 + |value|.
_FLOAT32_TOLERANCE = 1e-3
_TOLERANCE = 1e-4
# Noise with exponential moments has a mean of exp(a z / stddev) at every a; this a is checked.
_EXPONENT = 4.0


def check_prior(prior: CustomPrior) -> None:
    """Check a user-defined prior, in a few tenths of a second and without a fit.

    - Its settings survive JSON, as in a file, and are equal and hash alike afterwards.
    - Value and gradient are finite at draws and agree in float32 and float64. The gradient agrees with
      central differences.
    - `log_prob` is normalised, by quadrature to 1e-4, and has no mass outside the limits.
    - `sample` returns the requested shapes, and the same draws for the same generator.
    - The draws follow the density: 100 000 draws with a fixed seed are compared with the distribution
      function. A sampler whose distribution function is wrong by .02 somewhere is found with a
      probability above .999; a correct one is refused with a probability below 1e-5 (Dvoretzky, Kiefer
      and Wolfowitz 1956, Ann. Math. Stat. 27, 642, with the constant of Massart 1990).
    - The density is even if `is_even` is True.

    Args:
        prior: An instance of a class that inherits from `CustomPrior`.

    Raises:
        TypeError, ValueError: Names the check that failed, the size of the error and a possible cause.
            Errors of `log_prob` itself are not caught.

    Example:
        tfbnn.priors.check_prior(Logistic(0.5))
    """
    _check_settings(prior, CustomPrior)
    for shape in ((5,), (2, 3)):
        found, again = (prior.sample(np.random.default_rng(0), shape) for _ in range(2))
        is_right = np.shape(found) == shape and np.array_equal(found, again)
        what = (
            f"must return the shape it is asked for, {shape}, and the same for the same generator"
        )
        _require(prior, is_right, f".sample {what}, received {found!r:.99} and {again!r:.99}")
    draws = np.asarray(prior.sample(np.random.default_rng(0), (_DRAWS,)), np.float64)
    lower, median, upper = np.quantile(draws, [0.25, 0.5, 0.75]).tolist()
    centre_and_width = median, 0.5 * (upper - lower)
    values = _check_log_prob(prior, draws[:_POINTS], centre_and_width[1])
    if prior.is_even:
        gap = np.abs(values - values_of(prior, -draws[:_POINTS])).max()
        _require(
            prior, gap <= _TOLERANCE, f": is_even: log_prob differs by {gap:.3g} on both sides"
        )
    low, high = prior.limits
    edges = np.unique(np.quantile(draws[: _DRAWS // 5], _LEVELS))
    edges = edges[(edges > low) & (edges < high)]
    masses = _masses(prior, centre_and_width, np.array([low, *edges, high]))
    outside = masses[0] + masses[-1]
    what = (
        f"log_prob must be minus infinity outside of {prior.limits}, found a mass of {outside:.3g}"
    )
    _require(prior, outside <= _TOLERANCE, f": limits: {what}")
    # Kolmogorov-Smirnov distance.
    limit = sqrt(log(2.0 / _FALSE_ALARMS) / (2.0 * _DRAWS))
    shares = np.searchsorted(np.sort(draws), edges, side="right") / _DRAWS
    gap = np.abs(shares - np.cumsum(masses)[1:-2]).max()
    what = f"shares of draws differ from log_prob by {gap:.4f}, by chance up to {limit:.4f}"
    _require(prior, gap <= limit, f": sample: {what}. Do both have the same scale, or its square?")


def check_noise(noise: CustomNoise) -> None:
    """Check a user-defined noise distribution, in a few tenths of a second and without a fit.

    - Its settings survive JSON, as in a file, and are equal and hash alike afterwards.
    - Value and gradient are finite at quantiles and agree in float32 and float64. The gradient agrees with
      central differences.
    - `log_prob` is normalised, by quadrature to 1e-4, and has a standard deviation. `moments`, if the
      class defines them, are right to 1e-4 of it.
    - `quantile` is the inverse of the distribution function, to 1e-4 at 199 probabilities.
    - The Fisher information is finite.
    - Exponential moments exist if `has_exponential_moments` is True.

    Args:
        noise: An instance of a class that inherits from `CustomNoise`.

    Raises:
        TypeError, ValueError: Names the check that failed, the size of the error and a possible cause.
            Errors of `log_prob` itself are not caught.

    Example:
        tfbnn.likelihoods.check_noise(Logistic())
    """
    _check_settings(noise, CustomNoise)
    edges = np.asarray(noise.quantile(_LEVELS[:, None]), np.float64)
    centre_and_width = centre_and_width_of(noise)
    is_right = edges.shape == (len(_LEVELS), 1) and np.isfinite(edges).all()
    _require(
        noise, is_right, f".quantile must return the shape of its argument, received {edges.shape}"
    )
    _require(
        noise, np.all(np.diff(edges, axis=0) > 0), ".quantile must ascend with the probability"
    )
    uniform = np.random.default_rng(0).uniform(size=_POINTS)
    _check_log_prob(noise, np.asarray(noise.quantile(uniform), np.float64), centre_and_width[1])
    below = np.cumsum(_masses(noise, centre_and_width, edges[:, 0]))[:-1]
    gap = np.abs(below - _LEVELS).max()
    what = f"it differs from log_prob by {gap:.5f}. Do both have the same width?"
    _require(noise, gap <= _TOLERANCE, f": quantile: {what}")
    stated, found = noise.moments, moments_by_quadrature(noise)
    gap = np.abs(np.subtract(stated, found)).max()
    what = f"by quadrature they are {found}, received {tuple(stated)}. Leave them out"
    _require(noise, gap < _TOLERANCE * found[1], f": moments: {what}")
    noise_information(noise)
    if noise.has_exponential_moments:
        rate = _EXPONENT / found[1]
        what = f"has_exponential_moments: exp({_EXPONENT:g} z / stddev) has no mean. Leave it False"
        _integrals(noise, what, centre_and_width, lambda z: rate * np.abs(z))


def _require(own: CustomPrior | CustomNoise, is_right: Any, otherwise: str) -> None:
    if not is_right:
        raise ValueError(f"{type(own).__name__}{otherwise}.")


def _check_settings(own: CustomPrior | CustomNoise, kind: type) -> None:
    if not isinstance(own, kind):
        raise TypeError(
            f"expected a class that inherits from {kind.__name__}, received {own!r:.200}."
        )
    check_settings(own, with_custom(REGISTRY, [type(own)]))


def _check_log_prob(own: CustomPrior | CustomNoise, points: Array, spread: float) -> Array:
    """Check value and gradient at points [n] in both precisions; return the values."""
    in_float32, _ = check_gradient(own, points, "float32")
    values: Array
    values, gradient = check_gradient(own, points, "float64")
    # Both take the same rounded inputs, so that only the rounding of the computation differs.
    rounded = values_of(own, points.astype(np.float32).astype(np.float64))
    gap = (np.abs(in_float32 - rounded) / (1.0 + np.abs(rounded))).max()
    what = f"log_prob is off by {gap:.3g} of its size. Use log1p, softplus or logsumexp"
    _require(own, gap <= _FLOAT32_TOLERANCE, f": float32: {what} where numbers nearly cancel")
    step = _STEP * (np.abs(points) + spread)
    slope = (values_of(own, points + step) - values_of(own, points - step)) / (2.0 * step)
    gaps = np.abs(slope - gradient) / (np.abs(gradient) + 1.0 / spread)
    share = np.mean(~(gaps < _GRADIENT_TOLERANCE))
    what = f"at {100 * share:.0f} % of {len(points)} points it is not that of central differences"
    _require(own, share <= _MOST_KINKS, f": gradient: {what}. Is a part computed with NumPy?")
    return values


def _masses(
    own: CustomPrior | CustomNoise, centre_and_width: tuple[float, float], edges: Array
) -> Array:
    """Return the probabilities between edges and beyond the outer ones. Check that they sum to one."""
    masses = _integrals(own, "normalisation: no integral", centre_and_width, lambda z: 0.0, edges)
    mass = float(masses.sum())
    what = f"exp(log_prob) has the integral {mass:.6g}. Subtract {log(mass):.6g} from log_prob"
    _require(own, abs(mass - 1.0) <= MASS_TOLERANCE, f": normalisation: {what}")
    return masses


def _integrals(
    own: CustomPrior | CustomNoise,
    what: str,
    centre_and_width: tuple[float, float],
    log_weight: Callable[[Array], Any],
    edges: Array | tuple[()] = (),
) -> Array:
    def weighted(z: Array) -> Array:
        with np.errstate(over="ignore"):
            density: Array = np.exp(values_of(own, z) + log_weight(z))[None]
        return density

    try:
        return integrals(weighted, *centre_and_width, edges)[:, 0]
    except ValueError as error:
        raise ValueError(f"{type(own).__name__}: {what}: {error}.") from error
