"""Tables in text that tests read."""

import csv
from pathlib import Path

import numpy as np

__all__ = ["write_csv"]


def write_csv(path, columns, values, labels=()):
    """Write numbers [N, M] with every bit, and columns [N] of labels before them."""
    with Path(path).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        texts = [np.asarray(column).tolist() for column in labels]
        writer.writerows(zip(*texts, *np.asarray(values, dtype=np.float64).T.tolist()))
