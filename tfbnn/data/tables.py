"""Reads tables of named numeric columns, and of class labels: text such as CSV, and arrays.

Files are data only: nothing is ever unpickled. To work through a table in text of any length at
constant memory, see `tfbnn.data.csv_tables`.
"""

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tfbnn.data.array_files import Arrays, read_npz, read_parquet
from tfbnn.data.csv_tables import CsvRows, Lines, Names, column_places, open_csv
from tfbnn.data.frames import listed
from tfbnn.data.numbers import is_number
from tfbnn.data.table import Table
from tfbnn.exceptions import DataWarning
from tfbnn.system.arrays import Array
from tfbnn.system.paths import StrPath

# Names of the columns to read, or what picks them from the names there are; None for all.
Choice = Names | Callable[[tuple[str, ...]], Names] | None


def read_table(path: StrPath, columns: Choice = None, labels: Names = ()) -> Table:
    """Reads a table; the end of the file's name says in which format.

    `.csv`, `.tsv`, `.txt`, `.dat`, no ending, each also with `.gz` behind, or "-" for standard
    input: text, whose separator and header are found as `tfbnn.data.text_lines` says. `.npz`,
    `.h5`, `.hdf5`: every one-dimensional array (HDF5: of the root group) is a column of its name;
    the columns of a two-dimensional array `x` are called x_0, x_1 and so on. `.parquet`, `.pq`:
    needs the extra `parquet`.

    Columns without any number (names, dates, flags) or without a name (the index that pandas
    writes) are left out, unless they are asked for.

    Args:
        path: File name, or "-".
        columns: Names of the columns to read, in this order; others are not even looked at. Or a
            function that picks them from the tuple of names there are. None (default) reads all
            that hold numbers and have a name, and warns of others.
        labels: Names of columns that hold class labels: any text, integers or booleans; in HDF5
            integers only.

    Returns:
        Table.

    Raises:
        FileNotFoundError: When there is no such file.
        ImportError: For Parquet without pyarrow.
        ValueError: For a table that cannot be read, a column that is missing or there twice, no
            rows, or a value that is not a finite number; with file, line and column.

    Warns:
        DataWarning: For columns that are left out.
    """
    path = os.fspath(path)
    suffix = _suffix(path)
    if suffix not in _READERS:
        raise ValueError(
            f"{path} has the unknown ending {suffix!r}; expected one of "
            f"{', '.join(filter(None, _READERS))}, of text also with .gz behind. Rename or convert "
            "the file."
        )
    if path != "-" and not os.path.exists(path):
        raise FileNotFoundError(f"No file {path}; give the path of a table.")
    table = _READERS[suffix](path, columns, labels)
    if not table.columns:
        raise ValueError(f"{table.source} has no column of numbers; expected at least one.")
    if not len(table):
        raise ValueError(f"{table.source} has a header but no rows; expected at least one row.")
    if table.left_out:
        warnings.warn(
            f"{table.source}: left out, as they have no numbers or no name: "
            f"{listed(table.left_out)}.",
            DataWarning,
            stacklevel=2,
        )
    return table


def table_of(rows: CsvRows, lines: Lines, names: Names) -> Table:
    """A Table of the named columns of some rows of a table in text."""
    numbers = np.array([line for line, _ in lines], dtype=np.int64)
    return Table(tuple(names), rows.numbers(lines, names), rows.source, lines=numbers)


def is_csv(path: StrPath) -> bool:
    """Whether `read_table` takes a file name for that of a table in text."""
    return _READERS.get(_suffix(path)) is _read_csv


def _suffix(path: StrPath) -> str:
    """The ending that names a format; of compressed text that before .gz."""
    if path == "-":
        return ""
    stem, suffix = os.path.splitext(os.fspath(path).lower())
    inner = os.path.splitext(stem)[1]
    return inner if suffix == ".gz" and inner in _TEXT else suffix


def _chosen(columns: Choice, available: tuple[str, ...], labels: Names) -> tuple[str, ...]:
    """Names of the columns of numbers to read."""
    names = available if columns is None else columns(available) if callable(columns) else columns
    return tuple(name for name in names if name not in labels)


