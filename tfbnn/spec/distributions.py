"""Distribution functions that NumPy lacks, so that predictions need no SciPy.

Tests hold them to SciPy's within 1e-12.
"""

import math
from functools import cache

import numpy as np

from tfbnn.system.arrays import Array

# How far out the normal distribution function is fitted, where it is 1e-19, and from where it is 0.
_NORMAL_END, _ZERO = 9.0, 40.0
# Where the map of [0, infinity) to [-1, 1) has its middle, and the degree of the polynomial there:
# one less or more of either costs digits or time.
_MIDDLE, _DEGREE = 2.8, 19
# Cells of the table of a Student-t distribution, points of Gauss and Legendre in each, Newton steps
# from the middle of a cell, and how far out the table goes, as -log of the density.
_CELLS, _POINTS, _STEPS, _LAST = 64, 12, 5, 80.0


def normal_cdf(x: Array) -> Array:
    """Distribution function of the standard normal: float64 of the shape of x, exact to 1e-15.

    The density times a polynomial in (|x| - m) / (|x| + m), as of Shepherd and Laframboise (1981,
    Math. Comp. 36, 249): about as fast as SciPy's, which takes longer to import than a prediction.
    """
    distance = np.minimum(np.abs(x, dtype=np.float64), _ZERO)
    place = (distance - _MIDDLE) / (distance + _MIDDLE)
    coefficients = _scaled_tail()
    tail = np.full_like(place, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        tail *= place
        tail += coefficient
    distance *= distance
    distance *= -0.5
    tail *= np.exp(distance, out=distance)
    return np.where(x > 0, 1.0 - tail, tail)


@cache
def _scaled_tail() -> list[float]:
    """Polynomial for Phi(-a) exp(a^2 / 2), a in [0, 9], in (a - m) / (a + m)."""
    last = (_NORMAL_END - _MIDDLE) / (_NORMAL_END + _MIDDLE)

    def scaled(place: Array) -> Array:
        distances = (_MIDDLE * (1.0 + place) / (1.0 - place)).tolist()
        tails = [0.5 * math.erfc(a * math.sqrt(0.5)) * math.exp(0.5 * a * a) for a in distances]
        return np.array(tails)

    found = np.polynomial.Chebyshev.interpolate(scaled, _DEGREE, domain=[-1.0, last])
    coefficients: list[float] = found.convert(kind=np.polynomial.Polynomial).coef.tolist()
    return coefficients


def normal_quantile(probability: Array) -> Array:
    """Quantiles of the standard normal at probabilities in (0, 1), of the same shape."""
    from statistics import NormalDist  # deferred: predictions without noise need none of it

    quantiles = np.array(list(map(NormalDist().inv_cdf, probability.ravel().tolist())))
    return quantiles.reshape(probability.shape)


def student_t_quantile(probability: Array, df: float) -> Array:
    """Quantiles of Student's t distribution at probabilities in (0, 1), of the same shape.

    With t = sqrt(df) sinh(w), the density of w is proportional to cosh(w)^-df: smooth, and as good
    as zero at a known distance for every df. Its integral from each point of a grid to the far end
    is a sum of positive terms, exact far out too; Newton's method does the rest within a cell.

    Args:
        probability: Any shape.
        df: Degrees of freedom, positive.
    """
    end = 2.0 * np.arcsinh(np.sqrt(0.5 * np.expm1(_LAST / df)))
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    points, weights = 0.5 * (1.0 + points), 0.5 * weights

    def density(w: Array) -> Array:
        values: Array = np.exp(-df * np.log1p(2.0 * np.square(np.sinh(0.5 * w))))
        return values

    def mass(low: Array, width: Array | float) -> Array:
        inside = low[..., None] + np.asarray(width)[..., None] * points
        return width * (density(inside) @ weights)

    grid = np.linspace(0.0, end, _CELLS + 1)
    beyond = np.zeros_like(grid)
    beyond[:-1] = np.cumsum(mass(grid[:-1], end / _CELLS)[::-1])[::-1]
    # The mass that the distribution has beyond |w|, which is half of all where w = 0.
    wanted = 2.0 * np.minimum(probability, 1.0 - probability) * beyond[0]
    cell = np.searchsorted(-beyond, -wanted, side="right") - 1
    cell = np.minimum(cell, _CELLS - 1)
    low = grid[cell]
    w = low + 0.5 * end / _CELLS
    for _ in range(_STEPS):
        w += (beyond[cell] - mass(low, w - low) - wanted) / density(w)
    quantile: Array = np.sqrt(df) * np.sinh(w)
    return np.copysign(quantile, probability - 0.5)
