"""Arrays as settings: frozen, comparable, hashable, and a line of text in JSON."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tfbnn.data.validation import as_float_array, check_number
from tfbnn.spec.priors.base import REGISTRY
from tfbnn.system.arrays import Array, read_only

_STORED = "<f8"


@dataclass(frozen=True, repr=False)
class FrozenArray:
    """Finite numbers in an array that nobody changes. Make one with `of`.

    Attributes:
        shape: Its shape.
        data: Its bytes, little-endian float64 in the order of C, as base64: exact, and what files hold.
    """

    shape: tuple[int, ...]
    data: str

    def __post_init__(self) -> None:
        shape = self.shape
        if not (isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)):
            raise ValueError(f"shape must be a tuple of sizes, received {shape!r:.100}.")
        if not np.isfinite(self.values).all():
            raise ValueError("an array of settings must hold finite numbers.")

    @classmethod
    def of(cls, array: Array) -> FrozenArray:
        """A copy of an array."""
        stored = np.ascontiguousarray(array, _STORED)
        return cls(stored.shape, b64encode(stored.tobytes()).decode("ascii"))

    @cached_property
    def values(self) -> Array:
        """The numbers: float64, read-only."""
        raw = b64decode(self.data, validate=True)
        if len(raw) != 8 * prod(self.shape):
            raise ValueError(f"an array of shape {list(self.shape)} has not {len(raw)} bytes.")
        return read_only(np.frombuffer(raw, _STORED).astype(np.float64).reshape(self.shape))

    def __repr__(self) -> str:
        return f"array of shape {list(self.shape)}"


REGISTRY["FrozenArray"] = FrozenArray


def number_or_array(name: str, value: Any, above: float | None = None) -> float | FrozenArray:
    """A setting that is a number, or an array of any shape with an axis.

    Args:
        name: Of the setting, for messages.
        value: What the user passed.
        above: What every number has to exceed, or None.

    Raises:
        TypeError, ValueError: For anything but finite numbers above that.
    """
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value.item()
    if isinstance(value, FrozenArray):
        array = value.values
    elif isinstance(value, (list, tuple)) or np.ndim(value):
        array = as_float_array(value, name)
    else:
        limit = {} if above is None else {"above": above}
        return check_number(name, value, **limit)
    if not array.size or not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers, received {array!r:.200}.")
    if above is not None and array.min() <= above:
        raise ValueError(f"{name} must be above {above:g} everywhere, received {array.min():g}.")
    return FrozenArray.of(array)


def entries(setting: float | FrozenArray) -> Array:
    """A setting as what goes with weights [..., n] in the order of theta: [n], or [1] of a number."""
    return (
        setting.values.ravel() if isinstance(setting, FrozenArray) else np.full(1, float(setting))
    )
