"""Integrals over the real line, of densities that only their author knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi

import numpy as np

from tfbnn.spec.distributions import gauss_points
from tfbnn.system.arrays import Array

# Where the line ends, about 1e30 widths from the centre, and how long the first pieces are, both in t.
_END, _LENGTH = 4.5, 0.2
# How far apart a piece and its halves may be, in units of the integral; how often a piece is halved,
# which finds a jump as sharply as float64 does.
_TOLERANCE, _ROUNDS = 1e-10, 60
# More pieces than a density with some kinks and jumps ever needs.
_MOST_PIECES = 20_000

Integrand = Callable[[Array], Array]


def integrals(
    integrand: Integrand, centre: float, width: float, edges: Sequence[float] | Array = ()
) -> Array:
    """Integrals over the cells that ascending `edges` cut the real line into: [cells, k].

    With z = centre + width sinh(pi/2 sinh t) tails of every power fall off doubly exponentially in t
    (Takahasi and Mori 1974, Publ. RIMS 9, 721). Pieces of t are halved where Gauss and Legendre's rule
    and that of the halves differ, so that kinks, jumps and logarithmic peaks are resolved too.

    Args:
        integrand: Points z, any shape, float64 -> k values at each, [k, *shape of z].
        centre, width: About where the integrand has its bulk, and how wide that is.
        edges: Ends of the inner cells, by default none: one cell.

    Raises:
        ValueError: When the integrand is not finite somewhere, or does not settle.
    """
    transformed = np.arcsinh(
        2.0 / pi * np.arcsinh((np.asarray(edges, np.float64) - centre) / width)
    )
    inner = np.clip(transformed, -_END, _END)
    places = np.linspace(-_END, _END, round(2 * _END / _LENGTH) + 1)
    ends = np.unique(np.concatenate([places, inner]))
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
        sums: Array = (high - low) * ((values * (width * np.cosh(inner) * slope)) @ weights)
        return sums

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
    np.add.at(total, cell, whole.T)  # pieces of no width
    return total
