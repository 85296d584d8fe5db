"""JSON as tfbnn files hold it: UTF-8, finite numbers, no key twice, not nested deeply."""

import json
import math
from typing import Any, NoReturn

import numpy as np

from tfbnn.exceptions import ModelFileError
from tfbnn.storage.format import schema


def to_json(value: Any) -> bytes:
    """The bytes of a value.

    Raises:
        TypeError, ValueError: For what JSON cannot hold, NaN and infinity among them.
    """
    return json.dumps(value, allow_nan=False, default=_plain).encode()


def parse_json(text: bytes, max_depth: int = schema.MAX_DEPTH) -> Any:
    """Parses UTF-8 JSON without duplicate keys, NaN, infinity or deep nesting.

    Raises:
        ModelFileError, ValueError, RecursionError: For any other bytes.
    """
    value = json.loads(
        text.decode("utf-8"),
        object_pairs_hook=_unique,
        parse_constant=_refuse_constant,
        parse_float=_finite,
    )
    if _depth(value) > max_depth:
        raise ModelFileError(f"metadata must not be nested deeper than {max_depth} levels.")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ModelFileError("metadata must not name a key twice in one object.")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ModelFileError(f"metadata must hold finite numbers, found {text}.")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _depth(value: Any) -> int:
    """How many objects and lists lie inside each other."""
    if not isinstance(value, (dict, list)):
        return 0
    entries = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, entries), default=0)


def _plain(value: Any) -> Any:
    """NumPy numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a tfbnn file")
