"""Which rows of benchmarks/studies/default/run.py belong together, and how methods differ on the same splits."""

from typing import NamedTuple

import numpy as np

from benchmarks.lib.default_ours import OURS

__all__ = [
    "DEFAULT",
    "Difference",
    "best_rival",
    "by_split",
    "difference",
    "done",
    "is_rival",
    "label",
    "methods",
    "of_table",
]

DEFAULT = "default auto"
# From so many splits on their spread is the error of a mean; below it is that of the test rows.
MIN_SPLITS = 5


class Difference(NamedTuple):
    """Mean of a score of one method less that of another on the same splits, and its error."""

    mean: float
    error: float
    num_splits: int


def label(row):
    """Return the name that the tables give to the method of a row."""
    network = "-".join(map(str, row["hidden"])) or ("auto" if row["method"] in OURS else "")
    name = f"{row['method']} {network}".strip()
    return f"{name}, plain target" if row["plain"] else name


def done(rows):
    """Return the rows whose fits came to an end."""
    return [row for row in rows if "failed" not in row]


def of_table(rows, table):
    """Rows of one table."""
    return [row for row in rows if row["table"] == table]


def methods(rows):
    """Dict label -> rows, this package's methods first."""
    order = [*OURS, *dict.fromkeys(row["method"] for row in rows if row["method"] not in OURS)]
    found = {}
    for row in sorted(rows, key=lambda row: (order.index(row["method"]), label(row), row["split"])):
        found.setdefault(label(row), []).append(row)
    return found


def is_rival(row):
    """Return whether the row is a rival's, whatever its noise model."""
    return row["method"] not in OURS


def by_split(rows, score):
    """Dict split -> mean of a score over the seeds; arrays for scores that are lists."""
    values = {}
    for row in rows:
        if score in row:
            values.setdefault(row["split"], []).append(row[score])
    return {split: np.mean(found, axis=0) for split, found in values.items()}


def difference(ours, theirs, score="lpd"):
    """Difference of two methods' rows on the splits that both have, or None without any."""
    here, there = by_split(ours, score), by_split(theirs, score)
    splits = sorted(set(here) & set(there))
    if not splits:
        return None
    values = np.array([here[split] - there[split] for split in splits])
    if len(splits) >= MIN_SPLITS:
        error = values.std(ddof=1) / np.sqrt(len(splits))
    else:
        error = _error_of_groups(ours, theirs, splits) if score == "lpd" else np.nan
    return Difference(float(values.mean()), float(error), len(splits))


def _error_of_groups(ours, theirs, splits):
    here, there = by_split(ours, "lpd_groups"), by_split(theirs, "lpd_groups")
    groups = [here[split] - there[split] for split in splits]
    return np.sqrt(sum(group.var(ddof=1) / len(group) for group in groups)) / len(splits)


def best_rival(rows, score="lpd", largest=True):
    """(label, rows) of the best rival on the splits that it shares with the default.

    Args:
        rows: Rows of one table.
        score: Name of the score that decides.
        largest: Whether a large one is good.

    Returns:
        None without a default or a rival. It is the best by the test rows, in the rival's favour:
        the one that is furthest ahead of the default, or least behind, on the splits of both.
    """
    sign, groups = 1.0 if largest else -1.0, methods(done(rows))
    ours, leads = groups.get(DEFAULT, []), {}
    for name, its_rows in groups.items():
        found = difference(ours, its_rows, score) if is_rival(its_rows[0]) else None
        if found is not None:
            leads[name] = -sign * found.mean
    best = max(leads, key=leads.get, default=None)
    return None if best is None else (best, groups[best])
