"""Relative errors of other origin than a network: constants, values per point, other networks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfbnn.data.validation import as_float_array, check_number
from tfbnn.fit.model import SampledNetwork
from tfbnn.system.arrays import Array


class PointError(ValueError):
    """Error at some of several points.

    Attributes:
        before, after: Parts of the message before and after the position of the first.
        points: Indices of the points, from 0.
    """

    def __init__(self, before: str, points: Array, after: str) -> None:
        super().__init__(before, points, after)  # as pickle makes it anew
        self.before, self.points, self.after = before, points, after

    def __str__(self) -> str:
        return f"{self.before} at point {self.points[0]} (the first is 0){self.after}"


def check_errors(errors: Any, num_points: int | None = None) -> dict[str, Any]:
    """Check relative errors, a dict name -> number, (down, up), or values per point.

    Args:
        errors: Errors passed by the user; None for none.
        num_points: Number of points N, which allows arrays [N] or [N, 2] with one row per point.
            None (default): the errors of a process, which are constant, or predicted by one or two
            networks.

    Returns:
        Dict name -> (down, up), or array [N, 2].

    Raises:
        TypeError, ValueError: For names that are not text, and for errors that are not numbers >= 0
            of these shapes.
    """
    errors = {} if errors is None else errors
    if not isinstance(errors, Mapping) or not all(isinstance(name, str) for name in errors):
        raise TypeError(
            "errors must be a dict name -> relative error or (down, up), such as "
            f"{{'scale': 0.05, 'pdf': (0.03, 0.02)}}, received {errors!r:.200}."
        )
    found: dict[str, Any] = {}
    for name, value in errors.items():
        if not name.isprintable():
            raise ValueError(f"Names of errors must be printable text, received {name!r:.80}.")
        if num_points is not None and np.ndim(value) > 0 and not isinstance(value, tuple):
            found[name] = _of_points(name, value, num_points)
            continue
        sides = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
        if len(sides) != 2:
            raise ValueError(
                f"The error {name!r} must be one number or two, (down, up), received {value!r:.200}."
            )
        if num_points is None and all(isinstance(side, SampledNetwork) for side in sides):
            found[name] = sides
        else:
            down, up = (check_number(f"the error {name!r}", side, minimum=0) for side in sides)
            found[name] = down, up
    return found


def _of_points(name: str, value: Any, num_points: int | None) -> Array:
    array = as_float_array(value, f"the error {name!r}")
    if array.shape == (num_points,):
        array = np.column_stack([array, array])
    if array.shape != (num_points, 2):
        raise ValueError(
            f"The error {name!r} must have shape [{num_points}] or [{num_points}, 2], one row per "
            f"point, received {list(array.shape)}."
        )
    bad = np.flatnonzero(~((array >= 0) & np.isfinite(array)).all(axis=1))
    if len(bad):
        found = f"The error {name!r} must be >= 0 and finite, received {array[bad[0]].tolist()}"
        raise PointError(found, bad, ". It is relative: 0.05 for 5 %.")
    return array
