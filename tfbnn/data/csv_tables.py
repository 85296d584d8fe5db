"""Comma-separated tables, read row by row, so that any length passes at constant memory."""

import contextlib
import csv
import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from tfbnn.system.arrays import Array
from tfbnn.system.atomic import open_text, replacing
from tfbnn.system.paths import StrPath

# Line number and cells.
Line = tuple[int, list[str]]
Lines = Sequence[Line]
Names = Sequence[str]


class CsvRows:
    """The rows of an open CSV file, read as they are iterated over: (line number, cells).

    Attributes:
        source: Name of the file, for messages.
        columns: Names in the header.
    """

    def __init__(self, stream: TextIO, source: str) -> None:
        self.source = source
        self._lines = _csv_lines(stream, source)
        header = next(self._lines, None)
        if header is None:
            raise ValueError(f"{source} is empty; expected a header line with the column names.")
        # A spreadsheet's byte order mark survives on standard input.
        self.columns = tuple(cell.strip().lstrip("\ufeff") for cell in header[1])
        if all(is_number(name) for name in self.columns):
            raise ValueError(
                f"{source}, line {header[0]}: expected a header line with the column names, got "
                "only numbers; put the names of the columns in the first line."
            )

    def __iter__(self) -> Iterator[Line]:
        for line, cells in self._lines:
            if len(cells) != len(self.columns):
                raise ValueError(
                    f"{self.source}, line {line}: expected {len(self.columns)} cells as in the "
                    f"header, got {len(cells)}; repair the line."
                )
            yield line, cells

    def numbers(self, lines: Lines, names: Names) -> Array:
        """The named columns of some rows.

        Args:
            lines: List of (line number, cells), as iterated.
            names: Column names.

        Returns:
            Array [len(lines), len(names)], float64.

        Raises:
            ValueError: If a column is missing or there twice, or a cell is not a finite number.
        """
        places = column_places(names, self.columns, self.source)
        try:
            values = np.array([[float(cells[p]) for p in places] for _, cells in lines])
        except ValueError:
            values = np.array(np.nan)
        if not np.isfinite(values).all():
            self._refuse_bad_cell(lines, names, places)
        return values.reshape(len(lines), len(places))

    def texts(self, lines: Lines, names: Names) -> dict[str, Array]:
        """The named columns of some rows as they are written: dict name -> text array.

        Raises:
            ValueError: If a column is missing or there twice, or a cell is empty.
        """
        places = column_places(names, self.columns, self.source)
        for line, cells in lines:
            for name, place in zip(names, places):
                if not cells[place].strip():
                    raise ValueError(
                        f"{self.source}, line {line}, column {name}: expected a label, got an "
                        "empty cell; repair or remove the row."
                    )
        return {
            name: np.array([cells[place].strip() for _, cells in lines])
            for name, place in zip(names, places)
        }

    def _refuse_bad_cell(self, lines: Lines, names: Names, places: list[int]) -> None:
        for line, cells in lines:
            for name, place in zip(names, places):
                if not is_number(cells[place]):
                    raise ValueError(
                        f"{self.source}, line {line}, column {name}: expected a finite number, "
                        f"got {cells[place]!r}; repair or remove the row."
                    )


@contextlib.contextmanager
def open_csv(path: StrPath) -> Iterator[CsvRows]:
    """Opens a CSV file, or standard input for "-", as `CsvRows`; for use in a `with` statement."""
    if path == "-":
        yield CsvRows(sys.stdin, "standard input")
        return
    if not os.path.exists(path):
        raise FileNotFoundError(f"No file {path}; give the path of a comma-separated table.")
    # utf-8-sig also takes the byte order mark that some spreadsheets write.
    with open(path, newline="", encoding="utf-8-sig") as stream:
        yield CsvRows(stream, os.fspath(path))


def write_csv(
    target: StrPath | TextIO,
    columns: Names,
    values: Any,
    *,
    labels: Any = None,
    digits: int = 17,
    header: bool = True,
    separator: str = ",",
) -> None:
    """Writes numbers as CSV, and labels before them.

    Args:
        target: File name, which the table gets once it is complete; or a text stream open for
            writing.
        columns: L + M names.
        values: Numbers [N, M].
        labels: Text, integers or booleans [N, L], written as they are; None (default): L is 0.
        digits: Significant digits; 17 (default) keep every bit.
        header: Whether to write the line of column names; off for further rows of one table.
        separator: What stands between cells.

    Raises:
        ValueError: If there is not one name per column.
    """
    values = np.asarray(values, dtype=np.float64)
    labels = np.empty((*values.shape[:1], 0)) if labels is None else np.asarray(labels)
    count = len(columns) - labels.shape[-1]
    if values.ndim != 2 or values.shape[1] != count:
        raise ValueError(
            f"values must have shape [N, {count}], one column per name, received "
            f"{list(values.shape)}."
        )
    if isinstance(target, (str, os.PathLike)):
        with replacing(target) as temporary, open_text(temporary) as stream:
            write_csv(
                stream,
                columns,
                values,
                labels=labels,
                digits=digits,
                header=header,
                separator=separator,
            )
        return
    writer = csv.writer(target, delimiter=separator, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows(
        [*texts, *(f"{value:.{digits}g}" for value in row)]
        for texts, row in zip(labels.tolist(), values.tolist())
    )


def column_places(
    names: Names, columns: Names, source: StrPath, kind: str = "columns"
) -> list[int]:
    """Indices of the named columns of a table.

    Raises:
        ValueError: If a column is missing or there twice.
    """
    missing = [name for name in names if name not in columns]
    if missing:
        raise ValueError(
            f"{source} has no column {', '.join(missing)}; its {kind} are {', '.join(columns)}. "
            "Rename the columns or choose others."
        )
    for name in names:
        if columns.count(name) > 1:
            raise ValueError(
                f"{source} has {columns.count(name)} columns {name or '(without a name)'}; "
                "keep only one."
            )
    return [columns.index(name) for name in names]


def _csv_lines(stream: TextIO, source: str) -> Iterator[Line]:
    """Yields (line number, cells) of all lines that are not blank."""
    reader = csv.reader(stream)
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                yield reader.line_num, cells
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{source}, line {reader.line_num + 1}: not comma-separated text ({error}). Other "
            "formats are known by the ending of the file's name: .npz, .h5, .parquet."
        ) from error


def is_number(text: str) -> bool:
    """Whether a cell holds a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
