"""Reader for comma-separated tables of chi10 chi10 cross sections."""

import numpy as np

from tfbnn.data.csv_tables import CsvRows, Lines, column_places, open_csv
from tfbnn.datasets.table import SPLIT_CODES, TRAIN, Dataset
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath

FEATURE_NAMES = ("m_chi10_GeV", "N11", "N12", "N13", "N14")
SPLIT_NAME = "split"


def read_cross_sections(path: StrPath, target: str = "nlo_alphas_up_fb") -> Dataset:
    """Read features, one target and the split from a comma-separated table.

    The first line names the columns. Needed are ``m_chi10_GeV`` (signed mass, GeV), ``N11``,
    ``N12``, ``N13``, ``N14`` (mixings, no unit) and the target. A column ``split`` holds
    0 (train), 1 (validation) or 2 (test); without it every row is a training row. Other
    columns are ignored, and so are blank lines. The target is returned in the unit of the
    table, which its name should end with (``_fb`` for femtobarn).

    Args:
        path: File to read.
        target: Name of the target column.

    Returns:
        A Dataset with x of shape [N, 5] and y of shape [N].

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a column is missing or named twice, a line has the wrong number of
            cells, a number cannot be read or is not finite, a split code is unknown, or there
            are no rows.
    """
    with open_csv(path) as table:
        rows = list(table)
        numbers = table.numbers(rows, (*FEATURE_NAMES, target))
        split = _split_codes(table, rows)
    if not rows:
        raise ValueError(f"{path} has a header but no rows; expected at least one row.")
    return Dataset(numbers[:, :-1], numbers[:, -1], FEATURE_NAMES, target, split)


def _split_codes(table: CsvRows, rows: Lines) -> Array:
    """Return the split column as integers, shape [N]; all TRAIN if there is none."""
    if SPLIT_NAME not in table.columns:
        return np.full(len(rows), TRAIN)
    (column,) = column_places([SPLIT_NAME], table.columns, table.source)
    known = {str(code): code for code in SPLIT_CODES}
    codes = []
    for line, cells in rows:
        text = cells[column].strip()
        if text not in known:
            raise ValueError(
                f"{table.source}, line {line}, column {SPLIT_NAME}: expected 0 (train), "
                f"1 (validation) or 2 (test), got {text!r}; correct the code."
            )
        codes.append(known[text])
    return np.array(codes, dtype=int)
