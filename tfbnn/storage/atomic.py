"""Files that appear under their name only when they are complete and on the disk."""

import contextlib
import os
import tempfile

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path):
    """Yields the name of a temporary file that replaces `path` at the end, unless something fails.

    The content is on the disk before the new name is, and the new name when this returns: after a
    crash there is the older file or the new one, never a mixture.

    Raises:
        FileNotFoundError: When the folder does not exist.
        OSError: When the file cannot be written.
    """
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"The folder of {path!r} does not exist. Create it first.")
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".tfbnn-", suffix=".tmp")
    os.close(handle)
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder):
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows cannot open folders
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
