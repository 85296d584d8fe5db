"""The seal of a tfbnn file: a SHA-256 of everything before it, behind the end of what HDF5 reads.

The HDF5 library knows where its data end and does not look further; opened for writing, it cuts
the seal off.
"""

import hashlib
import io
import os
from collections.abc import Mapping
from typing import BinaryIO

import h5py
import numpy as np

from tfbnn.exceptions import ModelFileError
from tfbnn.storage.format import schema
from tfbnn.storage.format.schema import FileKind
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath, write_file
from tfbnn.system.version import __version__

_MARK = b"TFBNNSHA"
_SIZE = len(_MARK) + hashlib.sha256().digest_size
_BLOCK = 2**20


def write_sealed(path: StrPath, kind: FileKind, datasets: Mapping[str, Array]) -> bytes:
    """Write an HDF5 file that says what it is, with its seal, at once or not at all.

    The file is made in memory. A full disk then meets plain writes: where the HDF5 library itself
    runs out of space, it cannot close its file, and may end the process. It costs memory of the
    size of the file for the time of the write. What is there is replaced once the new file is
    complete.

    Args:
        path: File name.
        kind: FileKind of the file.
        datasets: Dict name -> array, in the order in which they are to lie in the file.

    Returns:
        The SHA-256 of the file without its seal, 32 bytes.

    Raises:
        FileNotFoundError: When the folder does not exist.
        OSError: When the file cannot be written.
    """
    image = io.BytesIO()
    with h5py.File(image, "w", libver=("v110", "v110")) as file:
        values = (kind.format, kind.version, "tfbnn", __version__)
        for name, value in zip(schema.ATTRIBUTES, values):
            # Texts of fixed length: others lie on a heap, which is one more thing to go wrong.
            file.attrs[name] = np.bytes_(value) if isinstance(value, str) else value
        for name, array in datasets.items():
            file.create_dataset(name, data=array)
        if kind.has_arrays:
            file.require_group(schema.ARRAYS)
    content = image.getbuffer()
    digest = hashlib.sha256(content).digest()
    write_file(path, content, _MARK + digest)
    return digest


def seal(path: StrPath) -> None:
    """Write the seal of a tfbnn file anew, after a deliberate edit.

    Whether the content makes sense is not judged here but when it is loaded.

    Args:
        path: The file.

    Raises:
        OSError: When the file cannot be read or written.
    """
    with open(path, "r+b") as file:
        size = content_size(file)
        if not _has_mark(file):
            size += _SIZE
        digest = _digest(file, size)
        file.seek(size)
        file.write(_MARK + digest)
        file.truncate()


def is_sealed(path: StrPath) -> bool:
    """Return whether a file has the mark of a seal, so that tfbnn wrote it; its content is not read.

    Raises:
        OSError: When the file cannot be read.
    """
    with open(path, "rb") as file:
        return _has_mark(file)


def check_seal(file: BinaryIO, title: str = "tfbnn model") -> bytes:
    """Refuse an open file whose seal is missing or does not fit its content.

    Args:
        file: Open binary file.
        title: What the file should be, for the message.

    Returns:
        The SHA-256 of the content.

    Raises:
        ModelFileError: For such a file.
    """
    if not _has_mark(file):
        raise ModelFileError(
            f"this is not a readable {title} file: expected a seal (SHA-256) at its end, found none. "
            "Copy it completely; after a deliberate edit call tfbnn.storage.seal."
        )
    expected = file.read()
    if _digest(file, content_size(file)) != expected:
        raise ModelFileError(
            "its content does not match its seal (SHA-256): it was damaged or edited. Copy it "
            "again; after a deliberate edit call tfbnn.storage.seal."
        )
    return expected


def content_size(file: BinaryIO) -> int:
    """Return the number of bytes before the seal of an open file that has one."""
    return os.fstat(file.fileno()).st_size - _SIZE


def _has_mark(file: BinaryIO) -> bool:
    """Return whether there is a seal, behind whose mark the file then stands."""
    size = content_size(file)
    if size < 0:
        return False
    file.seek(size)
    return file.read(len(_MARK)) == _MARK


def _digest(file: BinaryIO, size: int) -> bytes:
    """SHA-256 of the first `size` bytes."""
    digest = hashlib.sha256()
    file.seek(0)
    while size:
        block = file.read(min(size, _BLOCK))
        if not block:
            raise ModelFileError("it became shorter while it was read. Load it again.")
        digest.update(block)
        size -= len(block)
    return digest.digest()
