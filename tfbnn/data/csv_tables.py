"""Tables in text, such as CSV, read row by row at constant memory, whatever their length.

The first lines decide what separates the cells and where the header is, by fixed rules:

- Lines that begin with "#" are comments, and blank lines are skipped.
- The first other line is the header. But if it holds a number, and the comment before it has as
  many names, that comment is the header: `numpy.savetxt` writes it so.
- The separator is the one of semicolon, tab and comma that splits that line into the most cells. In
  a tie the first of these is taken, because names may have commas: "mass; xsec (fb, LO)". A line
  with none of them is separated by white space, unless the row after it is a single word: then the
  line is the name of the only column.

Cells may be quoted, and may then hold separators. They may also hold line ends, unless white space
separates the cells.
"""

import contextlib
import csv
import gzip
import io
import itertools
import os
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, TextIO

import numpy as np

from tfbnn.data.numbers import decimal, is_gap, is_number, only_plain_floats
from tfbnn.data.table import TEXT_ADVICE, Names, column_indices
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath

WHITE_SPACE = " "
SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", WHITE_SPACE: "white space"}
_CHARACTERS = [separator for separator in SEPARATORS if separator != WHITE_SPACE]
_QUOTED = re.compile('"[^"]*"')
# A tab is not among them, because it may be the separator.
_BLANKS = " \r\n"
# Cells of spreadsheets that begin as comments do.
_OF_SPREADSHEETS = re.compile(r"#(N/A|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!)", re.IGNORECASE)


# Line number and cells.
Line = tuple[int, list[str]]
Lines = Sequence[Line]


