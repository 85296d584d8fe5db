"""Rows in files that NumPy has mapped: pages that were read stay in memory until they are given back."""

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def mapped_file(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """The file that an array lies in if it was mapped with mode "r", so that nobody writes there; else None."""
    base: Any = array
    is_for_reading = False
    while base is not None and not isinstance(base, mmap.mmap):
        is_for_reading |= isinstance(base, np.memmap) and base.mode == "r"
        base = getattr(base, "base", None)
    return base if is_for_reading else None


def give_back(*arrays: npt.NDArray[Any]) -> None:
    """Gives back the pages of files that arrays lie in; reading brings them again.

    The system keeps them as long as nothing else needs the room. Without this a pass over the rows leaves
    all of them in the memory of the process, where a limit for it counts them.
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    for file in map(mapped_file, arrays):
        if file is not None:
            file.madvise(mmap.MADV_DONTNEED)
