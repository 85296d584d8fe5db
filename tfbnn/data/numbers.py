"""Numbers in text: plain decimal notation, for cells and, more strictly, for labels.

Python's float() takes more: "1_000", digits of every script, "nan". In a table these are names.
"""

import contextlib
import math
import re
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from tfbnn.system.arrays import Array

# Each integer is written in one way, so that two texts are never one label: no 007, +1 or 1e2.
_LABEL = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?")
_MAX_DIGITS = 20  # of 2**64 - 1
_LONGEST = 60  # characters of a number with its unit, or of a date
# Fortran's double precision: 1.5D+03. It always writes a point, which codes such as 12D3 lack.
_FORTRAN = re.compile(r"([+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+))[dD]([+-]?[0-9]+)")
# Types of missing values in pandas besides None and NaN; pandas is not imported here.
_MISSING_TYPES = {"NAType", "NaTType"}
_MISSING_WORDS = {"", "nan", "na", "n/a", "#n/a", "<na>", "null", "none"}

_GROUPS = r"[0-9]{1,3}(?:[.,' \u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)?"
_NUMBER = rf"[+-]?(?:{_GROUPS}|[0-9]*[.,]?[0-9]+(?:[eE][+-]?[0-9]+)?)"
_SYMBOL = "[%\u2030$\u20ac\u00a3\u00a5]"
_OTHER = re.compile(
    rf"(?P<before>{_SYMBOL}?)\s*{_NUMBER}(?:\s*(?:\+/?-|\u00b1)\s*[0-9.,]+)?"
    rf"(?:\s*(?P<behind>{_SYMBOL})|(?P<blank>\s*)(?P<unit>[^\W\d_]{{1,6}}(?:/[^\W\d_]{{1,6}})?))?"
)
# A year has two digits only after slashes, because 20.04.10 may be a version. 2010-21 is a season,
# not a month.
_DATE = re.compile(
    r"(?:[0-9]{4}-(?:0[1-9]|1[0-2])|[0-9]{4}([./-])[0-9]{1,2}\1[0-9]{1,2}"
    r"|[0-9]{1,2}([./-])[0-9]{1,2}\2[0-9]{4}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2})(?:[T ].*)?"
)


def is_number(text: str) -> bool:
    """Check whether a text is a finite number: "-1", "0.5", ".5" or "1e-3", maybe with blanks."""
    if not only_plain_floats(text):
        return False
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def decimal(text: str) -> str:
    """Replace the D of a Fortran number, such as 1.5D+03, by e; return other texts unchanged."""
    match = _FORTRAN.fullmatch(text.strip())
    return text if match is None else "{}e{}".format(*match.groups())


def is_missing(entry: Any) -> bool:
    """Check whether an entry of a column is None, NaN, NA or NaT."""
    if isinstance(entry, (float, np.floating)):
        return math.isnan(entry)
    return entry is None or type(entry).__name__ in _MISSING_TYPES


def is_gap(cell: str, is_text: bool = False) -> bool:
    """Check whether a cell stands for a missing value: empty, NA, NaN, null.

    In a column of numbers, "none" does as well.
    """
    word = cell.strip().casefold()
    return word in _MISSING_WORDS and not (is_text and word == "none")


def told(texts: Iterable[str]) -> list[str]:
    """Return the texts that do not stand for a missing value."""
    return [text for text in texts if text not in ("-", "?") and not is_gap(text)]


def is_other_notation(texts: Collection[str]) -> bool:
    """Check whether there are texts, and all are dates, or numbers in another notation.

    Examples are 10%, $100, 1.100,00 and 100+-2. Numbers with a unit, such as 100 GeV, must be at
    least three, because two may be names (2WD, 4WD). Units without a blank before them must all be
    the same (not 1st, 2nd, 3rd).
    """
    if not texts or any(len(text) > _LONGEST for text in texts):
        return False
    if all(map(_DATE.fullmatch, texts)):
        return True
    matches = [match for match in map(_OTHER.fullmatch, texts) if match is not None]
    if len(matches) < len(texts):
        return False
    units = {" " if match["blank"] else match["unit"] for match in matches}
    return units == {None} or (len(units) == 1 and len(set(texts)) >= 3)


def only_plain_floats(text: str) -> bool:
    """Check that float() takes nothing in a text, or in many joined, that `is_number` refuses.

    Exceptions are "nan", "inf" and numbers that overflow, which show in the result.
    """
    return text.isascii() and "_" not in text


def label_numbers(texts: Iterable[str]) -> Array | None:
    """Convert class labels to the numbers that they are written as; return None for text.

    Numbers are written without leading zeros, plus signs and exponents, such as 10, -3 or 2.0.
    Labels that differ as text must differ as numbers, and integers must fit into 64 bits; otherwise
    all stay text.

    Args:
        texts: Labels, N of them.

    Returns:
        Array [N] of int64 or uint64, exact; of float64 if some are not whole; or None.
    """
    texts = list(texts)
    values = {text: _label_number(text) for text in set(texts)}
    if None in values.values() or len(set(values.values())) < len(values):
        return None
    found = [values[text] for text in texts]
    if any(isinstance(value, float) for value in found):
        return np.array(found, dtype=np.float64)
    for dtype in (np.int64, np.uint64):
        with contextlib.suppress(OverflowError):
            return np.array(found, dtype=dtype)
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
