"""Distribution functions that NumPy lacks, so that predictions need no SciPy.

Tests compare them with SciPy's to within 1e-12.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from tfbnn.system.arrays import Array, read_only

# Largest distance at which the normal distribution function is fitted, where it is 1e-19, and the
# distance from which it is 0.
_NORMAL_END, _ZERO = 9.0, 40.0
# Middle m of the map of [0, infinity) to [-1, 1), and the degree of the polynomial there. Smaller
# or larger values of either cost digits or time.
_MIDDLE, _DEGREE = 2.8, 19
# Table of a Student-t distribution: number of cells, Gauss-Legendre points in each, Newton steps
# from the middle of a cell, and end of the table as -log of the density.
_CELLS, _POINTS, _STEPS, _LAST = 64, 12, 5, 80.0

# Smallest probability at which predictions take normal quantiles; eight standard deviations out.
LEAST_LEVEL = 1e-16


def normal_cdf(x: Array) -> Array:
    """Compute the distribution function of the standard normal: float64, exact to 1e-15.

    It is the density times a polynomial in (|x| - m) / (|x| + m), as in Shepherd and Laframboise
    (1981, Math. Comp. 36, 249). It is about as fast as SciPy's, which takes longer to import than a
    prediction takes.
    """
    distance = np.minimum(np.abs(x, dtype=np.float64), _ZERO)
    ratio = (distance - _MIDDLE) / (distance + _MIDDLE)
    coefficients = _scaled_tail()
    tail = np.full_like(ratio, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        tail *= ratio
        tail += coefficient
    distance *= distance
    distance *= -0.5
    tail *= np.exp(distance, out=distance)
    return np.where(x > 0, 1.0 - tail, tail)


@cache
def _scaled_tail() -> list[float]:
    """Compute the polynomial in (a - m) / (a + m) for Phi(-a) exp(a^2 / 2), a in [0, 9]."""
    last = (_NORMAL_END - _MIDDLE) / (_NORMAL_END + _MIDDLE)

    def scaled(ratio: Array) -> Array:
        distances = (_MIDDLE * (1.0 + ratio) / (1.0 - ratio)).tolist()
        tails = [0.5 * math.erfc(a * math.sqrt(0.5)) * math.exp(0.5 * a * a) for a in distances]
        return np.array(tails)

    found = np.polynomial.Chebyshev.interpolate(scaled, _DEGREE, domain=[-1.0, last])
    return found.convert(kind=np.polynomial.Polynomial).coef.tolist()


def normal_quantile(probability: Array) -> Array:
    """Compute quantiles of the standard normal at probabilities in (0, 1), of the same shape."""
    from statistics import NormalDist  # deferred: predictions without noise need none of it

    quantiles = np.array(list(map(NormalDist().inv_cdf, probability.ravel().tolist())))
    return quantiles.reshape(probability.shape)


def student_t_quantile(probability: Array, df: float) -> Array:
    """Compute quantiles of Student's t distribution at probabilities in (0, 1), of the same shape.

    It uses Newton's method within a cell of the table.

    Args:
        probability: Any shape.
        df: Degrees of freedom, positive.
    """
    table = _TailTable.of(df)
    # Mass beyond |w|; at w = 0 it is half of the total.
    wanted = 2.0 * np.minimum(probability, 1.0 - probability) * table.beyond[0]
    cell = np.searchsorted(-table.beyond, -wanted, side="right") - 1
    cell = np.minimum(cell, _CELLS - 1)
    low = table.grid[cell]
    w = low + 0.5 * table.grid[-1] / _CELLS
    for _ in range(_STEPS):
        w += (table.beyond[cell] - table.mass(low, w - low) - wanted) / table.density(w)
    quantile: Array = np.sqrt(df) * np.sinh(w)
    return np.copysign(quantile, probability - 0.5)


def student_t_cdf(t: Array, df: float) -> Array:
    """Compute the distribution function of Student's t: float64, of the shape of t.

    Args:
        t: Any shape.
        df: Degrees of freedom, positive.
    """
    table = _TailTable.of(df)
    w = np.minimum(np.arcsinh(np.abs(t) / np.sqrt(df)), table.grid[-1])
    cell = np.minimum(np.searchsorted(table.grid, w, side="right") - 1, _CELLS - 1)
    high = table.grid[cell + 1]
    tail: Array = (table.beyond[cell + 1] + table.mass(w, high - w)) / (2.0 * table.beyond[0])
    return np.where(t > 0, 1.0 - tail, tail)


class _TailTable(NamedTuple):
    """Tails of Student's t distribution on a grid.

    With t = sqrt(df) sinh(w), the density of w is proportional to cosh(w)^-df. It is smooth, and
    practically zero beyond a known distance for every df. Its integral from each grid point to the
    far end is a sum of positive terms, which is exact far out too.

    Attributes:
        df: Degrees of freedom.
        grid: w from 0 to the point where the density is practically zero.
        beyond: Integral of the density from each grid point to the end.
    """

    df: float
    grid: Array
    beyond: Array

    @classmethod
    def of(cls, df: float) -> _TailTable:
        end = 2.0 * np.arcsinh(np.sqrt(0.5 * np.expm1(_LAST / df)))
        grid = np.linspace(0.0, end, _CELLS + 1)
        table = cls(df, grid, np.zeros_like(grid))
        masses = table.mass(grid[:-1], end / _CELLS)
        table.beyond[:-1] = np.cumsum(masses[::-1])[::-1]
        return table

    def density(self, w: Array) -> Array:
        return np.exp(-self.df * np.log1p(2.0 * np.square(np.sinh(0.5 * w))))

    def mass(self, low: Array, width: Array | float) -> Array:
        """Integrate the density from `low` over `width`, within one cell."""
        points, weights = gauss_points()
        inside = low[..., None] + np.asarray(width)[..., None] * points
        return width * (self.density(inside) @ weights)


@cache
def gauss_points() -> tuple[Array, Array]:
    """Compute Gauss-Legendre points and weights on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    return read_only(0.5 * (1.0 + points)), read_only(0.5 * weights)
