"""Tables in text, such as CSV, read row by row, so that any length passes at constant memory.

What separates the cells and where the header is: see `tfbnn.data.text_lines`.
"""

import contextlib
import csv
import gzip
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from tfbnn.data.numbers import decimal, is_gap, is_number, only_plain_floats
from tfbnn.data.text_lines import TextLines
from tfbnn.exceptions import DataWarning
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath, open_text, replacing
from tfbnn.system.words import did_you_mean, warn

_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?")
# Line number and cells.
Line = tuple[int, list[str]]
Lines = Sequence[Line]
Names = Sequence[str]

TEXT_ADVICE = (
    "the column holds no numbers. Text can be a feature, and class labels in a fit with --likelihood "
    "categorical or bernoulli"
)


class CsvRows:
    """The rows of an open table, read as they are iterated over: (line number, cells).

    A line of empty cells is a row. A blank line is none, but in a table of one column it may be a
    row without its value, and is refused unless no row follows.

    Attributes:
        source: Name of the file, for messages.
        columns: Names in the header.
    """

    def __init__(self, stream: Iterable[str], source: str) -> None:
        self.source, self._has_warned = source, False
        self._lines = TextLines(stream, source)
        if self._lines.columns is None:
            raise ValueError(f"{source} is empty; expected a header line with the column names.")
        self.columns = tuple(self._lines.columns)
        if all(is_number(name) for name in self.columns):
            raise ValueError(
                f"{source}, line {self._lines.number}: expected a header line with the column "
                "names, got only numbers; put the names of the columns in the first line."
            )

    def __iter__(self) -> Iterator[Line]:
        count, lines = len(self.columns), self._lines
        for line, cells in lines.rows():
            if count == 1 and lines.blank:
                raise ValueError(
                    f"{self.source}, line {lines.blank}: expected a value, got a blank line "
                    "between the rows of a table of one column; repair or remove the line."
                )
            if len(cells) != count:
                raise ValueError(
                    f"{self.source}, line {line}: expected {count} cells as in the header, got "
                    f"{len(cells)}; repair the line, whose cells have {lines.separators} between."
                )
            yield line, cells

    def numbers(self, lines: Lines, names: Names, may_lack: Sequence[bool] = ()) -> Array:
        """The named columns of some rows.

        Args:
            lines: List of (line number, cells), as iterated.
            names: Column names.
            may_lack: Of each whether numbers may be missing; none (default): they may not.

        Returns:
            Array [len(lines), len(names)], float64; NaN for missing ones.

        Raises:
            ValueError: If a column is missing or there twice, or a cell is not a finite number.
        """
        places = column_places(names, self.columns, self.source)
        picked = [[cells[place] for place in places] for _, cells in lines]
        try:
            values = np.array([[*map(float, row)] for row in picked])
        except ValueError:
            values = np.array(np.nan)
        plain = all(only_plain_floats("".join(row)) for row in picked)
        if not (plain and np.isfinite(values).all()):
            values = self._odd_numbers(lines, names, places, may_lack)
        values = values.reshape(len(lines), len(places))
        self._warn_of_rounding(lines, names, places, values)
        return values

    def texts(self, lines: Lines, names: Names, *, are_labels: bool = True) -> dict[str, Array]:
        """The named columns of some rows as they are written: dict name -> text array.

        Args:
            lines, names: As in `numbers`.
            are_labels: Whether they are labels, or features, for messages.

        Raises:
            ValueError: If a column is missing or there twice, or a cell is empty.
        """
        places = column_places(names, self.columns, self.source)
        what, instead = ("label", "") if are_labels else ("value", ", or fit without the column")
        for line, cells in lines:
            for name, place in zip(names, places):
                if not cells[place].strip():
                    raise ValueError(
                        f"{self.source}, line {line}, column {name}: expected a {what}, got an "
                        f"empty cell; repair or remove the row{instead}."
                    )
        return self.cells(lines, names)

    def cells(self, lines: Lines, names: Names) -> dict[str, Array]:
        """As `texts`, whatever is written there, or nothing."""
        places = column_places(names, self.columns, self.source)
        return {
            name: np.array([cells[place].strip() for _, cells in lines])
            for name, place in zip(names, places)
        }

    def _odd_numbers(
        self, lines: Lines, names: Names, places: list[int], may_lack: Sequence[bool]
    ) -> Array:
        """`numbers` cell by cell: some are in Fortran's notation, missing, or refused."""
        lacking = may_lack or [False] * len(names)
        values = np.full((len(lines), len(names)), np.nan)
        for row, (line, cells) in enumerate(lines):
            for column, (name, place) in enumerate(zip(names, places)):
                if is_number(cell := decimal(cells[place])):
                    values[row, column] = float(cell)
                elif not (lacking[column] and is_gap(cells[place])):
                    raise ValueError(
                        f"{self.source}, line {line}, column {name}: expected a finite number, "
                        f"got {cells[place]!r}; {_remedy(cells[place], lines, place)}."
                    )
        return values

    def _warn_of_rounding(
        self, lines: Lines, names: Names, places: list[int], values: Array
    ) -> None:
        """Warns of an integer that float64 has no room for: different ones become equal."""
        if self._has_warned:
            return
        for row, column in np.argwhere(np.abs(values) >= 2**53).tolist():
            (line, cells), value = lines[row], values[row, column]
            cell = cells[places[column]].strip()
            if cell.lstrip("+-").isdigit() and len(cell) < 40 and int(cell) != int(value):
                warn(
                    f"{self.source}, line {line}, column {names[column]}: {cell} is beyond 2^53 and "
                    f"becomes {int(value)}, as others may. Subtract a number from the column first, or leave "
                    "it out if these are names.",
                    DataWarning,
                )
                self._has_warned = True
                return


