"""Relative errors of other origin than the network: scale, parton densities, alpha_s.

A network knows how uncertain it is about the function that it was fitted to, and nothing of how
uncertain that function is. What is known of that is kept beside it, and added in quadrature only
where somebody asks for it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tfbnn.data.validation import as_float_array, check_number
from tfbnn.system.arrays import Array

# (down, up), relative to the central value, both >= 0.
Sides = tuple[float, float]


def check_errors(errors: Any) -> dict[str, Sides]:
    """Constant relative errors, dict name -> number or (down, up), as dict name -> (down, up).

    Raises:
        TypeError, ValueError: For anything but names and such numbers.
    """
    return {name: _sides(name, value) for name, value in _named(errors)}


def _named(errors: Any) -> Iterable[tuple[str, Any]]:
    """The items of a dict of errors."""
    if not isinstance(errors, Mapping) or not all(isinstance(name, str) for name in errors):
        raise TypeError(
            "errors must be a dict name -> relative error or (down, up), such as "
            f"{{'scale': 0.05, 'pdf': (0.03, 0.02)}}, received {errors!r:.200}."
        )
    return errors.items()


def _sides(name: str, value: Any) -> Sides:
    parts = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(parts) != 2:
        raise ValueError(
            f"The error {name!r} must be one number or two, (down, up), received {value!r:.200}."
        )
    down, up = (check_number(f"the error {name!r}", part, minimum=0) for part in parts)
    return down, up


def errors_of_points(errors: Any, num_points: int) -> dict[str, Array]:
    """Relative errors of points, dict name -> as in `check_errors`, or an array [N] or [N, 2].

    Returns:
        Dict name -> array broadcastable to [N, 2]: down and up.

    Raises:
        TypeError, ValueError: As in `check_errors`; for another number of points.
    """
    items = () if errors is None else _named(errors)
    return {name: _of_points(name, value, num_points) for name, value in items}


def _of_points(name: str, value: Any, num_points: int) -> Array:
    if np.ndim(value) == 0 or isinstance(value, tuple):
        return np.array(_sides(name, value))
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
        raise ValueError(
            f"The error {name!r} must be >= 0 and finite, received {array[bad[0]].tolist()} at "
            f"point {bad[0]} (the first is 0). It is relative: 0.05 for 5 %."
        )
    return array


def in_quadrature(errors: Iterable[Array | Sides], num_points: int) -> tuple[Array, Array]:
    """(down [N], up [N]) of relative errors that are independent of each other."""
    total = np.zeros((num_points, 2))
    for error in errors:
        total += np.square(error)
    down, up = np.sqrt(total).T
    return down, up