def _read_csv(path: str, columns: Choice, labels: Names) -> Table:
    with open_csv(path) as rows:
        names, lines, left_out = _chosen(columns, rows.columns, labels), list(rows), set()
        if columns is None and lines:
            # pandas writes an index without a name: it is no feature.
            named = [name for name in names if name]
            places = column_places(named, rows.columns, rows.source)
            kept = [name for name, place in zip(named, places) if _has_number(lines, place)]
            left_out, names = set(names) - set(kept), tuple(kept)
        texts, others = rows.texts(lines, labels), filter(left_out.__contains__, rows.columns)
        return replace(table_of(rows, lines, names), texts=texts, left_out=tuple(others))


def _has_number(lines: Lines, place: int) -> bool:
    """Whether a column is to be read: numbers with decimal commas are, so that they are refused."""
    cells = (cells[place] for _, cells in lines)
    return any(is_number(cell) or is_number(cell.replace(",", ".", 1)) for cell in cells)


def _read_npz(path: str, columns: Choice, labels: Names) -> Table:
    return _from_arrays(path, read_npz(path), columns, labels)


def _read_hdf5(path: str, columns: Choice, labels: Names) -> Table:
    from tfbnn.data.hdf5 import read_hdf5

    return _from_arrays(path, read_hdf5(path), columns, labels)


def _read_parquet(path: str, columns: Choice, labels: Names) -> Table:
    return _from_arrays(path, read_parquet(path), columns, labels)


def _from_arrays(path: str, arrays: Arrays, columns: Choice, labels: Names) -> Table:
    """A Table of named arrays."""
    written = [name for name, _ in arrays]
    found = [column for name, array in arrays for column in _columns_of(name, array)]
    available = tuple(name for name, _ in found)
    no_columns = set(written) - set(available)
    names = _chosen(columns, available, labels)
    for name in names:
        if name in no_columns:
            raise ValueError(
                f"{path}, column {name}: expected one column of numbers, got something else. "
                f"The columns of a two-dimensional array are called {name}_0, {name}_1, ..."
            )
    numbers = [found[place][1] for place in column_places(names, available, path)]
    texts = {
        name: _labels(path, *arrays[place])
        for name, place in zip(labels, column_places(labels, written, path))
    }
    _check_lengths(path, dict(zip(names, numbers)) | texts)
    values = [np.asarray(array, dtype=np.float64) for array in numbers]
    matrix = np.column_stack(values) if values else np.empty((0, 0))
    left_out = [name for name, array in arrays if not _columns_of(name, array)]
    others = tuple(name for name in left_out if columns is None and name not in labels)
    table = Table(names, matrix, path, texts, left_out=others)
    bad = np.argwhere(~np.isfinite(table.values))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"{path}, row {row} (the first is 0), column {names[column]}: expected a finite "
            f"number, got {table.values[row, column]}; repair or remove the row."
        )
    return table


def _columns_of(name: str, array: Array | None) -> list[tuple[str, Array]]:
    """The columns of numbers in an array, none for other arrays."""
    if array is None or array.dtype.kind not in "iuf" or array.ndim not in (1, 2):
        return []
    if array.ndim == 1:
        return [(name, array)]
    return [(f"{name}_{number}", column) for number, column in enumerate(array.T)]


def _labels(path: str, name: str, array: Array | None) -> Array:
    if array is None or array.ndim != 1 or array.dtype.kind not in "iufbUO":
        raise ValueError(
            f"{path}, column {name}: expected one column of labels, text, integers or booleans, "
            "got something else."
        )
    if array.dtype.kind != "O":
        return array
    for row, entry in enumerate(array):
        if not isinstance(entry, str):
            raise ValueError(
                f"{path}, row {row} (the first is 0), column {name}: expected a label, got "
                f"{entry!r}; repair or remove the row."
            )
    return array.astype(str)


def _check_lengths(path: str, arrays: Mapping[str, Array]) -> None:
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"{path}: all columns must have the same number of rows, but {found}.")


_TEXT = ("", ".csv", ".tsv", ".txt", ".dat")
_READERS = {
    **dict.fromkeys(_TEXT, _read_csv),
    ".npz": _read_npz,
    **dict.fromkeys((".h5", ".hdf5"), _read_hdf5),
    **dict.fromkeys((".parquet", ".pq"), _read_parquet),
}