class CsvRows:
    """The rows of an open table, read while they are iterated over: (line number, cells).

    A line of empty cells is a row. A blank line is not a row. In a table of one column, however, it
    may be a row without its value, and is refused unless no row follows.

    Attributes:
        source: Name of the file, for messages.
        columns: Names in the header.
    """

    def __init__(self, stream: Iterable[str], source: str) -> None:
        self.source = source
        # Number of the last line read, from 1, and of the last blank line since the previous row.
        self._number, self._blank = 0, 0
        lines = iter(stream)
        # A spreadsheet's byte order mark survives on standard input.
        self._lines = itertools.chain(
            (line.removeprefix("\ufeff") for line in itertools.islice(lines, 1)), lines
        )
        self._is_between_rows, self._comment = True, ""
        # Separator of the cells; None until the header is read.
        self._separator: str | None = None
        with self._readable():
            self.columns = self._header()
        if all(is_number(name) for name in self.columns):
            raise ValueError(
                f"{source}, line {self._number}: expected a header line with the column "
                "names, got only numbers; put the names of the columns in the first line."
            )

    def __iter__(self) -> Iterator[Line]:
        count = len(self.columns)
        for cells in self._rows():
            if count == 1 and self._blank:
                raise ValueError(
                    f"{self.source}, line {self._blank}: expected a value, got a blank line "
                    "between the rows of a table of one column; repair or remove the line."
                )
            if len(cells) != count:
                raise ValueError(
                    f"{self.source}, line {self._number}: expected {count} cells as in the header, got "
                    f"{len(cells)}; repair the line, whose cells are separated by "
                    f"{SEPARATORS[self._separator or ',']}."
                )
            yield self._number, cells

    def _physical_lines(self) -> Iterator[str]:
        """Yield lines, without comments and blank lines between rows."""
        while (line := next(self._lines, None)) is not None:
            self._number += 1
            if self._is_between_rows and line[:1] in "# \t\r\n" and self._is_no_row(line):
                continue
            self._is_between_rows = False
            yield line

    def _rows(self) -> Iterator[list[str]]:
        """Yield the cells of every row from the current line on."""
        lines = self._physical_lines()
        reader: Iterator[list[str]] = (split(line, WHITE_SPACE) for line in lines)
        if self._separator != WHITE_SPACE:
            reader = csv.reader(lines, delimiter=self._separator or ",", skipinitialspace=True)
        self._is_between_rows, self._blank = True, 0
        with self._readable():
            for cells in reader:
                yield cells
                self._is_between_rows, self._blank = True, 0

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (csv.Error, UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{self.source}, line {self._number + 1}: not a table in UTF-8 text ({error}). "
                "Save it as UTF-8; other formats are known by the ending: .npz, .h5, .parquet."
            ) from error

    def numbers(self, lines: Lines, names: Names, may_lack: Collection[str] = ()) -> Array:
        """Return the named columns of some rows as numbers.

        Args:
            lines: List of (line number, cells), as iterated.
            names: Column names.
            may_lack: Names of columns whose numbers may be missing.

        Returns:
            Array [len(lines), len(names)], float64; NaN for missing numbers.

        Raises:
            ValueError: If a column is missing or occurs twice, or a cell is not a finite number.
        """
        indices = column_indices(names, self.columns, self.source)
        picked = [[cells[index] for index in indices] for _, cells in lines]
        try:
            values = np.array([[*map(float, row)] for row in picked])
        except ValueError:
            values = np.array(np.nan)
        plain = all(only_plain_floats("".join(row)) for row in picked)
        if not (plain and np.isfinite(values).all()):
            values = self._odd_numbers(lines, names, indices, may_lack)
        return values.reshape(len(lines), len(indices))

    def texts(self, lines: Lines, names: Names, may_lack: Collection[str] = ()) -> dict[str, Array]:
        """Return the named columns of some rows as they are written: dict name -> text array [N].

        Args:
            lines, names, may_lack: As in `numbers`; missing texts are "".

        Raises:
            ValueError: If a column is missing or occurs twice, or a cell is empty.
        """
        found = self.cells(lines, names)
        for name in names:
            column = found[name].tolist()
            if name in may_lack:
                found[name] = np.array(["" if is_gap(cell, True) else cell for cell in column])
            elif (gap := next(filter(lambda cell: is_gap(cell, True), column), None)) is not None:
                raise ValueError(
                    f"{self.source}, line {lines[column.index(gap)][0]}, column {name}: expected a value, "
                    f"got {repr(gap) if gap else 'an empty cell'}; repair or remove the row, or leave out the "
                    "column."
                )
        return found

    def cells(self, lines: Lines, names: Names) -> dict[str, Array]:
        """Return the named columns of some rows as `texts` does, but allow empty cells."""
        indices = column_indices(names, self.columns, self.source)
        return {
            name: np.array([cells[index].strip() for _, cells in lines])
            for name, index in zip(names, indices)
        }

    def _odd_numbers(
        self, lines: Lines, names: Names, indices: list[int], may_lack: Collection[str]
    ) -> Array:
        """Read `numbers` cell by cell: some are in Fortran's notation, missing, or refused."""
        values = np.full((len(lines), len(names)), np.nan)
        for row, (line, cells) in enumerate(lines):
            for column, (name, index) in enumerate(zip(names, indices)):
                if is_number(cell := decimal(cells[index])):
                    values[row, column] = float(cell)
                elif not (name in may_lack and is_gap(cells[index])):
                    raise ValueError(
                        f"{self.source}, line {line}, column {name}: expected a finite number, "
                        f"got {cells[index]!r}; {_remedy(cells[index], lines, index)}."
                    )
        return values

    def _put_back(self, line: str) -> None:
        self._lines = itertools.chain([line], self._lines)
        self._number -= 1
        self._is_between_rows = True

    def _is_no_row(self, line: str) -> bool:
        if not line.strip(_BLANKS) or (self._separator == WHITE_SPACE and not line.strip()):
            self._blank = self._number
            return True
        # In a table with tabs the first cell may be empty.
        start = line.lstrip(" " if self._separator == "\t" else None)
        if not start.startswith("#") or _OF_SPREADSHEETS.match(start):
            return False
        self._comment = line.lstrip("# \t")
        return True

    def _header(self) -> tuple[str, ...]:
        lines = self._physical_lines()
        first = next(lines, None)
        if first is None:
            raise ValueError(
                f"{self.source} is empty; expected a header line with the column names."
            )
        separator = separator_of(first)
        names = split(self._comment, separator_of(self._comment))
        cells = split(first, separator)
        has_number, may_be_names = any(map(is_number, cells)), not any(map(is_number, names))
        if has_number and may_be_names and len(names) == len(cells):
            self._put_back(first)
        elif separator == WHITE_SPACE:
            names = cells
            self._is_between_rows = True  # comments and blank lines may follow
            if (second := next(lines, None)) is not None:
                self._put_back(second)
                if len(split(second, separator_of(second))) == 1:
                    separator, names = ",", split(first, ",")
        else:
            self._put_back(first)
            self._separator = separator
            names = next(self._rows())
        self._separator = separator
        return tuple(name.strip() for name in names)


