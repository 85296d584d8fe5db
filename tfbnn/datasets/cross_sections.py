"""Reader for comma-separated tables of chi10 chi10 cross sections."""

import csv
import math
from pathlib import Path

import numpy as np

from .table import SPLIT_CODES, TRAIN, Dataset

FEATURE_NAMES = ("m_chi10_GeV", "N11", "N12", "N13", "N14")
SPLIT_NAME = "split"


def read_cross_sections(path, target="nlo_alphas_up_fb"):
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
    path = Path(path)
    header, rows = _read_rows(path)
    needed = FEATURE_NAMES + (target,)
    _check_header(path, header, needed)
    if not rows:
        raise ValueError(f"{path} has a header but no rows; expected at least one row.")
    return Dataset(
        x=np.column_stack([_numbers(path, header, rows, name) for name in FEATURE_NAMES]),
        y=_numbers(path, header, rows, target),
        feature_names=FEATURE_NAMES,
        target_name=target,
        split=_split_codes(path, header, rows),
    )


def _read_rows(path):
    """Return the header cells, and the other lines as (line number, cells)."""
    if not path.is_file():
        raise FileNotFoundError(f"No file {path}; give the path of a comma-separated table.")
    # utf-8-sig also takes the byte order mark that some spreadsheets write.
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.reader(stream)
        lines = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    if not lines:
        raise ValueError(f"{path} is empty; expected a header line with the column names.")
    header = [name.strip() for name in lines[0][1]]
    rows = lines[1:]
    for line, cells in rows:
        if len(cells) != len(header):
            raise ValueError(
                f"{path}, line {line}: expected {len(header)} cells as in the header, "
                f"got {len(cells)}; repair the line."
            )
    return header, rows


def _check_header(path, header, needed):
    missing = [name for name in needed if name not in header]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}; its columns are {', '.join(header)}. "
            "Rename the columns or choose another target."
        )
    for name in needed + (SPLIT_NAME,):
        if header.count(name) > 1:
            raise ValueError(f"{path} has {header.count(name)} columns {name}; keep only one.")


def _numbers(path, header, rows, name):
    """Return one column as float64, shape [N]."""
    column = header.index(name)
    values = []
    for line, cells in rows:
        try:
            value = float(cells[column])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(
                f"{path}, line {line}, column {name}: expected a finite number, "
                f"got {cells[column]!r}; repair or remove the row."
            )
        values.append(value)
    return np.array(values, dtype=np.float64)


def _split_codes(path, header, rows):
    """Return the split column as integers, shape [N]; all TRAIN if there is none."""
    if SPLIT_NAME not in header:
        return np.full(len(rows), TRAIN)
    column = header.index(SPLIT_NAME)
    known = {str(code): code for code in SPLIT_CODES}
    codes = []
    for line, cells in rows:
        text = cells[column].strip()
        if text not in known:
            raise ValueError(
                f"{path}, line {line}, column {SPLIT_NAME}: expected 0 (train), 1 (validation) "
                f"or 2 (test), got {text!r}; correct the code."
            )
        codes.append(known[text])
    return np.array(codes)
