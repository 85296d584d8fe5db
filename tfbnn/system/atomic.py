"""Files that appear under their name only when they are complete and on the disk, and their locks.

The temporary file has a name that nobody can guess and must be new, so that a link planted under
such a name is never followed. It is locked while it is written: one that is not was left behind by
a process that was killed, and goes at the next write in its folder.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from io import FileIO
from typing import IO, Any, TextIO

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]  # Windows

_PREFIX, _SUFFIX = ".tfbnn-", ".tmp"
_BLOCK = 2**22


@contextlib.contextmanager
def replacing(path: StrPath, *, lasting: bool = True) -> Iterator[str]:
    """Yield the name of a temporary file that replaces `path` at the end, unless something fails.

    The content is on the disk before the new name is, and the new name when this returns: after a
    crash there is the older file or the new one, never a mixture.

    Args:
        path: File name.
        lasting: False does not wait for the disk, nor look for files that others left: a crash of
            the machine, though not of the process, may cost the content. For thousands of new files
            that can be made again.

    Raises:
        FileNotFoundError: When the folder does not exist.
        OSError: When the file cannot be written.
    """
    with _replacing(path, lasting) as file:
        yield str(file.name)


def write_file(path: StrPath, *parts: bytes | memoryview) -> None:
    """Write a whole file, replacing what is there only once the new file is complete.

    Args:
        path: File name.
        *parts: The content, objects with the buffer protocol.

    Raises:
        OSError: When the file cannot be written; the message says how many bytes it has.
    """
    views = [memoryview(part).cast("B") for part in parts]
    try:
        with _replacing(path) as file:
            for view in views:
                while view:
                    _reached("writing", path)
                    # Fewer bytes than asked for may be taken where the disk or a limit ends.
                    view = view[file.write(view[:_BLOCK]) :]
    except OSError as error:
        if error.errno is None:
            raise
        size = sum(map(len, views))
        message = f"{error.strerror or error}, {size} bytes were to be written"
        raise OSError(error.errno, message, os.fspath(path)) from error


def open_text(path: StrPath) -> TextIO:
    """Open a file that `replacing` made, or a device, for the text of a table.

    UTF-8, lines as they are; halves of characters, which have no UTF-8, become escapes.
    """
    return open(path, "w", newline="", encoding="utf-8", errors="backslashreplace")


def check_writable(path: StrPath) -> None:
    """Refuse a path at which no file could be written, before the work that its content takes.

    Found out by making a temporary file: what rights and flags say is not the whole truth.

    Raises:
        FileNotFoundError: When the folder does not exist.
        OSError: When the file could not be written.
    """
    path = os.fspath(path)
    folder = _folder_of(path)
    with contextlib.suppress(FileNotFoundError):
        os.lstat(path)  # refuses a name that is too long
    try:
        with _new_temporary(folder) as file:
            os.unlink(file.name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def make_folder(path: StrPath) -> None:
    """Make a folder, whose name is on the disk when this returns, unless it is there already.

    Raises:
        FileNotFoundError: When the folder above does not exist.
        OSError: When it cannot be made, or when there is something else of that name.
    """
    above = _folder_of(path)
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    else:
        _sync_folder(above)


def remove_abandoned(folder: str) -> None:
    """Remove the temporary files of writers that were killed.

    Where the file system has no locks, all stay.
    """
    for name in filter(is_temporary, os.listdir(folder)):
        path = os.path.join(folder, name)
        # Another process may be writing it, or remove it at this moment; or it is no file at all.
        with contextlib.suppress(OSError), open(path, "rb", opener=open_plainly) as file:
            lock(file)
            os.unlink(path)


def is_temporary(name: str) -> bool:
    """Return whether a file name is one of those that `replacing` yields."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def open_plainly(path: str, flags: int) -> int:
    """Open a file as `os.open` does, for all who may read or write it.

    No link is followed and no pipe's other end waited for, where the system knows how.
    """
    plainly = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags | plainly, 0o666)


def lock(handle: IO[Any] | int, wait: bool = False) -> None:
    """Lock an open file, until it is closed, against everybody else who asks.

    Args:
        handle: The file or its number.
        wait: Whether to wait for another to unlock it.

    Raises:
        BlockingIOError: When another has locked it.
        OSError: Where the system or the file system has no locks.
    """
    if fcntl is None:
        raise OSError("this system has no locks on files")
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(handle: IO[Any] | int) -> bool:
    """Return whether another has locked an open file, or that cannot be known.

    The file, which need not be writable, is locked itself for a moment, together with others who
    ask the same.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.flock(handle, fcntl.LOCK_UN)
    return False


def _reached(point: str, path: StrPath) -> None:
    """Do nothing. Tests of faults put a function in its place, which ends the process.

    Args:
        point: "before write", "writing" (once per block), "after write", "after fsync" or "after
            rename".
        path: The file to be written.
    """


@contextlib.contextmanager
def _replacing(path: StrPath, lasting: bool = True) -> Iterator[FileIO]:
    """Yield the open temporary file of `replacing`, without a buffer of its own."""
    path = os.fspath(path)
    folder = _folder_of(path)
    if lasting:
        remove_abandoned(folder)
    _reached("before write", path)
    file = _new_temporary(folder)
    try:
        with file:
            yield file
            _reached("after write", path)
            if lasting:
                os.fsync(file.fileno())
            _reached("after fsync", path)
            if os.name == "nt":
                file.close()  # Windows renames no open file; elsewhere the lock has to last
            os.replace(file.name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file.name)
        raise
    _reached("after rename", path)
    if lasting:
        _sync_folder(folder)


def _new_temporary(folder: str) -> FileIO:
    while True:
        name = f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        file = open(os.path.join(folder, name), "xb", buffering=0)
        with contextlib.suppress(OSError):
            lock(file, wait=True)
        # Between its birth and its lock another process may have thought it abandoned.
        if os.path.exists(file.name):
            return file
        file.close()


def _folder_of(path: StrPath) -> str:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"The folder of {path!r} does not exist. Create it first.")
    return folder


def _sync_folder(folder: str) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows cannot open folders
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


StrPath = str | os.PathLike[str]


# What a page begins with.
MARK = "<!DOCTYPE html>\n<!-- tfbnn report -->"


def _is_page(path: StrPath) -> bool:
    """Return whether a file is a page of ours."""
    with open(path, "rb") as file:
        return file.read(len(MARK)) == MARK.encode()


def check_place(path: StrPath) -> None:
    """Refuse a place where a page would replace something else, or could not be written.

    Raises:
        FileExistsError: Where there is something else.
        OSError: When it could not be written.
    """
    path = os.fspath(path)
    if os.path.lexists(path) and not (os.path.isfile(path) and _is_page(path)):
        raise FileExistsError(
            f"{path} exists, is not a report of tfbnn, and would be overwritten. Remove it, or "
            "choose another name."
        )
    check_writable(path)
