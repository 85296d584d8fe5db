"""The type of the NumPy arrays that pass between the rooms."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
