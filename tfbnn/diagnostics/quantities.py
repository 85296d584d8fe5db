"""Applies a computation on chains to many quantities, in blocks of bounded size."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.system.arrays import Array

# Of a block [m, C, S] of m quantities: [m], or [m, numbers per quantity].
Statistic = Callable[[Array], Array]

# Two halves of two draws: the fewest with a variance within and between half chains.
MIN_DRAWS = 4
# Values per block of quantities: 8 MiB of draws, some 80 MiB with all intermediate arrays.
_BLOCK_VALUES = 1 << 20


def as_draws(draws: ArrayLike) -> Array:
    """Returns draws as an array; raises ValueError unless it has a chain and a draw dimension."""
    draws = np.asarray(draws)
    if draws.ndim < 2:
        raise ValueError(f"draws must have shape [C, S, ...], received {list(draws.shape)}.")
    return draws


def per_quantity(
    function: Statistic,
    draws: ArrayLike,
    *,
    min_chains: int = 1,
    num_results: int | None = None,
    in_units: bool = False,
) -> Array:
    """Applies a function to every quantity for which it is defined.

    Args:
        function: Maps a block [m, C, S] of m quantities, float64, finite, none of them constant
            and each scaled to at most one, to [m], or to [m, num_results]. NumPy warnings are
            off while it runs.
        draws: [C, S, ...]; every trailing element is a quantity.
        min_chains: With fewer chains, all quantities are undefined.
        num_results: Numbers per quantity, or None for one without a dimension of its own.
        in_units: Whether results [m] are in the units of the draws, and so are scaled back.

    Returns:
        [...] or [..., num_results], NaN for a quantity with fewer than four draws per chain, a
        non-finite draw, or the same value in all draws.

    Raises:
        ValueError: If draws has fewer than two dimensions.
    """
    draws = as_draws(draws)
    num_chains, num_draws, *trailing = draws.shape
    columns = draws.reshape(num_chains, num_draws, math.prod(trailing))
    extra = () if num_results is None else (num_results,)
    results = np.full((columns.shape[2], *extra), np.nan)
    if num_chains >= min_chains and num_chains > 0 and num_draws >= MIN_DRAWS:
        width = max(1, _BLOCK_VALUES // (num_chains * num_draws))
        for start in range(0, columns.shape[2], width):
            part = slice(start, start + width)
            _fill(results[part], function, columns[:, :, part], in_units)
    return results.reshape((*trailing, *extra))[()]


def per_chain(function: Statistic, draws: ArrayLike, *, num_results: int | None = None) -> Array:
    """Like `per_quantity`, with every chain a quantity by itself: [C, ...] or [C, ..., L].

    The function gets blocks [m, 1, S].
    """
    by_itself = np.swapaxes(as_draws(draws), 0, 1)[None]
    return per_quantity(function, by_itself, num_results=num_results)


def _fill(results: Array, function: Statistic, columns: Array, in_units: bool) -> None:
    """Writes the results of the quantities that are defined, and leaves the others."""
    # A contiguous copy [m, C, S]: sorts and FFTs then run along memory.
    block = np.ascontiguousarray(np.moveaxis(columns, -1, 0), dtype=float)
    defined = np.isfinite(block).all(axis=(1, 2)) & (block != block[:, :1, :1]).any(axis=(1, 2))
    if not defined.any():
        return
    # Scaling by powers of two is exact, and keeps the squares of extreme draws in range.
    exponents = np.frexp(np.abs(block[defined]).max(axis=(1, 2)))[1]
    # Chains that stand still divide by zero, which gives an infinite R-hat.
    with np.errstate(all="ignore"):
        values = function(np.ldexp(block[defined], -exponents[:, None, None]))
        results[defined] = np.ldexp(values, exponents) if in_units else values
