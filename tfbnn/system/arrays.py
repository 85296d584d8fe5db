"""Type of the NumPy arrays in tfbnn, and tools to process large arrays in blocks of rows."""

import mmap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Temporary arrays of this many rows are small compared with a million rows, and quick to compute.
ROWS_AT_ONCE = 2**16
# Largest block whose release raises the threshold up to which the C library of Linux keeps memory.
_LARGEST_KEPT = 31 * 2**20


def read_only(array: Array) -> Array:
    """Return a read-only view of an array, which itself stays writable."""
    view = array.view()
    view.setflags(write=False)
    return view


class ReadOnlyArrays:
    """Base of dataclasses whose arrays are read-only."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))


def with_ones(columns: Array, dtype: npt.DTypeLike) -> Array:
    """Append a row of ones, which a bias multiplies, to the inputs [D, n] of a layer.

    The result [D + 1, n] has this dtype and is in C order, whatever the order of the inputs.
    OpenBLAS 0.3.31, which comes with NumPy 2.4, confuses the sizes of different threads on
    processors with AVX-512, when several threads at a time multiply small float32 matrices that are
    both transposed. The results are wrong numbers or a crash, however many threads BLAS may use
    (`benchmarks/archive/blas_threads/run.py`). Kernels are transposed, so inputs must not be.
    """
    result = np.ones((len(columns) + 1, columns.shape[1]), dtype)
    result[:-1] = columns
    return result


def row_slices(num_rows: int, step: int | None = None) -> list[slice]:
    """Split rows into consecutive slices of at most `step` rows, by default 65536."""
    step = step or ROWS_AT_ONCE
    return [slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step)]


def slices_to_read(*arrays: Array) -> Iterator[slice]:
    """Yield `row_slices` of arrays [N, ...], and release the pages of their files after each."""
    for rows in row_slices(len(arrays[0])):
        yield rows
        give_back(*arrays)


def by_rows(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function of arrays [N, ...] in blocks of rows; it must treat each row independently.

    So its temporary memory, and the pages of arrays in files, do not grow with the number of rows.
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


def rows_at(array: Array, indices: Array) -> Array:
    """Return the rows of an array [N, ...] at ascending positions, read in blocks as in `by_rows`."""
    parts = []
    for some in np.array_split(indices, -(-len(array) // ROWS_AT_ONCE)):
        parts.append(array[some])
        give_back(array)
    return np.concatenate(parts)


def mapped_file(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the memory-mapped file of an array if it was mapped with mode "r", otherwise None.

    This process cannot have changed the pages of such a file.
    """
    base: Any = array
    is_for_reading = False
    while base is not None and not isinstance(base, mmap.mmap):
        is_for_reading |= isinstance(base, np.memmap) and base.mode == "r"
        base = getattr(base, "base", None)
    return base if is_for_reading else None


def give_back(*arrays: npt.NDArray[Any]) -> None:
    """Release the pages of memory-mapped files that hold arrays; the next access reads them again.

    The system may still keep the pages in its cache. Without the release, a pass over the rows
    would leave all of them in the memory of the process, where a memory limit counts them.
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    for file in map(mapped_file, arrays):
        if file is not None:
            file.madvise(mmap.MADV_DONTNEED)


@cache
def keep_freed_memory() -> None:
    """Make the C library of Linux keep freed memory of arrays of a megabyte for reuse.

    It does so after a larger array has been freed. Otherwise each new array gets empty pages from
    the system: a gradient of 400 rows of a network of infinite width takes 32 ms instead of 12.
    """
    large: Array = np.ones(_LARGEST_KEPT // 8)
    del large
