"""The type of the NumPy arrays that pass between the rooms."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


def read_only(array: Array) -> Array:
    """The array for those who must not write in it; whoever has it may go on to do so."""
    view = array.view()
    view.setflags(write=False)
    return view
