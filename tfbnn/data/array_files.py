"""The arrays in NPY, NPZ and Parquet files, by name. Nothing is ever unpickled."""

import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfbnn.system.arrays import Array
from tfbnn.system.words import required

# (name, array), or None for what is no array of numbers, text or booleans; text is of str, never of
# bytes. Names may come twice.
Arrays = list[tuple[str, Array | None]]

# A RuntimeError of zipfile says that the file is encrypted.
_NPZ_FAULTS = (
    OSError,
    ValueError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    MemoryError,
    zlib.error,
    zipfile.BadZipFile,
)


def read_npz(path: str) -> Arrays:
    """The arrays of an NPZ file.

    Raises:
        ValueError: When it is none, encrypted, damaged, or too large for the memory.
    """
    try:
        with open(path, "rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            return [(name, _load_plain(file, name)) for name in file.files]
    except _NPZ_FAULTS as error:
        raise ValueError(
            f"{path} is not a readable NPZ file ({error}). Write it with numpy.savez."
        ) from error


def read_npy(path: str) -> Arrays:
    """The array of an NPY file, mapped for reading; of one with fields each field is a column.

    Raises:
        ValueError: When it is none, or of objects, which are pickles.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("it holds several arrays")
    except _NPZ_FAULTS as error:
        raise ValueError(
            f"{path} is not a readable NPY file ({error}). Write it with numpy.save."
        ) from error
    if array.dtype.names is None:
        return [("column", decoded(array))]
    return [(name, decoded(array[name])) for name in array.dtype.names]


def _load_plain(file: Mapping[str, Array], name: str) -> Array | None:
    """One array, or None for one of objects, which is a pickle, and for a member that is no array."""
    try:
        array = file[name]
        return decoded(array) if isinstance(array, np.ndarray) else None
    except ValueError:
        return None


def decoded(array: Array) -> Array:
    """An array with text in place of bytes of UTF-8.

    Raises:
        ValueError: For other bytes.
    """
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def read_parquet(path: str) -> Arrays:
    """The columns of a Parquet file; missing values are NaN, or None among text.

    Raises:
        ImportError: Without pyarrow.
        ValueError: When it is none.
    """
    need = f"Reading {path} needs pyarrow"
    pyarrow = required("pyarrow", need, "parquet", "convert the table to CSV")
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
        columns = zip(table.column_names, table.columns)
        return [(name, from_arrow(column)) for name, column in columns]
    except (OSError, ValueError, MemoryError, pyarrow.ArrowException) as error:
        raise ValueError(f"{path} is not a readable Parquet file ({error}).") from error


def from_arrow(column: Any) -> Array | None:
    """One column as an array: numbers, booleans, or objects that are text, dates or None.

    A dictionary is what pandas makes of categories: integers in it are names, and so are text here.
    """
    from pyarrow import types

    kind = column.type
    if types.is_temporal(kind):
        dates: Array = np.asarray(column)
        # Microseconds are the shortest of Python; dates are named and refused, not used.
        is_array = dates.dtype.kind in "mM"
        return dates.astype(f"{dates.dtype.kind}8[us]").astype(object) if is_array else dates
    if types.is_decimal(kind):
        # Each number by itself, as Python rounds it; missing ones become NaN.
        return np.array(column.to_pylist(), dtype=np.float64)
    is_category = types.is_dictionary(kind)
    text = kind.value_type if is_category else kind
    if is_category and types.is_integer(text):
        entries = column.to_pylist()
        return np.array([None if entry is None else str(entry) for entry in entries], dtype=object)
    known = (types.is_integer, types.is_floating, types.is_boolean)
    if types.is_string(text) or types.is_large_string(text) or any(test(kind) for test in known):
        array: Array = np.asarray(column)
        return array
    return None