def separator_of(line: str) -> str:
    """Return the separator of the cells of a line; a comma for a single word.

    The docstring of the module gives the rules.
    """
    bare = _QUOTED.sub("x", line)
    best = max(_CHARACTERS, key=bare.count)
    if best in bare:
        return best
    return WHITE_SPACE if len(bare.split()) > 1 else ","


def split(line: str, separator: str) -> list[str]:
    """Split one line into cells."""
    if separator == WHITE_SPACE and '"' not in line:
        return line.split()
    if separator == WHITE_SPACE:
        line = " ".join(line.split())
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])


@contextlib.contextmanager
def open_csv(path: StrPath) -> Iterator[CsvRows]:
    """Open a table in text as `CsvRows`, for use in a `with` statement.

    Args:
        path: File name, of a compressed file if it ends in .gz; or "-" for standard input.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it has no header or is not UTF-8 text, or if standard input is closed.
    """
    if path == "-":
        if sys.stdin is None:
            raise ValueError("Standard input is closed; give the path of a table instead of '-'.")
        buffer = getattr(sys.stdin, "buffer", None)
        if buffer is None:
            yield CsvRows(sys.stdin, "standard input")
            return
        text = io.TextIOWrapper(buffer, "utf-8-sig", newline="")  # whatever the locale is
        try:
            yield CsvRows(text, "standard input")
        finally:
            text.detach()
        return
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"No file {path}; give the path of a table.")
    opened = gzip.open if path.lower().endswith(".gz") else open
    # utf-8-sig also takes the byte order mark that some spreadsheets write.
    with opened(path, "rt", newline="", encoding="utf-8-sig") as stream:
        yield CsvRows(stream, path)


class Writer(Protocol):
    """A function that writes the next rows of a table."""

    def __call__(self, values: Any, labels: Sequence[Array] = ()) -> None:
        """Write numbers [n, M], preceded by label columns [n] of any kind."""


def csv_writer(stream: TextIO, columns: Names, separator: str = ",") -> Writer:
    """Return a function that writes rows of a table to a stream, with the header before the first.

    Args:
        stream: Open for writing.
        columns: L + M names, of labels and of numbers.
        separator: Separator of the cells.
    """
    writer, quoting = (
        csv.writer(stream, delimiter=separator, lineterminator="\n", quoting=kind)
        for kind in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    head = [columns]

    def write_rows(rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            # A line that begins with # would be a comment.
            (quoting if str(row[0]).lstrip().startswith("#") else writer).writerow(row)

    def write(values: Any, labels: Sequence[Array] = ()) -> None:
        values, count = np.asarray(values, dtype=np.float64), len(columns) - len(labels)
        if values.ndim != 2 or values.shape[1] != count:
            raise ValueError(
                f"values must have shape [N, {count}], one column per name, received "
                f"{list(values.shape)}."
            )
        if head:
            write_rows([head.pop()])
        texts = [column.tolist() for column in labels]
        # More digits than any prediction is worth.
        numbers = ([f"{value:.9g}" for value in column] for column in values.T.tolist())
        (write_rows if texts else writer.writerows)(zip(*texts, *numbers))

    return write


def _remedy(cell: str, lines: Lines, index: int) -> str:
    """Return advice about a cell that holds no number."""
    if is_number(cell.replace(",", "")):
        return "write decimal points, and no commas between digits, in the whole column alike"
    if cell.strip() and not any(is_number(decimal(cells[index])) for _, cells in lines):
        return TEXT_ADVICE
    return "repair or remove the row"
