"""Atomic writes, where a file gets its name once it is complete and on disk, and file locks.

The temporary file has a random name and must be new, so that a link planted under such a name is
never followed. It is locked while it is written. An unlocked temporary file was left by a process
that was killed, and is removed at the next write in its folder.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
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

    The content is on disk before the new name is, and the new name is on disk when this returns.
    After a crash there is either the old file or the new one, never a mixture.

    Args:
        path: File name.
        lasting: False skips waiting for the disk and removing abandoned files. A crash of the
            machine, but not of the process, may then lose the content. Meant for thousands of new
            files that can be made again.

    Raises:
        FileNotFoundError: When the folder does not exist.
        OSError: When the file cannot be written.
    """
    with _replacing(path, lasting) as file:
        yield str(file.name)


def write_file(path: StrPath, *parts: bytes | memoryview) -> None:
    """Write a whole file; an existing file is replaced once the new one is complete.

    Args:
        path: File name.
        *parts: Content of the file, objects with the buffer protocol.

    Raises:
        OSError: When the file cannot be written; the message has the number of bytes to be written.
    """
    views = [memoryview(part).cast("B") for part in parts]
    try:
        with _replacing(path) as file:
            for view in views:
                while view:
                    _reached("writing", path)
                    # Near the end of the disk or of a limit, fewer bytes may be written.
                    view = view[file.write(view[:_BLOCK]) :]
    except OSError as error:
        if error.errno is None:
            raise
        size = sum(map(len, views))
        message = f"{error.strerror or error}, {size} bytes were to be written"
        raise OSError(error.errno, message, os.fspath(path)) from error


def open_text(path: StrPath) -> TextIO:
    """Open a temporary file of `replacing`, or a device, for writing the text of a table.

    The encoding is UTF-8, and line ends are not converted. Surrogates, which have no UTF-8, become
    escapes.
    """
    return open(path, "w", newline="", encoding="utf-8", errors="backslashreplace")


def check_writable(path: StrPath) -> None:
    """Check that a file can be written at a path, before its content is computed.

    The check creates a temporary file, because permissions and flags are not conclusive.

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
    """Create a folder unless it exists; its name is on disk when this returns.

    Raises:
        FileNotFoundError: When the parent folder does not exist.
        OSError: When the folder cannot be created, or the path exists and is not a folder.
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
    """Remove temporary files of writers that were killed.

    On a file system without locks, nothing is removed.
    """
    for name in filter(is_temporary, os.listdir(folder)):
        path = os.path.join(folder, name)
        # Another process may be writing or removing it, or it may not be a file.
        with contextlib.suppress(OSError), open(path, "rb", opener=open_plainly) as file:
            lock(file)
            os.unlink(path)


def is_temporary(name: str) -> bool:
    """Return whether a file name has the form of the temporary files of `replacing`."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def open_plainly(path: str, flags: int) -> int:
    """Open a file with `os.open`, with mode 0o666 for new files.

    Links are not followed and pipes do not block, if the system supports this.
    """
    plainly = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags | plainly, 0o666)


def lock(handle: IO[Any] | int, wait: bool = False) -> None:
    """Lock an open file exclusively until it is unlocked or closed; the lock is advisory.

    Args:
        handle: The file or its descriptor.
        wait: Whether to wait until another process unlocks it.

    Raises:
        BlockingIOError: When another process has locked it, and `wait` is False.
        OSError: When the system or the file system has no locks.
    """
    if fcntl is None:
        raise OSError("this system has no locks on files")
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock(handle: IO[Any] | int) -> None:
    """Unlock an open file, also for processes that were forked while it was locked."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)


def is_locked(handle: IO[Any] | int) -> bool:
    """Return whether an open file is locked by another process, or its state cannot be determined.

    The check takes a shared lock for a moment, which other checks do not disturb. The file need not
    be writable.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    unlock(handle)
    return False


def _reached(point: str, path: StrPath) -> None:
    """Do nothing; tests of faults replace this function by one that ends the process.

    Args:
        point: "before write", "writing" (once per block), "after write", "after fsync" or "after
            rename".
        path: File to be written.
    """


def is_device(path: str) -> bool:
    """Return whether a path is a pipe, a device or an open stream, which is written to and never replaced."""
    target = os.readlink(path) if os.path.islink(path) else path
    is_stream = target.startswith(("/proc/", "/dev/fd/", "/dev/std"))  # also of a plain file
    return os.path.exists(path) and (is_stream or not (os.path.isfile(path) or os.path.isdir(path)))


@contextlib.contextmanager
def _replacing(path: StrPath, lasting: bool = True) -> Iterator[FileIO]:
    """Yield the open, unbuffered temporary file of `replacing`."""
    path = os.fspath(path)
    if is_device(path):
        raise FileExistsError(f"{path!r} is a pipe or a device, and would be replaced by a file.")
    folder = _folder_of(path)
    if lasting:
        remove_abandoned(folder)
    _reached("before write", path)
    file = _new_temporary(folder)
    try:
        with file:
            with contextlib.suppress(OSError):  # a new file, or a file system without permissions
                old = os.lstat(path)
                if stat.S_ISREG(old.st_mode):  # others may not be allowed to read it
                    os.chmod(
                        file.name, stat.S_IMODE(old.st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR
                    )
            yield file
            _reached("after write", path)
            if lasting:
                os.fsync(file.fileno())
            _reached("after fsync", path)
            if os.name == "nt":
                file.close()  # Windows cannot rename open files; elsewhere the lock has to last
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
        # Another process may have removed it as abandoned before it was locked.
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


# First characters of a report page.
MARK = "<!DOCTYPE html>\n<!-- tfbnn report -->"


def _is_page(path: StrPath) -> bool:
    """Return whether a file is a report page of tfbnn."""
    with open(path, "rb") as file:
        return file.read(len(MARK)) == MARK.encode()


def check_page_path(path: StrPath) -> None:
    """Check that a report page can be written at a path, and replaces at most an older page.

    Raises:
        FileExistsError: When the path exists and is not a report of tfbnn.
        OSError: When the page could not be written.
    """
    path = os.fspath(path)
    if os.path.lexists(path) and not (os.path.isfile(path) and _is_page(path)):
        raise FileExistsError(
            f"{path} exists, is not a report of tfbnn, and would be overwritten. Remove it, or "
            "choose another name."
        )
    check_writable(path)
