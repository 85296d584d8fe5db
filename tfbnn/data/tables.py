"""Reading and writing of tables of named columns; the ending of the file gives the format.

Files are data only: nothing is ever unpickled. For a table in text of any length, read row by row
at constant memory, see `tfbnn.data.csv_tables`. Rows are written piece by piece, and the file gets
its name only once it is complete. Formats other than text keep the rows in memory until the end.
"""

import contextlib
import gzip
import os
import zipfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, BinaryIO, TextIO

import numpy as np

from tfbnn.data.array_files import read_numpy, read_parquet, table_of_arrays
from tfbnn.data.csv_tables import CsvRows, Lines, Writer, csv_writer, open_csv
from tfbnn.data.frames import listed
from tfbnn.data.numbers import decimal, is_number
from tfbnn.data.table import Choice, Names, Table, Wanted, column_indices
from tfbnn.exceptions import DataWarning
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath, open_text, replacing
from tfbnn.system.words import required, warn

_GZ = ".gz"


def read_table(
    path: StrPath,
    columns: Choice = None,
    labels: Names = (),
    *,
    without: Names = (),
    categories: Collection[str] | None = None,
    texts: bool = False,
    needed: Names = (),
    gaps: bool = False,
    as_written: bool = False,
) -> Table:
    """Read a table; the ending of the file's name gives the format.

    `.csv`, `.tsv`, `.txt`, `.dat` and no ending, each also with `.gz`, or "-" for standard input,
    are text. Its separator and header are found as `tfbnn.data.csv_tables` describes. In `.npz`,
    `.h5` and `.hdf5` files, every one-dimensional array (HDF5: of the root group) is a column of
    its name; the columns of a two-dimensional array `x` are called x_0, x_1 and so on. In a `.npy`
    file the same holds for one array, called "column", or for its fields; the file is mapped, so
    that no second copy is made. `.parquet` and `.pq` need the extra `parquet`.

    Columns without any number (names, dates, flags) are left out, unless they are requested or
    `texts` is set. So are columns without a name (the index that pandas writes).

    Args:
        path: File name, or "-".
        columns: Names of the columns to read, in this order; others are not even parsed. Or a
            function that picks them from the tuple of available names. None (default) reads all
            that hold numbers and have a name, and warns of others.
        labels: Names of columns that hold class labels: any text, integers or booleans.
        without: Names of columns that are not read.
        categories: Names of columns that are read as they are written, as text, even if they
            look like numbers; the function in `columns` may add some. None (default): no column.
        texts: Whether columns of text without any number, and flags, are read as text, too.
        needed: Names of columns that must exist; this is checked before anything else.
        gaps: Whether values of other columns may be missing: NaN among numbers, None or "" among
            text. In text files, a value is missing if its cell is empty, NA, n/a, NaN or null; a
            number is also missing if its cell is "none".
        as_written: Whether labels of Parquet files may be missing, or dates; they become text.

    Returns:
        Table.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: For Parquet without pyarrow.
        ValueError: For a table that cannot be read, a column that is missing or occurs twice, no
            rows, or a value that is not a finite number; with file, line and column.

    Warns:
        DataWarning: For columns that are left out.
    """
    path = os.fspath(path)
    ending = ending_of(path)
    if ending not in _READ:
        raise ValueError(
            f"{path} has the unknown ending {ending!r}; expected one of "
            f"{', '.join(filter(None, _READ))}. Rename or convert the file."
        )
    if path != "-" and not os.path.exists(path):
        raise FileNotFoundError(f"No file {path}; give the path of a table.")
    wanted = Wanted(columns, labels, without, categories, texts, needed, gaps, as_written)
    table = (_read_csv if ending in _TEXT else _read_arrays)(path, wanted)
    if not table.columns:
        raise ValueError(f"{table.source} has no column of numbers; expected at least one.")
    if not len(table):
        raise ValueError(f"{table.source} has a header but no rows; expected at least one row.")
    if table.left_out:
        warn(
            f"Left out columns of {table.source} that have no numbers or no name: "
            f"{listed(table.left_out)}.",
            DataWarning,
        )
    return table


def table_of(
    rows: CsvRows,
    lines: Lines,
    names: Names,
    categories: Collection[str],
    may_lack: Collection[str] = (),
    words: Collection[str] = (),
    **others: Any,
) -> Table:
    """Build a Table from columns of some rows of a table in text.

    `words` and `categories` are kept as they are written; `may_lack` is as in `CsvRows.numbers`.
    """
    of_words = [name for name in names if name in words or name in categories]
    of_numbers = [name for name in names if name not in of_words]
    numbers = rows.numbers(lines, of_numbers, may_lack)
    columns = dict(zip(of_numbers, numbers.T)) | rows.texts(lines, of_words, may_lack)
    columns = {name: columns[name] for name in names}
    line_numbers = np.array([line for line, _ in lines], dtype=np.int64)
    return Table.of_columns(columns, categories, source=rows.source, lines=line_numbers, **others)


def is_csv(path: StrPath) -> bool:
    """Check whether `read_table` takes a file name for that of a table in text."""
    return ending_of(path) in _TEXT


