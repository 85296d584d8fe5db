"""Digests of rows, so that a model can tell the rows of its fit from new ones without holding them."""

import numpy as np

from tfbnn.spec.rows import Rows
from tfbnn.system.arrays import Array, by_rows

# Of more rows the smallest digests are kept, and tell the share of the rows that have such ones.
MOST_DIGESTS = 65_536
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFTS = (np.uint64(32), np.uint64(29))


def row_digests(rows: Rows) -> Array:
    """Ascending digests uint32 [min(N, 65536)] of inputs and targets, in original units.

    Of a million other rows some 200 have the digest of one of these by chance; nobody can go back
    from a digest to its row.
    """
    return merged_digests(by_rows(_digests_of, rows.x, rows.y))


def merged_digests(*parts: Array) -> Array:
    """The digests of the rows of several fits together, out of those of each.

    Copies stay, as without them a part that is not whole would be taken for more than it is.
    """
    digests: Array = np.sort(np.concatenate(parts))[:MOST_DIGESTS].copy()
    return digests


def num_known(known: Array, rows: Rows) -> int:
    """About how many of the rows have one of the digests that `row_digests` gave for others."""
    if not len(known):
        return 0
    digests = by_rows(_digests_of, rows.x, rows.y)
    if len(known) == MOST_DIGESTS:
        judged = digests <= known[-1]
        return round(float(np.isin(digests[judged], known).sum() / max(judged.mean(), 1e-9)))
    return int(np.isin(digests, known).sum())


def _digests_of(x: Array, y: Array) -> Array:
    # Minus zero is zero; sums and products wrap around.
    values = np.ascontiguousarray(np.hstack([x, y]) + 0.0, dtype="<f8").view("<u8")
    state = np.zeros(len(values), np.uint64)
    with np.errstate(over="ignore"):
        for column in values.T:
            state = (state ^ column) * _MULTIPLIER
            for shift in _SHIFTS:
                state ^= state >> shift
            state *= _MULTIPLIER
    return (state >> _SHIFTS[0]).astype(np.uint32)
