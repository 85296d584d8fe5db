"""Reads tables of named numeric columns, and of class labels: CSV, NPZ, HDF5 and Parquet.

Files are data only: nothing is ever unpickled. To work through a CSV file of any length at constant
memory, see `tfbnn.data.csv_tables`.
"""

import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tfbnn.data.csv_tables import Lines, Names, column_places, is_number, open_csv
from tfbnn.system.arrays import Array
from tfbnn.system.extras import required
from tfbnn.system.paths import StrPath

# Names of the columns to read, or what picks them from the names there are; None for all.
Choice = Names | Callable[[tuple[str, ...]], Names] | None


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of finite numbers.

    A table passes for a data frame where tfbnn takes one: it has `columns`, and NumPy converts it
    to its values. So `model.fit_posterior(table.select(names), ...)` remembers the names.

    Attributes:
        columns: Column names, M of them.
        values: Array [N, M], float64.
        source: Where it was read, for messages.
        texts: Columns of labels as they are written in a CSV file, dict name -> text array [N].
    """

    columns: tuple[str, ...]
    values: Array
    source: str = "the table"
    texts: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    def select(self, names: Names) -> "Table":
        """The table with these columns only, in this order.

        Raises:
            ValueError: If a column is not there.
        """
        places = column_places(names, self.columns, self.source, kind="columns of numbers")
        return Table(tuple(names), self.values[:, places], self.source, self.texts)

    def labels(self, names: Names) -> Array:
        """These columns as labels [N, K]: as they are written in a CSV file, else their numbers.

        Raises:
            ValueError: If a column is not there.
        """
        if all(name in self.texts for name in names):
            return np.column_stack([self.texts[name] for name in names])
        return self.select(names).values

    def take(self, rows: Array | slice) -> "Table":
        """The table with these rows only: indices, a mask or a slice."""
        texts = {name: column[rows] for name, column in self.texts.items()}
        return Table(self.columns, self.values[rows], self.source, texts)


def read_table(path: StrPath, columns: Choice = None, labels: Names = ()) -> Table:
    """Reads a table; the end of the file's name says in which format.

    `.csv`, `.txt`, no ending, or "-" for standard input: comma-separated, the first line names the
    columns, blank lines are skipped. `.npz`, `.h5`, `.hdf5`: every one-dimensional array (HDF5: of
    the root group) is a column of its name; the columns of a two-dimensional array `x` are called
    x_0, x_1 and so on. `.parquet`, `.pq`: needs the extra `parquet`.

    Columns without any number (names, dates, flags) are left out, unless they are asked for.

    Args:
        path: File name, or "-".
        columns: Names of the columns to read, in this order; others are not even looked at. Or a
            function that picks them from the tuple of names there are. None (default) reads all
            that hold numbers.
        labels: Names of columns that hold class labels. In CSV these may be any text; the other
            formats have only whole numbers as labels.

    Returns:
        Table.

    Raises:
        FileNotFoundError: When there is no such file.
        ImportError: For Parquet without pyarrow.
        ValueError: For a table that cannot be read, a column that is missing or there twice, no
            rows, or a value that is not a finite number; with file, line and column.
    """
    path = os.fspath(path)
    suffix = _suffix(path)
    if suffix not in _READERS:
        raise ValueError(
            f"{path} has the unknown ending {suffix!r}; expected one of "
            f"{', '.join(filter(None, _READERS))}. Rename or convert the file."
        )
    if path != "-" and not os.path.exists(path):
        raise FileNotFoundError(f"No file {path}; give the path of a table.")
    table = _READERS[suffix](path, columns, labels)
    if not table.columns:
        raise ValueError(f"{table.source} has no column of numbers; expected at least one.")
    if not len(table):
        raise ValueError(f"{table.source} has a header but no rows; expected at least one row.")
    return table


def is_csv(path: StrPath) -> bool:
    """Whether `read_table` takes a file name for that of a CSV file."""
    return _READERS.get(_suffix(path)) is _read_csv


def _suffix(path: StrPath) -> str:
    return "" if path == "-" else os.path.splitext(path)[1].lower()


def _chosen(columns: Choice, available: tuple[str, ...]) -> tuple[str, ...]:
    if columns is None:
        return available
    return tuple(columns(available) if callable(columns) else columns)


def _read_csv(path: str, columns: Choice, labels: Names) -> Table:
    with open_csv(path) as rows:
        names = [name for name in _chosen(columns, rows.columns) if name not in labels]
        places = column_places(names, rows.columns, rows.source)
        lines = list(rows)
        if columns is None and lines:
            names = [name for name, p in zip(names, places) if _has_number(lines, p)]
        texts = rows.texts(lines, labels)
        return Table(tuple(names), rows.numbers(lines, names), rows.source, texts)


def _has_number(lines: Lines, place: int) -> bool:
    return any(is_number(cells[place]) for _, cells in lines)


def _read_npz(path: str, columns: Choice, labels: Names) -> Table:
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it is a single array")
        with file:
            arrays = {name: _load_plain(file, name) for name in file.files}
    except (OSError, ValueError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not a readable NPZ file ({error}). Write it with numpy.savez."
        ) from error
    return _from_arrays(path, arrays, columns)


def _load_plain(file: Mapping[str, Array], name: str) -> Array | None:
    """One array, or None for one of objects, which is a pickle and is refused by NumPy."""
    try:
        return file[name]
    except ValueError:
        return None


def _read_hdf5(path: str, columns: Choice, labels: Names) -> Table:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            arrays = {
                name: item[()] if _is_numeric(item) else None
                for name, item in file.items()
                if isinstance(item, h5py.Dataset)
            }
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{path} is not a readable HDF5 file ({error}).") from error
    return _from_arrays(path, arrays, columns)


def _read_parquet(path: str, columns: Choice, labels: Names) -> Table:
    need = f"Reading {path} needs pyarrow"
    pyarrow = required("pyarrow", need, "parquet", "convert the table to CSV")
    from pyarrow import parquet
    from pyarrow.types import is_floating, is_integer

    try:
        table = parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise ValueError(f"{path} is not a readable Parquet file ({error}).") from error
    arrays = {
        name: column.to_numpy() if is_integer(column.type) or is_floating(column.type) else None
        for name, column in zip(table.column_names, table.columns)
    }
    return _from_arrays(path, arrays, columns)


def _from_arrays(path: str, arrays: dict[str, Array | None], columns: Choice) -> Table:
    """A Table out of dict name -> array, or None for what cannot be one."""
    numeric: dict[str, Array] = {}
    for name, array in arrays.items():
        if array is not None and _is_numeric(array):
            numeric |= _columns_of(name, array)
    names = _chosen(columns, tuple(numeric))
    for name in names:
        if name in arrays and name not in numeric:
            raise ValueError(
                f"{path}, column {name}: expected one column of numbers, got something else. "
                f"The columns of a two-dimensional array are called {name}_0, {name}_1, ..."
            )
    column_places(names, tuple(numeric), path)
    lengths = {name: len(numeric[name]) for name in names}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"{path}: all columns must have the same number of rows, but {found}.")
    values = [np.asarray(numeric[name], dtype=np.float64) for name in names]
    table = Table(names, np.column_stack(values) if values else np.empty((0, 0)), path)
    bad = np.argwhere(~np.isfinite(table.values))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"{path}, row {row} (the first is 0), column {names[column]}: expected a finite "
            f"number, got {table.values[row, column]}; repair or remove the row."
        )
    return table


def _is_numeric(array: Array) -> bool:
    return array.dtype.kind in "iuf" and array.ndim in (1, 2)


def _columns_of(name: str, array: Array) -> dict[str, Array]:
    if array.ndim == 1:
        return {name: array}
    return {f"{name}_{number}": array[:, number] for number in range(array.shape[1])}


_READERS = {
    **dict.fromkeys(("", ".csv", ".txt"), _read_csv),
    ".npz": _read_npz,
    **dict.fromkeys((".h5", ".hdf5"), _read_hdf5),
    **dict.fromkeys((".parquet", ".pq"), _read_parquet),
}
