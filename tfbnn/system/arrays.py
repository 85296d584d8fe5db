"""The type of the NumPy arrays that pass between the rooms, and how large ones are worked through."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tfbnn.system.mapped import give_back

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


def slices_to_read(*arrays: Array) -> Iterator[slice]:
    """As `row_slices` of arrays [N, ...], after each of which pages of files they lie in are given back."""
    for rows in row_slices(len(arrays[0])):
        yield rows
        give_back(*arrays)


def by_rows(function: Callable[..., Array], *arrays: Array) -> Array:
    """`function`, which treats each row of arrays [N, ...] by itself, of many rows at a time.

    What it needs on the way is then no multiple of the rows, nor are the pages of rows in files.
    """
    num_rows = len(arrays[0])
    if num_rows <= ROWS_AT_ONCE:
        return function(*arrays)
    slices = slices_to_read(*arrays)
    first = next(slices)
    beginning = function(*(array[first] for array in arrays))
    found = np.empty((num_rows, *beginning.shape[1:]), beginning.dtype)
    found[first] = beginning
    for rows in slices:
        found[rows] = function(*(array[rows] for array in arrays))
    return found


def rows_at(array: Array, places: Array) -> Array:
    """The rows of an array [N, ...] at ascending places, of many of them a few at a time, as `by_rows`."""
    parts = []
    for some in np.array_split(places, -(-len(array) // ROWS_AT_ONCE)):
        parts.append(array[some])
        give_back(array)
    return np.concatenate(parts)
