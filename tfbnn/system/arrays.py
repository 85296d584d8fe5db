"""The type of the NumPy arrays that pass between the rooms, and how large ones are worked through."""

import mmap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# What is made on the way from so many rows is small beside a million of them, and quickly done.
ROWS_AT_ONCE = 2**16
# The largest block from which the C library of Linux learns what to keep.
_LARGEST_KEPT = 31 * 2**20


def read_only(array: Array) -> Array:
    """Return the array for those who must not write in it; whoever has it may go on to do so."""
    view = array.view()
    view.setflags(write=False)
    return view


class ReadOnlyArrays:
    """A dataclass whose arrays nobody may write in."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))


def with_ones(columns: Array, dtype: npt.DTypeLike) -> Array:
    """Return inputs [D, n] of a layer in this dtype with a line of ones below, which a bias multiplies.

    In C order, [D + 1, n], whatever the order of the inputs. OpenBLAS 0.3.31, which NumPy 2.4 brings
    along, takes the sizes of one thread for another's when several threads at a time multiply small
    float32 matrices that are both transposed, on processors with AVX-512: wrong numbers, or a crash,
    however many threads BLAS may have (`benchmarks/archive/blas_threads/run.py`). Kernels are transposed, so
    inputs must not be.
    """
    result = np.ones((len(columns) + 1, columns.shape[1]), dtype)
    result[:-1] = columns
    return result


def row_slices(num_rows: int, step: int | None = None) -> list[slice]:
    """Return slices of at most `step` rows, by default 65536, one after the other."""
    step = step or ROWS_AT_ONCE
    return [slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step)]


def slices_to_read(*arrays: Array) -> Iterator[slice]:
    """Yield `row_slices` of arrays [N, ...], and give back pages of their files after each."""
    for rows in row_slices(len(arrays[0])):
        yield rows
        give_back(*arrays)


def by_rows(function: Callable[..., Array], *arrays: Array) -> Array:
    """Return `function`, which treats each row of arrays [N, ...] by itself, of many rows at a time.

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
    """Return the rows of an array [N, ...] at ascending places, of many of them a few at a time, as `by_rows`."""
    parts = []
    for some in np.array_split(places, -(-len(array) // ROWS_AT_ONCE)):
        parts.append(array[some])
        give_back(array)
    return np.concatenate(parts)


def mapped_file(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the file that an array lies in if it was mapped with mode "r", so that nobody writes there; else None."""
    base: Any = array
    is_for_reading = False
    while base is not None and not isinstance(base, mmap.mmap):
        is_for_reading |= isinstance(base, np.memmap) and base.mode == "r"
        base = getattr(base, "base", None)
    return base if is_for_reading else None


def give_back(*arrays: npt.NDArray[Any]) -> None:
    """Give back the pages of files that arrays lie in; reading brings them again.

    The system keeps them as long as nothing else needs the room. Without this a pass over the rows leaves
    all of them in the memory of the process, where a limit for it counts them.
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    for file in map(mapped_file, arrays):
        if file is not None:
            file.madvise(mmap.MADV_DONTNEED)


@cache
def keep_freed_memory() -> None:
    """Have the C library of Linux keep what arrays of a megabyte leave, as it does once it has freed a larger one.

    Else the system gives each of them empty pages again: 32 ms for a gradient of 400 rows of a network of
    infinite width, not 12.
    """
    large: Array = np.ones(_LARGEST_KEPT // 8)
    del large
