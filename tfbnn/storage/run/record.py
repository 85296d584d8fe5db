"""Files of a run folder: JSON and named arrays in one sealed HDF5 file."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import h5py
import numpy as np

from tfbnn.exceptions import ModelFileError, RunFolderError
from tfbnn.storage.format import schema
from tfbnn.storage.format.allow_list import opened_datasets
from tfbnn.storage.format.schema import FileKind, parse_json, to_json
from tfbnn.storage.format.sealing import check_seal, content_size, write_sealed
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath

_BOOL = np.dtype(bool)


class Record(NamedTuple):
    """Content of a file of a run folder.

    Attributes:
        content: JSON object.
        arrays: Dict name -> array.
    """

    content: dict[str, Any]
    arrays: dict[str, Array]


def write_record(
    path: StrPath, kind: FileKind, content: dict[str, Any], arrays: Mapping[str, Array]
) -> bytes:
    """Write a file of a run folder; an existing file is replaced once the new one is complete.

    Args:
        path: File name.
        kind: FileKind with numbered arrays.
        content: JSON object, nested at most 11 levels deep.
        arrays: Dict name -> array of float32, float64, int32, int64, uint8 or bool, any shape.

    Returns:
        Digest of the file: SHA-256 of the bytes before the seal, 32 bytes.

    Raises:
        TypeError: For another dtype, or content that JSON cannot represent.
        ValueError: For NaN or infinity in the content, or content beyond the limits of the format.
        OSError: When the file cannot be written.
    """
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.dtype != _BOOL and array.dtype.str not in schema.ARRAY_DTYPES:
            raise TypeError(
                f"{name} must have a dtype out of {schema.ARRAY_DTYPES} or bool, found "
                f"{array.dtype}."
            )
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    text = to_json({"content": content, "arrays": listed})
    datasets = {schema.METADATA: np.frombuffer(text, np.uint8)}
    _parse(datasets[schema.METADATA])  # never write metadata that could not be read
    for index, array in enumerate(arrays.values()):
        stored = array.view(np.uint8) if array.dtype == _BOOL else array
        datasets[schema.array_name(index)] = np.atleast_1d(stored)
    return write_sealed(path, kind, datasets)


def read_record(path: StrPath, kind: FileKind, digest: bytes | None = None) -> Record:
    """Read a file written by `write_record`.

    Args:
        path: File name.
        kind: FileKind with numbered arrays.
        digest: Expected digest of the file; None for any.

    Raises:
        FileNotFoundError: When there is no such file.
        OSError: When it cannot be read.
        RunFolderError: When it is of another kind, is damaged, or has another digest.
    """
    path = os.fspath(path)
    with _opened(path, kind, digest) as file:
        try:
            # Nothing is compressed, so the arrays cannot be larger than the file.
            with opened_datasets(file, content_size(file), kind) as (_, datasets):
                metadata = _parse(datasets[schema.METADATA])
                return Record(metadata["content"], _arrays(metadata["arrays"], datasets))
        except (MemoryError, ModelFileError):
            raise
        except Exception as error:
            # Any exception from a damaged or crafted file is a fault of the file.
            raise RunFolderError(
                f"{path!r} is not a readable {kind.title} ({type(error).__name__}: {error})."
            ) from error


def check_record(path: StrPath, kind: FileKind, digest: bytes | None) -> None:
    """Check that a file has an intact seal and this digest, without parsing its content.

    Raises:
        FileNotFoundError, OSError, RunFolderError: As in `read_record`.
    """
    with _opened(os.fspath(path), kind, digest):
        pass


@contextlib.contextmanager
def _opened(path: str, kind: FileKind, digest: bytes | None) -> Iterator[BinaryIO]:
    """Check the seal and yield the open file; convert ModelFileError to RunFolderError."""
    if os.path.lexists(path) and not os.path.isfile(path):
        raise RunFolderError(f"{path!r} is not a file. Expected a {kind.title}.")
    with open(path, "rb") as file:
        try:
            if digest not in (None, check_seal(file, kind.title)):
                raise RunFolderError(
                    f"{path!r} is not the file that was written: another took its place."
                )
            yield file
        except ModelFileError as error:
            raise RunFolderError(f"{path!r}: {error}") from error


def _parse(text: Array | h5py.Dataset) -> dict[str, Any]:
    """Parse and check the metadata in an array or a dataset of bytes."""
    schema.check_length(text.size)
    metadata = parse_json(text[()].tobytes(), schema.MAX_RUN_DEPTH)
    if not isinstance(metadata, dict) or sorted(metadata) != ["arrays", "content"]:
        raise ModelFileError("metadata must be an object with the keys 'arrays' and 'content'.")
    if not isinstance(metadata["content"], dict):
        raise ModelFileError("the content must be an object.")
    names = [name for name, _, _ in metadata["arrays"]]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise ModelFileError("arrays must have names, each of its own.")
    if len(names) > schema.MAX_ARRAYS:
        raise ModelFileError(f"expected at most {schema.MAX_ARRAYS} arrays, found {len(names)}.")
    return metadata


def _arrays(
    listed: Sequence[tuple[str, str, list[int]]], datasets: Mapping[str, h5py.Dataset]
) -> dict[str, Array]:
    """Read the arrays that the metadata list, dict name -> array; check dtypes and shapes."""
    if len(datasets) != len(listed) + 1:
        raise ModelFileError(f"expected {len(listed)} arrays, found {len(datasets) - 1}.")
    arrays: dict[str, Array] = {}
    for index, (name, dtype, shape) in enumerate(listed):
        array: Array = datasets[schema.array_name(index)][()]
        if dtype == _BOOL.str and array.dtype == np.uint8 and array.max(initial=0) <= 1:
            array = array.view(_BOOL)
        if array.dtype.str != dtype or list(array.shape) != (shape or [1]):
            raise ModelFileError(
                f"{name!r:.100} must be {dtype!r:.20} of shape {shape!r:.100}, found "
                f"{array.dtype.str!r}, {list(array.shape)}."
            )
        arrays[name] = array.reshape(shape)
    return arrays
