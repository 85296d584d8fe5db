"""Arrays as settings: frozen, comparable, hashable, and a line of text in JSON."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tfbnn.data.validation import as_float_array, check_number
from tfbnn.spec.priors.base import REGISTRY
from tfbnn.system.arrays import Array, read_only


def text_of(array: Array) -> str:
    """The bytes of an array as base64: little-endian, in the order of C. Exact, and what files hold."""
    stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return b64encode(stored.tobytes()).decode("ascii")


def array_of(text: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    """The array that `text_of` made a text of.

    Raises:
        ValueError: For a text that is not base64, or of another number of bytes.
    """
    stored = np.dtype(dtype).newbyteorder("<")
    try:
        raw = b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"the text of an array is not base64: {error}") from error
    if len(raw) != stored.itemsize * prod(shape):
        raise ValueError(f"an array of shape {list(shape)} has not {len(raw)} bytes.")
    return np.frombuffer(raw, stored).astype(dtype).reshape(shape)


@dataclass(frozen=True, repr=False)
class FrozenArray:
    """Finite numbers in an array that nobody changes. Make one with `of`.

    Attributes:
        shape: Its shape.
        data: `text_of` its float64 numbers.
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
        return cls(np.shape(array), text_of(np.asarray(array, np.float64)))

    @cached_property
    def values(self) -> Array:
        """The numbers: float64, read-only."""
        return read_only(array_of(self.data, self.shape))

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
