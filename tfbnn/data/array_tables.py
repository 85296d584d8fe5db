"""Tables of named arrays, as NPZ, HDF5 and Parquet files hold them."""

from collections.abc import Mapping

import numpy as np

from tfbnn.data.array_files import Arrays
from tfbnn.data.csv_tables import TEXT_ADVICE, column_places
from tfbnn.data.table import Table
from tfbnn.data.wanted import Wanted
from tfbnn.system.arrays import Array


def table_of_arrays(path: str, arrays: Arrays, wanted: Wanted) -> Table:
    """A Table of named arrays."""
    labels, written = wanted.labels, [name for name, _ in arrays]
    kinds = "iufbUO" if wanted.may_be_text else "iuf"
    found = [column for name, array in arrays for column in _columns_of(name, array, kinds)]
    available = tuple(name for name, _ in found)
    no_columns = set(written) - set(available)
    column_places((*wanted.needed, *wanted.without), available + tuple(no_columns), path)
    names = wanted.chosen(available)
    for name in names:
        if name in no_columns:
            raise ValueError(
                f"{path}, column {name}: expected one column of numbers, got something else. "
                f"The columns of a two-dimensional array are called {name}_0, {name}_1, ..."
            )
    places = column_places(names, available, path)
    chosen = {name: found[place][1] for name, place in zip(names, places)}
    words = {
        name: array
        for name, array in chosen.items()
        if name in (wanted.categories or ()) or (wanted.texts and array.dtype.kind in "bUO")
    }
    numbers = {name: array for name, array in chosen.items() if name not in words}
    texts = {
        name: _labels(path, *arrays[place])
        for name, place in zip(labels, column_places(labels, written, path))
    }
    _check_lengths(path, chosen | texts)
    for name, array in numbers.items():
        _check_numbers(path, name, array, wanted.may_lack(name))
    values = [np.asarray(array, dtype=np.float64) for array in numbers.values()]
    num_rows = len(next(iter(chosen.values()), ()))
    matrix = np.column_stack(values) if values else np.empty((num_rows, 0))
    apart = {*labels, *wanted.without}
    left_out = [name for name, array in arrays if not _columns_of(name, array, kinds)]
    others = tuple(name for name in left_out if wanted.columns is None and name not in apart)
    rows = {"lines": np.arange(len(matrix)), "unit": "row"}
    return wanted.table(names, matrix, words, source=path, texts=texts, left_out=others, **rows)


def _check_numbers(path: str, name: str, array: Array, may_lack: bool) -> None:
    """Refuses a column that does not hold finite numbers, or NaN where some may be missing."""
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{path}, column {name}: expected numbers, but {TEXT_ADVICE}.")
    numbers = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers) & ~(may_lack & np.isnan(numbers)))
    if len(bad):
        raise ValueError(
            f"{path}, row {bad[0]} (the first is 0), column {name}: expected a finite "
            f"number, got {float(array[bad[0]])}; repair or remove the row."
        )


def _columns_of(name: str, array: Array | None, kinds: str = "iuf") -> list[tuple[str, Array]]:
    """The columns in an array that is of one of these kinds, none for other arrays."""
    if array is None or array.dtype.kind not in kinds or array.ndim not in (1, 2):
        return []
    if array.ndim == 1:
        return [(name, array)]
    if array.dtype.kind not in "iuf":
        return []
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