@contextlib.contextmanager
def open_csv(path: StrPath) -> Iterator[CsvRows]:
    """Opens a table in text as `CsvRows`, for use in a `with` statement.

    Args:
        path: File name, of a compressed file where it ends in .gz; or "-" for standard input.

    Raises:
        FileNotFoundError: When there is no such file.
        ValueError: When it has no header, or is no text of UTF-8, or standard input is closed.
    """
    if path == "-":
        if sys.stdin is None:
            raise ValueError("Standard input is closed; give the path of a table instead of '-'.")
        yield CsvRows(sys.stdin, "standard input")
        return
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"No file {path}; give the path of a table.")
    opened = gzip.open if path.lower().endswith(".gz") else open
    # utf-8-sig also takes the byte order mark that some spreadsheets write.
    with opened(path, "rt", newline="", encoding="utf-8-sig") as stream:
        yield CsvRows(stream, path)


def write_csv(
    target: StrPath | TextIO,
    columns: Names,
    values: Any,
    *,
    labels: Sequence[Array] = (),
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
        labels: L columns [N], each of text, booleans or numbers, written as they are; default none.
        digits: Significant digits; 17 (default) keep every bit.
        header: Whether to write the line of column names; off for further rows of one table.
        separator: What stands between cells.

    Raises:
        ValueError: If there is not one name per column.
    """
    values = np.asarray(values, dtype=np.float64)
    count = len(columns) - len(labels)
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
    texts = zip(*(column.tolist() for column in labels)) if len(labels) else itertools.repeat(())
    writer.writerows(
        [*cells, *(f"{value:.{digits}g}" for value in row)]
        for cells, row in zip(texts, values.tolist())
    )


def column_places(
    names: Names, columns: Names, source: StrPath, kind: str = "columns"
) -> list[int]:
    """Indices of the named columns of a table; one pass over its columns, however many.

    Raises:
        ValueError: If a column is missing or there twice.
    """
    places = {column: place for place, column in enumerate(columns)}
    missing = [name for name in names if name not in places]
    if missing:
        raise ValueError(
            f"{source} has no column {', '.join(missing)}; its {kind} are {', '.join(columns)}."
            f"{did_you_mean(missing[0], columns)} Rename the columns or choose others."
        )
    if len(places) < len(columns):
        count = Counter(columns)
        for name in names:
            if count[name] > 1:
                raise ValueError(
                    f"{source} has {count[name]} columns {name or '(without a name)'}; "
                    "keep only one."
                )
    return [places[name] for name in names]


def _remedy(cell: str, lines: Lines, place: int) -> str:
    """What to do about a cell that holds no number."""
    if _THOUSANDS.fullmatch(cell.strip()):
        return (
            f"write {cell.strip().replace(',', '')} if commas group the digits, or a decimal point if they "
            "are decimal commas, in the whole column alike"
        )
    if is_number(cell.replace(",", ".", 1)):
        return "write decimal points, no commas"
    if cell.strip() and not any(is_number(decimal(cells[place])) for _, cells in lines):
        return TEXT_ADVICE
    return "repair or remove the row"
