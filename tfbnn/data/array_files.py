"""Tables of named arrays in NPY, NPZ, HDF5 and Parquet files. Nothing is ever unpickled."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tfbnn.data.numbers import is_missing
from tfbnn.data.table import TEXT_ADVICE, Table, Wanted, column_indices
from tfbnn.system.arrays import Array
from tfbnn.system.words import required

# Name of an index of pandas in files and tables of pyarrow.
_INDEX = re.compile(r"__index_level_\d+__")
# (name, array) pairs, with None for anything but numbers, text and booleans. Text is str, never
# bytes. Names may occur twice.
Arrays = list[tuple[str, Array | None]]


def read_numpy(path: str) -> Arrays:
    """Read an NPY file, mapped for reading, or an NPZ file; each field of one array is a column.

    Raises:
        ValueError: If it is neither, holds objects, which are pickles, is encrypted or damaged, or
            is too large for the memory.
    """
    is_npz = not path.lower().endswith(".npy")
    try:
        with open(path, "rb") as stream:
            if is_npz:
                file = np.load(stream, allow_pickle=False)
            else:
                file = np.load(path, mmap_mode="r", allow_pickle=False)
            if isinstance(file, np.lib.npyio.NpzFile) is not is_npz:
                raise ValueError(f"it is {'a single array' if is_npz else 'several arrays'}")
            if is_npz:
                return [(name, _load_plain(file, name)) for name in file.files]
        if file.dtype.names is None:
            return [("column", decoded(file))]
        return [(name, decoded(file[name])) for name in file.dtype.names]
    except Exception as error:
        # Any error that a damaged or crafted file provokes is a fault of the file.
        kind, function = ("NPZ", "savez") if is_npz else ("NPY", "save")
        raise ValueError(
            f"{path} is not a readable {kind} file ({error}). Write it with numpy.{function}."
        ) from error


def _load_plain(file: Mapping[str, Array], name: str) -> Array | None:
    """Load one array; None for objects, which are a pickle, and for a member that is no array."""
    try:
        array = file[name]
        return decoded(array) if isinstance(array, np.ndarray) else None
    except ValueError:
        return None


def decoded(array: Array) -> Array:
    """Decode UTF-8 bytes of an array to text; return other arrays unchanged.

    Raises:
        ValueError: For bytes that are not UTF-8.
    """
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def read_parquet(path: str) -> Arrays:
    """Read the columns of a Parquet file; missing values are NaN, or None among text.

    Raises:
        ImportError: Without pyarrow.
        ValueError: If the file is no Parquet file.
    """
    need = f"Reading {path} needs pyarrow"
    pyarrow = required("pyarrow", need, "parquet", "convert the table to CSV")
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
        pairs = zip(table.column_names, table.columns)
        return [(name, None if _INDEX.fullmatch(name) else _of_arrow(one)) for name, one in pairs]
    except (OSError, ValueError, MemoryError, pyarrow.ArrowException) as error:
        raise ValueError(f"{path} is not a readable Parquet file ({error}).") from error


def _of_arrow(column: Any) -> Array | None:
    """Return one column as an array: numbers, booleans, or objects that are text, dates or None.

    pandas writes categories as a dictionary. Integers in it are names, and become text here.
    """
    from pyarrow import types

    kind = column.type
    if types.is_temporal(kind):  # dates are not used, but refused by name
        return np.array(column.to_pylist(), dtype=object)
    if types.is_decimal(kind):
        # Python rounds each number; missing ones become NaN.
        return np.array(column.to_pylist(), dtype=np.float64)
    is_category = types.is_dictionary(kind)
    text = kind.value_type if is_category else kind
    is_text = str(text) in ("string", "large_string", "string_view")
    if is_text or (is_category and types.is_integer(text)):
        entries = column.to_pylist()  # np.asarray makes a missing entry the last category
        return np.array([None if entry is None else str(entry) for entry in entries], dtype=object)
    known = (types.is_integer, types.is_floating, types.is_boolean)
    return np.asarray(column) if any(test(kind) for test in known) else None


def table_of_arrays(path: str, arrays: Arrays, wanted: Wanted) -> Table:
    """Build a Table from named arrays."""
    labels, written = wanted.labels, [name for name, _ in arrays]
    kinds = "iufbUO" if wanted.may_be_text else "iuf"
    split = [(name, _columns_of(name, array, kinds)) for name, array in arrays]
    found = [column for _, columns in split for column in columns]
    available = tuple(name for name, _ in found)
    no_columns = set(written) - set(available)
    column_indices((*wanted.needed, *wanted.without), (*available, *no_columns), path)
    parts = [part for name, columns in split if name in wanted.without for part, _ in columns]
    wanted = wanted._replace(without=(*wanted.without, *parts))
    names = wanted.chosen(available)
    for name in no_columns & {*names}:
        raise ValueError(
            f"{path}, column {name}: expected one column of numbers, got something else. "
            f"The columns of a two-dimensional array are called {name}_0, {name}_1, ..."
        )
    indices = column_indices(names, available, path)
    chosen = {name: found[index][1] for name, index in zip(names, indices)}
    categories = wanted.categories or ()
    words = {name for name, array in chosen.items() if wanted.texts and array.dtype.kind in "bUO"}
    texts = {
        name: _labels(path, *arrays[index], wanted.as_written)
        for name, index in zip(labels, column_indices(labels, written, path))
    }
    _check_lengths(path, chosen | texts)
    for name, array in chosen.items():
        if name not in words and name not in categories:
            chosen[name] = _numbers(path, name, array, wanted.may_lack(name))
    left_out = tuple(name for name, columns in split if not columns)
    others = wanted.chosen(left_out) if wanted.columns is None else ()
    table = Table.of_columns(chosen, categories, source=path, texts=texts, left_out=others)
    return replace(table, lines=np.arange(len(table)), unit="row")


def _numbers(path: str, name: str, array: Array, may_lack: bool) -> Array:
    """Return a column as float64; refuse infinity, and NaN unless values may be missing."""
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{path}, column {name}: expected numbers, but {TEXT_ADVICE}.")
    numbers = np.asarray(array, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers) & ~(may_lack & np.isnan(numbers)))
    if len(bad):
        raise ValueError(
            f"{path}, row {bad[0]} (the first is 0), column {name}: expected a finite "
            f"number, got {float(array[bad[0]])}; repair or remove the row."
        )
    return numbers


def _columns_of(name: str, array: Array | None, kinds: str) -> list[tuple[str, Array]]:
    """Return (name, column) for a column of these kinds, or for each in a matrix of numbers."""
    if array is not None and array.ndim == 1 and array.dtype.kind in kinds:
        return [(name, array)]
    if array is not None and array.ndim == 2 and array.dtype.kind in "iuf":
        return [(f"{name}_{number}", column) for number, column in enumerate(array.T)]
    return []


def _labels(path: str, name: str, array: Array | None, as_written: bool) -> Array:
    if array is None or array.ndim != 1 or array.dtype.kind not in "iufbUO":
        raise ValueError(
            f"{path}, column {name}: expected one column of labels, text, integers or booleans, "
            "got something else."
        )
    if array.dtype.kind != "O":
        return array
    if as_written:
        return np.array(["" if is_missing(entry) else str(entry) for entry in array])
    for row, entry in enumerate(array):
        if not isinstance(entry, str):
            raise ValueError(
                f"{path}, row {row} (the first is 0), column {name}: expected a label, got "
                f"{entry!r}; repair or remove the row."
            )
    return np.char.strip(array.astype(str))


def _check_lengths(path: str, arrays: Mapping[str, Array]) -> None:
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"{path}: all columns must have the same number of rows, but {found}.")
