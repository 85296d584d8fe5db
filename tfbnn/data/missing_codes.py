"""Codes for missing values, such as -999, among the numbers of a column."""

from collections.abc import Sequence

import numpy as np

from tfbnn.data.validation import counted
from tfbnn.exceptions import DataWarning
from tfbnn.system.arrays import Array, by_rows
from tfbnn.system.words import warn

_NINES = [float(f"{10**digits - 1}.{tail}") for digits in range(3, 11) for tail in ("0", "9", "99")]
_SIZES = [99.9, 99.99, 2.0**31 - 1, 1e10, 1e15, 9.96921e36, *np.power(10.0, range(20, 39)), *_NINES]
# A column with more of them has values of many sizes, such as powers of ten.
_MOST_CODES = 3
# In float32, the dtype of many files.
_CODES = np.array([-99, -32768, 32767, -(2.0**31), *_SIZES, *np.negative(_SIZES)], np.float32)


def are_codes(values: Array) -> Array:
    """Mark values [...] that are in common use as codes for missing values."""
    with np.errstate(over="ignore"):
        found: Array = np.isin(np.asarray(values, np.float32), _CODES)
    return found


def warn_of_codes(
    values: Array, what: str, advice: str, names: Sequence[str] | None = None
) -> None:
    """Warn about numbers that look like codes for missing values, by column and count.

    Such numbers are in common use as codes, occur at least twice in a column, and lie further from
    its other numbers than these do from each other. Closer numbers may be measured: counts up to
    999, or a detector that saturates at 9999.

    Args:
        values: [N, D].
        what: What messages call them.
        advice: What to do.
        names: Names of the columns, or None.
    """
    codes_at = by_rows(are_codes, values)
    for column in np.flatnonzero(codes_at.sum(axis=0) > 1).tolist():
        mask = codes_at[:, column]
        others = values[~mask, column]
        low, high = (others.min(), others.max()) if len(others) else (0.0, 0.0)
        found, counts = np.unique(values[mask, column], return_counts=True)
        away = (counts > 1) & (np.maximum(found - high, low - found) > high - low)
        codes = dict(zip(found[away].tolist(), counts[away].tolist()))
        if 0 < len(codes) <= _MOST_CODES and high > low:
            where = f"column {column if names is None else repr(names[column])} of {what}"
            warn(
                f"{where} has numbers that look like codes for missing values (with counts: "
                f"{counted(codes)}): all others lie between {low:g} and {high:g}. They are used as if "
                f"they were measured: {advice}",
                DataWarning,
            )
