"""Tables in text as people have them: what separates the cells, and where the columns are named.

The first lines decide, by a rule without guesses:

- Lines that begin with "#" are comments, and blank lines are skipped.
- The first other line is the header. But where it holds a number, and the comment before it has as
  many names, that comment is the header: `numpy.savetxt` writes it so.
- The separator is the one out of semicolon, tab and comma that splits that line into the most
  cells; the first of these where they tie, as names may have commas: "mass; xsec (fb, LO)". A line
  with none of them is separated by white space, unless the row after it is a single word: then it
  is the name of the only column.

Cells may be quoted, and then hold separators; line ends too, unless white space separates cells.
"""

import contextlib
import csv
import gzip
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator

from tfbnn.data.numbers import is_number
from tfbnn.exceptions import DataWarning
from tfbnn.system.words import warn

WHITE_SPACE = " "
SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", WHITE_SPACE: "white space"}
_CHARACTERS = [separator for separator in SEPARATORS if separator != WHITE_SPACE]
_QUOTED = re.compile('"[^"]*"')
# The separator is not known where an empty file ends.
_BLANKS = " \r\n"


class TextLines:
    """The physical lines of a table, counted, without the comments and blank lines between rows.

    Attributes:
        source: Name of the file, for messages.
        columns: Names in the header; None where there is no line at all.
        number: Number of the line that was read last, from 1.
        blank: Number of the last blank line before that and after the row before, or 0.
    """

    def __init__(self, lines: Iterable[str], source: str) -> None:
        self.source, self.number, self.blank = source, 0, 0
        lines = iter(lines)
        # A spreadsheet's byte order mark survives on standard input.
        self._lines = itertools.chain(
            (line.removeprefix("\ufeff") for line in itertools.islice(lines, 1)), lines
        )
        self._is_between_rows = True
        self._comment = ""
        self._separator: str | None = None
        self._has_warned = False
        self.columns: list[str] | None = None
        with self._readable():
            self.columns = self._header()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        if self._is_between_rows:
            self.blank = 0
            while line[:1] in "# \t\r\n" and self._is_no_row(line):
                line = next(self._lines)
                self.number += 1
            self._is_between_rows = False
        return line

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yields (number of its last line, cells) of every row after the header."""
        reader: Iterator[list[str]] = (split(line, WHITE_SPACE) for line in self)
        if self._separator != WHITE_SPACE:
            reader = csv.reader(self, delimiter=self._separator or ",", skipinitialspace=True)
        self._is_between_rows = True
        with self._readable():
            for cells in reader:
                yield self.number, cells
                self._is_between_rows = True

    @property
    def separators(self) -> str:
        """What separates cells, for messages."""
        return SEPARATORS[self._separator or ","]

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (csv.Error, UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{self.source}, line {self.number + 1}: not a table in UTF-8 text ({error}). "
                "Other formats are known by the ending of the file's name: .npz, .h5, .parquet."
            ) from error

    def _put_back(self, line: str) -> None:
        self._lines = itertools.chain([line], self._lines)
        self.number -= 1
        self._is_between_rows = True

    def _is_no_row(self, line: str) -> bool:
        if not line.strip(_BLANKS) or (self._separator == WHITE_SPACE and not line.strip()):
            self.blank = self.number
            return True
        if not line.lstrip().startswith("#"):
            return False
        self._comment = line.lstrip("# \t")
        self._warn_of_a_row()
        return True

    def _warn_of_a_row(self) -> None:
        if self._separator is None or self._has_warned or len(self.columns or ()) == 1:
            return
        cells = split(self._comment, self._separator)
        if len(cells) == len(self.columns or ()) and _has_number(cells):
            self._has_warned = True
            warn(
                f"{self.source}, line {self.number}, begins with # and is skipped as a comment, "
                "though it has as many cells as the rows; quote its first cell if it is one.",
                DataWarning,
            )

    def _header(self) -> list[str] | None:
        first = next(self, None)
        if first is None:
            return None
        separator = separator_of(first)
        names = split(self._comment, separator_of(self._comment))
        cells = split(first, separator)
        if _has_number(cells) and not _has_number(names) and len(names) == len(cells):
            self._put_back(first)
        elif separator == WHITE_SPACE:
            names = cells
            self._is_between_rows = True  # comments and blank lines may follow
            if (second := next(self, None)) is not None:
                self._put_back(second)
                if len(split(second, separator_of(second))) == 1:
                    separator, names = ",", split(first, ",")
        else:
            self._put_back(first)
            self._separator = separator
            names = next(self.rows())[1]
        self._separator = separator
        return [name.strip() for name in names]


def separator_of(line: str) -> str:
    """What separates the cells of a line, see above; a comma where there is a single word."""
    bare = _QUOTED.sub("x", line)
    best = max(_CHARACTERS, key=bare.count)
    if best in bare:
        return best
    return WHITE_SPACE if len(bare.split()) > 1 else ","


def split(line: str, separator: str) -> list[str]:
    """The cells of one line."""
    if separator == WHITE_SPACE and '"' not in line:
        return line.split()
    if separator == WHITE_SPACE:
        line = " ".join(line.split())
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])


def _has_number(cells: Iterable[str]) -> bool:
    return any(map(is_number, cells))
