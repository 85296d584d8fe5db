"""JSON as tfbnn files hold it: UTF-8, finite numbers, no key twice, not nested deeply."""

import json
import math

import numpy as np

from tfbnn.exceptions import ModelFileError
from tfbnn.storage.format import schema


def to_json(value):
    """The bytes of a value.

    Raises:
        TypeError, ValueError: For what JSON cannot hold, NaN and infinity among them.
    """
    return json.dumps(value, allow_nan=False, default=_plain).encode()


def parse_json(text, max_depth=schema.MAX_DEPTH):
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


def _unique(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ModelFileError("metadata must not name a key twice in one object.")
    return value


def _refuse_constant(text):
    raise ModelFileError(f"metadata must hold finite numbers, found {text}.")


def _finite(text):
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _depth(value):
    """How many objects and lists lie inside each other."""
    if not isinstance(value, (dict, list)):
        return 0
    entries = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, entries), default=0)


def _plain(value):
    """NumPy numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a tfbnn file")
