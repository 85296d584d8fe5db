"""The seal of a tfbnn file: a SHA-256 of everything before it, behind the end of what HDF5 reads.

The HDF5 library knows where its data end and does not look further; opened for writing, it cuts
the seal off.
"""

import hashlib
import os

from tfbnn.exceptions import ModelFileError

_MARK = b"TFBNNSHA"
_SIZE = len(_MARK) + hashlib.sha256().digest_size
_BLOCK = 2**20


def seal(path):
    """Writes the seal of a tfbnn file anew, after a deliberate edit.

    Whether the content makes sense is not judged here but when it is loaded.

    Args:
        path: The file.

    Raises:
        OSError: When the file cannot be read or written.
    """
    with open(path, "r+b") as file:
        size = content_size(file)
        if not _is_sealed(file):
            size += _SIZE
        digest = _digest(file, size)
        file.seek(size)
        file.write(_MARK + digest)
        file.truncate()


def seal_of(content):
    """The seal that belongs behind the given bytes."""
    return _MARK + hashlib.sha256(content).digest()


def check_seal(file, title="tfbnn model"):
    """Refuses an open file whose seal is missing or does not fit its content.

    Args:
        file: Open binary file.
        title: What the file should be, for the message.

    Returns:
        The SHA-256 of the content.

    Raises:
        ModelFileError: For such a file.
    """
    if not _is_sealed(file):
        raise ModelFileError(
            f"this is not a readable {title} file: expected a seal (SHA-256) at its end, found "
            "none. Check that tfbnn wrote it and that it was copied completely; after a "
            "deliberate edit call tfbnn.storage.seal."
        )
    expected = file.read()
    if _digest(file, content_size(file)) != expected:
        raise ModelFileError(
            "its content does not match its seal (SHA-256): it was damaged or edited. Copy it "
            "again; after a deliberate edit call tfbnn.storage.seal."
        )
    return expected


def content_size(file):
    """Number of bytes before the seal of an open file that has one."""
    return os.fstat(file.fileno()).st_size - _SIZE


def _is_sealed(file):
    """Whether there is a seal, behind whose mark the file then stands."""
    size = content_size(file)
    if size < 0:
        return False
    file.seek(size)
    return file.read(len(_MARK)) == _MARK


def _digest(file, size):
    """SHA-256 of the first `size` bytes."""
    digest, block = hashlib.sha256(), memoryview(bytearray(_BLOCK))
    file.seek(0)
    while size:
        count = file.readinto(block[: min(size, _BLOCK)])
        if not count:
            raise ModelFileError("it became shorter while it was read. Load it again.")
        digest.update(block[:count])
        size -= count
    return digest.digest()
