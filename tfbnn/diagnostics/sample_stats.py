"""Statistics that are kept for every draw besides the network, under their names in ArviZ."""

from typing import NamedTuple

import numpy as np


class Statistic(NamedTuple):
    """Types of a statistic.

    Attributes:
        dtype: Type of its NumPy arrays.
        computed: Type of its tensors, None for the dtype of the model.
        stored: Type of its datasets in files.
    """

    dtype: type
    computed: str | None
    stored: str


STATISTICS = {
    "lp": Statistic(np.float64, "float64", "<f8"),
    "acceptance_rate": Statistic(np.float32, None, "<f4"),
    "step_size": Statistic(np.float32, None, "<f4"),
    "n_steps": Statistic(np.int32, "int32", "<i4"),
    "diverging": Statistic(bool, "bool", "|u1"),
    "energy": Statistic(np.float64, "float64", "<f8"),
}
