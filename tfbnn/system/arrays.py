"""The type of the NumPy arrays that pass between the rooms, and how large ones are worked through."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# What is made on the way from so many rows is small beside a million of them, and quickly done.
ROWS_AT_ONCE = 2**16


def read_only(array: Array) -> Array:
    """The array for those who must not write in it; whoever has it may go on to do so."""
    view = array.view()
    view.setflags(write=False)
    return view


def row_slices(num_rows: int) -> Iterator[slice]:
    """Slices of at most 65536 rows, one after the other."""
    for start in range(0, num_rows, ROWS_AT_ONCE):
        yield slice(start, min(start + ROWS_AT_ONCE, num_rows))


def by_rows(function: Callable[[Array], Array], values: Array) -> Array:
    """`function`, which treats each row [K] of `values` [N, K] by itself, of many rows at a time.

    What it needs on the way is then no multiple of the rows.
    """
    if len(values) <= ROWS_AT_ONCE:
        return function(values)
    first, *others = row_slices(len(values))
    beginning = function(values[first])
    found = np.empty((len(values), *beginning.shape[1:]), beginning.dtype)
    found[first] = beginning
    for rows in others:
        found[rows] = function(values[rows])
    return found
