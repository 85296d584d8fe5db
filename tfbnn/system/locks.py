"""Locks of the operating system on open files, which end with the process, however that ends."""

import os
from typing import IO, Any

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]  # Windows


def open_plainly(path: str, flags: int) -> int:
    """Opens a file as `os.open` does, for all who may read or write it.

    No link is followed and no pipe's other end waited for, where the system knows how.
    """
    plainly = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags | plainly, 0o666)


def lock(handle: IO[Any] | int, wait: bool = False) -> None:
    """Locks an open file, until it is closed, against everybody else who asks.

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
    """Whether another has locked an open file, or that cannot be known.

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
