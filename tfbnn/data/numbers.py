"""What counts as a number in text: plain decimal notation, for cells and, stricter, for labels.

Python's float() takes more: "1_000", digits of every script, "nan". In a table these are names.
"""

import math
import re
from collections.abc import Iterable

import numpy as np

from tfbnn.system.arrays import Array

# One way to write each integer, so that two texts are never one label: no 007, +1 or 1e2.
_LABEL = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?")
_MAX_DIGITS = 20  # of 2**64 - 1


def is_number(text: str) -> bool:
    """Whether a text is a finite number: "-1", "0.5", ".5", "1e-3", blanks around it or none."""
    if not only_plain_floats(text):
        return False
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def only_plain_floats(text: str) -> bool:
    """Whether float() takes nothing in a text, or in many joined, that `is_number` does not.

    But for "nan", "inf" and what overflows, which show in the result.
    """
    return text.isascii() and "_" not in text


def label_numbers(texts: Iterable[str]) -> Array | None:
    """Class labels as the numbers that they are all written as, or None where they are texts.

    Numbers are written without leading zeros, plus signs and exponents, such as 10, -3 or 2.0. What
    differs as text must differ as a number, and integers have at most 64 bits: else all stay text.

    Args:
        texts: Labels, N of them.

    Returns:
        Array [N] of int64 or uint64, exact; of float64 where some are not whole; or None.
    """
    texts = list(texts)
    values = {text: _label_number(text) for text in set(texts)}
    if None in values.values() or len(set(values.values())) < len(values):
        return None
    found = [values[text] for text in texts]
    if any(isinstance(value, float) for value in found):
        return np.array(found, dtype=np.float64)
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(found, dtype=dtype)
        except OverflowError:
            continue
    return None


def _label_number(text: str) -> int | float | None:
    match = _LABEL.fullmatch(text)
    if match is None:
        return None
    whole, fraction = match.groups()
    if (fraction or "").strip(".0"):
        return float(text)
    # Python itself refuses thousands of digits; -0 is another way to write 0.
    return int(whole) if len(whole.lstrip("-")) <= _MAX_DIGITS and whole != "-0" else None