def _read_csv(path: str, wanted: Wanted) -> Table:
    with open_csv(path) as rows:
        _warn_of_header(rows)
        column_indices((*wanted.needed, *wanted.without), rows.columns, rows.source)
        names, lines, left_out = wanted.chosen(rows.columns), list(rows), set()
        categories, words = wanted.categories or (), set()
        if lines and (wanted.texts or wanted.columns is None):
            # pandas writes an index without a name: it is no feature.
            named = [name for name in names if name and name not in categories]
            indices = zip(named, column_indices(named, rows.columns, rows.source))
            odd = {name: index for name, index in indices if not _has_number(lines, index)}
            words = {
                name
                for name, index in odd.items()
                if wanted.texts and any(cells[index].strip() for _, cells in lines)
            }
            if wanted.columns is None:
                left_out = {name for name in names if not name} | (odd.keys() - words)
        kept = tuple(name for name in names if name not in left_out)
        may_lack, labels = set(filter(wanted.may_lack, kept)), rows.texts(lines, wanted.labels)
        table = table_of(rows, lines, kept, categories, may_lack, words, texts=labels)
        return replace(table, left_out=tuple(filter(left_out.__contains__, rows.columns)))


def _warn_of_header(rows: CsvRows) -> None:
    """Warn about column names that look like numbers, unless they ascend or descend like years."""
    shown = [name for name in rows.columns if is_number(name)]
    steps = np.diff([float(name) for name in shown])
    are_in_order = len(shown) > 1 and bool((steps > 0).all() or (steps < 0).all())
    are_names = are_in_order and (len(shown) > 4 or all(map(str.isdigit, shown)))
    if shown and not are_names:
        warn(
            f"{rows.source}: the first row is read as column names, although {listed(shown)} look like "
            "numbers. If it is data, add a line with the column names above it.",
            DataWarning,
        )


def _has_number(lines: Lines, index: int) -> bool:
    """Check whether a column has a number. Decimal commas count, so that they are refused later."""
    cells = (decimal(cells[index]) for _, cells in lines)
    return any(is_number(cell) or is_number(cell.replace(",", ".", 1)) for cell in cells)


def _read_arrays(path: str, wanted: Wanted) -> Table:
    ending = ending_of(path)
    if ending in _HDF5:
        from tfbnn.data.hdf5 import read_hdf5

        arrays = read_hdf5(path, bool(wanted.labels) or wanted.may_be_text)
    else:
        arrays = (read_numpy if ending in _NUMPY else read_parquet)(path)
    return table_of_arrays(path, arrays, wanted)


def ending_of(path: StrPath) -> str:
    """Return the ending of a file's name in lower case, with the part before .gz: ".csv.gz"."""
    stem, ending = os.path.splitext(os.fspath(path).lower())
    return os.path.splitext(stem)[1] + ending if ending == _GZ else ending


@contextlib.contextmanager
def table_writer(path: StrPath, columns: Names, comments: Names = ()) -> Iterator[Writer]:
    """Yield a function that writes the rows of a table to `path`.

    Args:
        path: File name with one of `ENDINGS`.
        columns: Names of the columns.
        comments: Lines for the head of the file: comments in text, metadata "comments" in Parquet;
            NPZ files hold none.

    Raises:
        ImportError: For Parquet without pyarrow.
        ValueError: For names that the format cannot hold, before any row is written.
        OSError: If the file cannot be written.
    """
    ending = ending_of(path)
    if ending in _WRITTEN:
        opened = _open_gz if ending.endswith(_GZ) else open_text
        separator = "\t" if ending.startswith(".tsv") else ","
        with replacing(path) as temporary, opened(temporary) as stream:
            stream.writelines(f"# {line}\n" for line in comments)
            yield csv_writer(stream, columns, separator)
        return
    write = _WHOLE[ending]
    if write is _write_parquet:
        required("pyarrow", f"Writing {os.fspath(path)} needs pyarrow", "parquet")
    # Names that would collide, or name no array of their own in the file.
    twice = [name for name in columns if columns.count(name) > 1]
    odd = [name for name in columns if not name or set("/\0") & set(name)]
    bad = twice or (odd if write is not _write_parquet else [])
    if bad:
        raise ValueError(
            f"{os.fspath(path)} cannot hold the column {bad[0]!r}: names must be different, and "
            "without '/' outside CSV and Parquet. Write a .csv file."
        )
    parts: list[list[Array]] = []
    yield lambda values, labels=(): parts.append([*labels, *values.T])
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        whole = map(np.concatenate, zip(*parts)) if parts else [np.empty(0)] * len(columns)
        write(stream, dict(zip(columns, whole)), comments)


def _write_npz(stream: BinaryIO, columns: dict[str, Array], comments: Names) -> None:
    # numpy.savez cannot take a column with the name "file".
    with zipfile.ZipFile(stream, "w") as archive:
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, column, allow_pickle=False)


def _write_parquet(stream: BinaryIO, columns: dict[str, Array], comments: Names) -> None:
    from pyarrow import parquet, table

    metadata = {"comments": "\n".join(comments)} if comments else None
    parquet.write_table(table(columns, metadata=metadata), stream)


def _open_gz(path: str) -> TextIO:
    return gzip.open(path, "wt", newline="", encoding="utf-8", errors="backslashreplace")


_HDF5 = (".h5", ".hdf5")
_NUMPY = (".npy", ".npz")
_PARQUET = (".parquet", ".pq")
_TEXT = [ending + gz for ending in ("", ".csv", ".tsv", ".txt", ".dat") for gz in ("", _GZ)]
_READ = (*_TEXT, *_NUMPY, *_HDF5, *_PARQUET)
# Text that can be written.
_WRITTEN = ("", ".csv", ".txt", ".csv.gz", ".tsv", ".tsv.gz")
_WHOLE: dict[str, Callable[[BinaryIO, dict[str, Array], Names], None]] = {
    ".npz": _write_npz,
    **dict.fromkeys(_PARQUET, _write_parquet),
}
# Endings of files that can be written.
ENDINGS = (*_WRITTEN, *_WHOLE)
