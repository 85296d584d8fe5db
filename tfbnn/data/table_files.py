"""Writes tables whose rows come piece by piece: as CSV, NPZ, HDF5 or Parquet, by the file's ending.

The file gets its name only once it is complete. CSV is written as the rows come; the other formats
keep them until the end.
"""

import contextlib
import gzip
import io
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Protocol, TextIO

import numpy as np

from tfbnn.data.csv_tables import Names, write_csv
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath, open_text, replacing
from tfbnn.system.words import required

# In text: more than any prediction is worth.
_DIGITS = 9
_GZ = ".gz"


class Writer(Protocol):
    """Takes the next rows of a table."""

    def __call__(self, values: Array, labels: Sequence[Array] = ()) -> None:
        """Takes numbers [n, M], and columns [n] of any kind each, which stand before them."""


def ending_of(path: StrPath) -> str:
    """The ending of a file's name in small letters, with what stands before .gz: ".csv.gz"."""
    stem, ending = os.path.splitext(os.fspath(path).lower())
    return os.path.splitext(stem)[1] + ending if ending == _GZ else ending


@contextlib.contextmanager
def table_writer(path: StrPath, columns: Names) -> Iterator[Writer]:
    """Yields what takes the rows of a table that is then at `path`.

    Args:
        path: File name with one of `ENDINGS`.
        columns: Names of the columns.

    Raises:
        ImportError: For Parquet without pyarrow.
        ValueError: For names that the format cannot hold: before any row is asked for.
        OSError: When the file cannot be written.
    """
    ending = ending_of(path)
    if ending in _TEXT:
        opened, separator = _TEXT[ending]
        with replacing(path) as temporary, opened(temporary) as stream:
            yield csv_writer(stream, columns, separator)
        return
    write = _WHOLE[ending]
    if write is _write_parquet:
        required("pyarrow", f"Writing {os.fspath(path)} needs pyarrow", "parquet")
    _check_names(path, columns, separate=write is not _write_parquet)
    parts: list[list[Array]] = []
    yield lambda values, labels=(): parts.append([*labels, *values.T])
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        whole = map(np.concatenate, zip(*parts)) if parts else [np.empty(0)] * len(columns)
        write(stream, dict(zip(columns, whole)))


def csv_writer(stream: TextIO, columns: Names, separator: str = ",") -> Writer:
    """What writes the rows of a table to a stream, the names of the columns before the first."""
    is_first = True

    def write(values: Array, labels: Sequence[Array] = ()) -> None:
        nonlocal is_first
        write_csv(
            stream,
            columns,
            values,
            labels=labels,
            digits=_DIGITS,
            header=is_first,
            separator=separator,
        )
        is_first = False

    return write


def _check_names(path: StrPath, columns: Names, *, separate: bool) -> None:
    """Refuses names that would fall together, or that name no array of their own in the file."""
    twice = [name for name in columns if columns.count(name) > 1]
    bad = twice or [name for name in columns if separate and (not name or set("/\0") & set(name))]
    if bad:
        raise ValueError(
            f"{os.fspath(path)} cannot hold the column {bad[0]!r}: names must be different, and "
            "without '/' outside CSV and Parquet. Write a .csv file."
        )


def _write_npz(stream: BinaryIO, columns: dict[str, Array]) -> None:
    # numpy.savez takes no column of the name "file".
    with zipfile.ZipFile(stream, "w") as archive:
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, column, allow_pickle=False)


def _write_hdf5(stream: BinaryIO, columns: dict[str, Array]) -> None:
    import h5py

    image = io.BytesIO()  # the HDF5 library may end the process where a disk is full
    with h5py.File(image, "w") as file:
        for name, column in columns.items():
            is_text = column.dtype.kind == "U"
            data = column.astype(object) if is_text else column
            file.create_dataset(name, data=data, dtype=h5py.string_dtype() if is_text else None)
    stream.write(image.getbuffer())


def _write_parquet(stream: BinaryIO, columns: dict[str, Array]) -> None:
    from pyarrow import parquet, table

    parquet.write_table(table(columns), stream)


@contextlib.contextmanager
def _open_gz(path: str) -> Iterator[TextIO]:
    with gzip.open(path, "wt", newline="", encoding="utf-8", errors="backslashreplace") as stream:
        yield stream


# How text is opened, and what stands between its cells.
_TEXT: dict[str, tuple[Callable[[str], contextlib.AbstractContextManager[TextIO]], str]] = {
    **dict.fromkeys(("", ".csv", ".txt"), (open_text, ",")),
    ".csv.gz": (_open_gz, ","),
    ".tsv": (open_text, "\t"),
    ".tsv.gz": (_open_gz, "\t"),
}
_WHOLE: dict[str, Callable[[BinaryIO, dict[str, Array]], None]] = {
    ".npz": _write_npz,
    **dict.fromkeys((".h5", ".hdf5"), _write_hdf5),
    **dict.fromkeys((".parquet", ".pq"), _write_parquet),
}
ENDINGS = (*_TEXT, *_WHOLE)
