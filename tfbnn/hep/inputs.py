"""Inputs of networks at many points, found by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfbnn.data.frames import column_names, select_columns
from tfbnn.data.validation import as_float_array, as_matrix
from tfbnn.hep.slha import Place, place_text
from tfbnn.system.arrays import Array


def input_columns(points: Any, names: Sequence[str], places: Mapping[str, Place]) -> Array:
    """The named columns of points as a matrix [N, len(names)].

    Args:
        points: A data frame, or a dict name -> numbers [N].
        names: Of the columns.
        places: Where they stand in SLHA, for messages.

    Raises:
        TypeError, ValueError: For anything else, missing columns, and numbers that are not finite.
    """
    known = tuple(points) if isinstance(points, Mapping) else column_names(points)
    if known is None:
        raise TypeError(
            "points must be a data frame or a dict name -> numbers, received "
            f"{type(points).__name__}: inputs are found by name."
        )
    missing = [name for name in names if name not in known]
    if missing:
        wanted = ", ".join(f"{name} ({place_text(places[name])})" for name in missing)
        raise ValueError(f"points have no column {wanted}. Add it, or leave processes out.")
    if not isinstance(points, Mapping):
        return as_matrix(select_columns(points, tuple(names), "points", others=True), "points")
    columns = {name: as_float_array(points[name], name) for name in names}
    if {column.ndim for column in columns.values()} != {1} or len(
        {*map(len, columns.values())}
    ) > 1:
        shapes = ", ".join(f"{name} {list(column.shape)}" for name, column in columns.items())
        raise ValueError(f"points must have one number per point and input, received {shapes}.")
    return as_matrix(np.column_stack([*columns.values()]), "points")
