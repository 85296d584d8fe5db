"""The test kit for priors and likelihoods of a user's own: whether what they say of themselves agrees."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from tfbnn.spec.network_spec import REGISTRY
from tfbnn.spec.own.classes import check_settings, with_custom
from tfbnn.spec.own.noise import MASS_TOLERANCE, CustomNoise, moments_by_quadrature, place_of
from tfbnn.spec.own.prior import CustomPrior
from tfbnn.spec.own.quadrature import integrals
from tfbnn.system.arrays import Array

# Draws that are held against the distribution function, and between how many of their quantiles this
# is known; the rate at which a right sampler is refused, for a seed that is not the fixed one.
_DRAWS, _CELLS, _FALSE_ALARMS = 100_000, 200, 1e-5
# What `sample` is asked for, here and there.
_SHAPES = (5, (2, 3))
# Points at which derivatives are looked at. Where a step crosses a kink they differ, which happens to
# few of them; relative to the gradient, or to one over the spread.
_POINTS, _STEP, _GRADIENT_TOLERANCE, _MOST_KINKS = 500, 6e-6, 1e-4, 0.02
# Of values in float32 against those in float64, relative to 1 + |value|.
_FLOAT32_TOLERANCE = 1e-3
_QUANTILE_TOLERANCE = 1e-4
# Noise with exponential moments has that of exp(a z / stddev) at every a.
_EXPONENT = 4.0


def check_prior(prior: CustomPrior) -> None:
    """Checks a prior of your own: a few tenths of a second, and no fit.

    - Its settings survive JSON, as in a file, and are equal and hash alike afterwards.
    - Value and gradient are finite at draws, in float32 and float64, and agree; the gradient is that of
      central differences.
    - `log_prob` is normalised, by quadrature to 1e-4, and has nothing outside the limits.
    - `sample` gives the shapes it is asked for, and the same draws for the same generator.
    - They are draws of the density: 100 000 of them against the distribution function, with a fixed seed. A
      sampler whose distribution function is wrong by .02 somewhere is found with a probability above
      .999; a right one is refused with a probability below 1e-5 (Dvoretzky, Kiefer and Wolfowitz 1956,
      Ann. Math. Stat. 27, 642, with the constant of Massart 1990).
    - It is even where it says so.

    Args:
        prior: An instance of a class that inherits from `CustomPrior`.

    Raises:
        TypeError, ValueError: Names the check that failed, by how much, and what may be wrong. What
            `log_prob` raises itself comes through.

    Example:
        tfbnn.priors.check_prior(Logistic(0.5))
    """
    _check_kind(prior, CustomPrior, "check_prior")
    _check_settings(prior)
    _check_sampler(prior)
    draws = np.asarray(prior.sample(np.random.default_rng(0), (_DRAWS,)), np.float64)
    lower, median, upper = np.quantile(draws, [0.25, 0.5, 0.75]).tolist()
    place = median, 0.5 * (upper - lower)
    _check_gradient(prior, draws[:_POINTS], place[1])
    if prior.is_even:
        _check_even(prior, draws[:_POINTS])
    inner = np.unique(np.quantile(draws[: _DRAWS // 5], np.arange(1, _CELLS) / _CELLS))
    lowest, highest = prior.limits
    inner = inner[(inner > lowest) & (inner < highest)]
    masses = _masses(prior, place, np.array([lowest, *inner, highest]))
    _check_mass(prior, masses)
    if max(masses[0], masses[-1]) > MASS_TOLERANCE:
        raise ValueError(
            f"{_name(prior)}: limits: log_prob must be minus infinity outside of {prior.limits}, found "
            f"a mass of {masses[0] + masses[-1]:.3g} there. Correct either of them."
        )
    _check_draws(prior, draws, inner, np.cumsum(masses)[1:-2])


def check_noise(noise: CustomNoise) -> None:
    """Checks noise of your own: a few tenths of a second, and no fit.

    - Its settings survive JSON, as in a file, and are equal and hash alike afterwards.
    - Value and gradient are finite at quantiles, in float32 and float64, and agree; the gradient is that
      of central differences.
    - `log_prob` is normalised, by quadrature to 1e-4, and has a standard deviation; `moments`, where a
      class states them, are right to 1e-4 of it.
    - `quantile` is the inverse of its distribution function, to 1e-4 at 199 probabilities.
    - The Fisher information is finite.
    - It has exponential moments where it says so.

    Args:
        noise: An instance of a class that inherits from `CustomNoise`.

    Raises:
        TypeError, ValueError: Names the check that failed, by how much, and what may be wrong. What
            `log_prob` raises itself comes through.

    Example:
        tfbnn.likelihoods.check_noise(Logistic())
    """
    from tfbnn.engine.density.own_classes import noise_information

    _check_kind(noise, CustomNoise, "check_noise")
    _check_settings(noise)
    levels = np.arange(1, _CELLS) / _CELLS
    edges, place = np.asarray(noise.quantile(levels), np.float64), place_of(noise)
    if not (np.isfinite(edges).all() and np.all(np.diff(edges) > 0)):
        raise ValueError(
            f"{_name(noise)}.quantile must ascend and be finite, found {np.diff(edges).min():.3g} for "
            "the smallest step between 199 probabilities. Is it that of probabilities below z?"
        )
    shape = np.shape(noise.quantile(levels[:, None]))
    if shape != (len(levels), 1):
        raise ValueError(
            f"{_name(noise)}.quantile must return the shape of its argument, {(len(levels), 1)}, "
            f"received {shape}. Compute elementwise."
        )
    uniform = np.random.default_rng(0).uniform(size=_POINTS)
    _check_gradient(noise, np.asarray(noise.quantile(uniform), np.float64), place[1])
    masses = _masses(noise, place, edges)
    _check_mass(noise, masses)
    wrong = np.cumsum(masses)[:-1] - levels
    worst = int(np.argmax(np.abs(wrong)))
    if abs(wrong[worst]) > _QUANTILE_TOLERANCE:
        raise ValueError(
            f"{_name(noise)}: quantile: below quantile({levels[worst]:.3f}) = {edges[worst]:.6g} "
            f"log_prob has the probability {levels[worst] + wrong[worst]:.5f}. Do both have the same "
            "width, and the same side for what is skewed?"
        )
    _check_moments(noise)
    noise_information(noise)
    if noise.has_exponential_moments:
        _check_exponential_moments(noise, place)


def _name(own: Any) -> str:
    return type(own).__name__


def _check_kind(own: Any, kind: type, function: str) -> None:
    if not isinstance(own, kind):
        raise TypeError(
            f"{function} takes an instance of a class that inherits from {kind.__name__}, received "
            f"{own!r:.200}."
        )


def _check_settings(own: CustomPrior | CustomNoise) -> None:
    check_settings(own, with_custom(REGISTRY, [type(own)]))


def _check_sampler(prior: CustomPrior) -> None:
    for shape in _SHAPES:
        draws, again = (prior.sample(np.random.default_rng(0), shape) for _ in range(2))
        if np.shape(draws) != (shape if isinstance(shape, tuple) else (shape,)):
            raise ValueError(
                f"{_name(prior)}.sample must return the shape it is asked for, {shape}, received "
                f"{np.shape(draws)}. Pass size=shape on to the generator."
            )
        if not np.array_equal(draws, again):
            raise ValueError(
                f"{_name(prior)}.sample must give the same draws for the same generator, received "
                f"others. Draw from the generator alone: generator.normal(size=shape)."
            )


def _check_gradient(own: CustomPrior | CustomNoise, points: Array, spread: float) -> None:
    from tfbnn.engine.density.own_classes import check_gradient, values_of

    in_float32, _ = check_gradient(own, points, "float32")
    values, gradient = check_gradient(own, points, "float64")
    # The same numbers, so that what is rounded is the computation.
    rounded = values_of(own, points.astype(np.float32).astype(np.float64))
    gap = np.abs(in_float32 - rounded) / (1.0 + np.abs(rounded))
    if gap.max() > _FLOAT32_TOLERANCE:
        raise ValueError(
            f"{_name(own)}: float32: log_prob is {in_float32[gap.argmax()]:.6g} in float32 and "
            f"{rounded[gap.argmax()]:.6g} in float64 at {points[gap.argmax()]:.6g}. Use log1p, "
            "softplus or logsumexp where numbers nearly cancel."
        )
    step = _STEP * (np.abs(points) + spread)
    slope = (values_of(own, points + step) - values_of(own, points - step)) / (2.0 * step)
    gap = np.abs(slope - gradient) / (np.abs(gradient) + 1.0 / spread)
    share = float(np.mean(~(gap < _GRADIENT_TOLERANCE)))
    if share > _MOST_KINKS:
        worst = int(np.nanargmax(gap))
        raise ValueError(
            f"{_name(own)}: gradient: at {100 * share:.0f} % of {len(points)} points it is not that of "
            f"central differences, worst at {points[worst]:.6g}: {gradient[worst]:.6g} against "
            f"{slope[worst]:.6g}. Is a part computed with NumPy, cast, rounded or stopped?"
        )


def _check_even(prior: CustomPrior, points: Array) -> None:
    from tfbnn.engine.density.own_classes import values_of

    gap = np.abs(values_of(prior, points) - values_of(prior, -points))
    if gap.max() > _QUANTILE_TOLERANCE:
        raise ValueError(
            f"{_name(prior)}: is_even: log_prob differs by {gap.max():.3g} between "
            f"{points[gap.argmax()]:.6g} and its negative. Leave is_even False."
        )


def _masses(own: CustomPrior | CustomNoise, place: tuple[float, float], edges: Array) -> Array:
    """Probabilities between edges, and beyond the outer ones."""
    from tfbnn.engine.density.own_classes import values_of

    def density(points: Array) -> Array:
        return np.exp(values_of(own, points))[None]

    try:
        return integrals(density, *place, edges)[:, 0]
    except ValueError as error:
        raise ValueError(
            f"{_name(own)}: normalisation: the density exp(log_prob) has no integral: {error}."
        ) from error


def _check_mass(own: CustomPrior | CustomNoise, masses: Array) -> None:
    mass = float(masses.sum())
    if abs(mass - 1.0) > MASS_TOLERANCE:
        raise ValueError(
            f"{_name(own)}: normalisation: the density exp(log_prob) has the integral {mass:.6g} and not "
            f"1. Subtract {log(mass):.6g} from log_prob, or find the constant that is missing."
        )


def _check_draws(prior: CustomPrior, draws: Array, edges: Array, below: Array) -> None:
    """Kolmogorov's and Smirnov's distance at the edges, where the density has masses `below`."""
    limit = sqrt(log(2.0 / _FALSE_ALARMS) / (2.0 * len(draws)))
    shares = np.searchsorted(np.sort(draws), edges, side="right") / len(draws)
    gap = np.abs(shares - below)
    worst = int(gap.argmax())
    if gap[worst] > limit:
        raise ValueError(
            f"{_name(prior)}: sample: {shares[worst]:.4f} of {len(draws)} draws are below "
            f"{edges[worst]:.6g}, where log_prob has the probability {below[worst]:.4f}; chance gives "
            f"differences of up to {limit:.4f}. Do both have the same scale, or its square?"
        )


def _check_moments(noise: CustomNoise) -> None:
    stated, found = noise.moments, moments_by_quadrature(noise)
    gap = max(abs(one - other) for one, other in zip(stated, found)) / found[1]
    if not gap < _QUANTILE_TOLERANCE:
        raise ValueError(
            f"{_name(noise)}: moments: mean and standard deviation are {found} by quadrature, "
            f"received {tuple(stated)}. Leave moments out, or correct them."
        )


def _check_exponential_moments(noise: CustomNoise, place: tuple[float, float]) -> None:
    from tfbnn.engine.density.own_classes import values_of

    rate = _EXPONENT / noise.moments[1]

    def weighted(z: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(values_of(noise, z) + rate * np.abs(z))[None]

    try:
        integrals(weighted, *place)
    except ValueError as error:
        raise ValueError(
            f"{_name(noise)}: has_exponential_moments: exp({_EXPONENT:g} z / stddev) has no mean: "
            f"{error}. Leave it False."
        ) from error
