"""Seal of a tfbnn file: a SHA-256 of the HDF5 content, appended after the content.

The HDF5 library knows where its data end and does not read further. If it opens the file for
writing, it cuts the seal off.
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
    """Write a sealed HDF5 file atomically.

    The file is first made in memory, which takes memory of the size of the file during the write. A
    full disk then only affects plain writes: if the HDF5 library itself runs out of space, it
    cannot close its file, and may end the process. An existing file is replaced once the new one is
    complete.

    Args:
        path: File name.
        kind: Kind of the file.
        datasets: Dict name -> array, in the order of the file.

    Returns:
        SHA-256 of the file without its seal, 32 bytes.

    Raises:
        FileNotFoundError: When the folder does not exist.
        OSError: When the file cannot be written.
    """
    image = io.BytesIO()
    with h5py.File(image, "w", libver=("v110", "v110")) as file:
        values = (kind.format, kind.version, "tfbnn", __version__)
        for name, value in zip(schema.ATTRIBUTES, values):
            # Texts of fixed length, as variable ones need a heap, which could be damaged, too.
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
    """Renew the seal of a tfbnn file after a deliberate edit.

    The content is not checked here, but when the file is loaded.

    Args:
        path: Path of the file.

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
    """Return whether a file has the mark of a seal, which tfbnn writes; its content is not read.

    Raises:
        OSError: When the file cannot be read.
    """
    with open(path, "rb") as file:
        return _has_mark(file)


def check_seal(file: BinaryIO, title: str = "tfbnn model") -> bytes:
    """Check that an open file has a seal that matches its content.

    Args:
        file: Open binary file.
        title: Expected kind of file, for the message.

    Returns:
        SHA-256 of the content.

    Raises:
        ModelFileError: When the seal is missing or does not match.
    """
    if not _has_mark(file):
        raise ModelFileError(
            f"this is not a readable {title} file: expected a seal (SHA-256) at its end, found none. "
            "Pass a complete file that tfbnn wrote; after a deliberate edit call tfbnn.storage.seal."
        )
    expected = file.read()
    if _digest(file, content_size(file)) != expected:
        raise ModelFileError(
            "its content does not match its seal (SHA-256): it was damaged or edited. Copy it "
            "again; after a deliberate edit call tfbnn.storage.seal."
        )
    return expected


def content_size(file: BinaryIO) -> int:
    """Return the number of bytes before the seal of an open sealed file."""
    return os.fstat(file.fileno()).st_size - _SIZE


def _has_mark(file: BinaryIO) -> bool:
    """Return whether there is a seal; the file position is then just after its mark."""
    size = content_size(file)
    if size < 0:
        return False
    file.seek(size)
    return file.read(len(_MARK)) == _MARK


def _digest(file: BinaryIO, size: int) -> bytes:
    """Compute the SHA-256 of the first `size` bytes."""
    digest = hashlib.sha256()
    file.seek(0)
    while size:
        block = file.read(min(size, _BLOCK))
        if not block:
            raise ModelFileError("it became shorter while it was read. Load it again.")
        digest.update(block)
        size -= len(block)
    return digest.digest()
