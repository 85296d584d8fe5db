"""Which rows of benchmarks/default.py belong together, and how methods differ on the same splits."""

from typing import NamedTuple

import numpy as np
from default_ours import OURS
from default_rivals import HETEROSCEDASTIC
from default_tables import CLASSES, TABLES

__all__ = [
    "DEFAULT",
    "Difference",
    "best_rival",
    "by_split",
    "difference",
    "done",
    "label",
    "left_out",
    "methods",
    "of_table",
    "same_noise",
]

DEFAULT = "default 50"
# From so many splits on their spread is the error of a mean; below it is that of the test rows.
MIN_SPLITS = 5
# A rival with a smaller share of the default's splits says too little of the table.
LEAST_SHARE = 0.5


class Difference(NamedTuple):
    """Mean of a score of one method less that of another on the same splits, and its error."""

    mean: float
    error: float
    num_splits: int


def label(row):
    """What the tables call the method of a row."""
    name = f"{row['method']} {'-'.join(map(str, row['hidden']))}".strip()
    return f"{name}, plain target" if row["plain"] else name


def done(rows):
    """Those that came to an end."""
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


def same_noise(row):
    """Whether the row is a rival's with the noise model of the default."""
    of_classes = TABLES[row["table"]].kind == CLASSES  # which have no noise to model
    return row["method"] not in OURS and (of_classes or row["method"] not in HETEROSCEDASTIC)


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
    """(label, rows) of the best rival with the default's noise model where the default was fitted.

    Args:
        rows: Rows of one table.
        score: Name of the score that decides.
        largest: Whether a large one is good.

    Returns:
        None without a default or a rival. It is the best by the test rows, in the rival's favour:
        the one that is furthest ahead of the default, or least behind, on the splits of both.
    """
    sign = 1.0 if largest else -1.0
    leads = {
        name: -sign * found.mean for name, (found, enough) in _rivals(rows, score).items() if enough
    }
    if not leads:
        return None
    best = max(leads, key=leads.get)
    return best, methods(done(rows))[best]


def left_out(rows, score="lpd"):
    """Text that names the rivals with too few of the default's splits for `best_rival`, or ""."""
    num_splits = len(by_split(methods(rows).get(DEFAULT, []), score))
    texts = [
        f"{name} ({found.num_splits if found else 0} of {num_splits} splits)"
        for name, (found, enough) in _rivals(rows, score).items()
        if not enough
    ]
    return f"; left out: {', '.join(texts)}" if texts else ""


def _rivals(rows, score):
    """Dict label -> (Difference of the default and the rival, whether on splits enough)."""
    groups = methods(rows)
    ours = groups.get(DEFAULT, [])
    least = LEAST_SHARE * len(by_split(ours, score))
    found = {
        name: difference(ours, its_rows, score)
        for name, its_rows in groups.items()
        if same_noise(its_rows[0])
    }
    return {name: (own, own is not None and own.num_splits >= least) for name, own in found.items()}
