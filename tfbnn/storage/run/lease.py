"""Leases: the right to write in a folder, which one process at a time holds.

A lease is a lock on an open file. The text in the file tells other processes who holds it. On a
file system that does not share locks between hosts, a second writer could start. The first writer
then finds the token of the second in the file and stops.
"""

import contextlib
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from tfbnn.exceptions import RunFolderError, RunLockedError
from tfbnn.system.atomic import StrPath, is_locked, lock, open_plainly, unlock

_MAX_BYTES = 4096
# Longer than `is_held` locks the file.
_SECOND_TRY_SECONDS = 0.05


@contextlib.contextmanager
def held_lease(path: str) -> Iterator["Lease"]:
    """Take a lease without waiting, yield it, and release it at the end.

    Args:
        path: File of the lease, which is created if it is missing, and is not removed.

    Raises:
        RunLockedError: When another process holds the lease; the message names host and process.
        RunFolderError: When the file system has no locks.
        OSError: When the file cannot be written.
    """
    lease = Lease(path, open_plainly(path, os.O_RDWR | os.O_CREAT))
    try:
        lease.take()
        yield lease
    finally:
        lease.release()


def is_held(path: StrPath) -> bool:
    """Return whether a process holds the lease, without disturbing a holder or a process taking it.

    Args:
        path: File of the lease; if it is missing, the lease is not held.
    """
    try:
        handle = open_plainly(os.fspath(path), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return is_locked(handle)
    finally:
        os.close(handle)


class Lease:
    """Lease on an open file, created by `held_lease`."""

    def __init__(self, path: str, handle: int):
        self._path, self._handle, self._pid = path, handle, os.getpid()
        self._is_released = False
        who = {
            "host": socket.gethostname(),
            "pid": self._pid,
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "token": secrets.token_hex(16),
        }
        self._text = json.dumps(who).encode()

    def take(self) -> None:
        """Lock the file and write the identity of this process in it."""
        try:
            self._lock()
        except BlockingIOError:
            raise RunLockedError(
                f"{os.path.dirname(self._path)!r} is being written by {_holder(self._path)}. Wait "
                "until it has finished, or stop it."
            ) from None
        except OSError as error:
            raise RunFolderError(
                f"{self._path!r} cannot be locked ({error.strerror or error}). Choose a folder on "
                "a file system with locks (flock)."
            ) from error
        try:
            # Truncated last: on a full disk only existing bytes can be overwritten.
            os.pwrite(self._handle, self._text, 0)
            os.ftruncate(self._handle, len(self._text))
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from error
        self.check()

    def _lock(self) -> None:
        try:
            lock(self._handle)
        except BlockingIOError:
            time.sleep(_SECOND_TRY_SECONDS)  # another process may only have called `is_held`
            lock(self._handle)

    def check(self) -> None:
        """Check that this process still holds the lease.

        Raises:
            RunLockedError: When another process has taken the lease, or it was released.
            RunFolderError: When the folder was moved or removed.
        """
        if self._is_released:
            raise RunLockedError(f"The lease {self._path!r} has been released: open it again.")
        if os.getpid() != self._pid:
            raise RunLockedError(
                f"The lease {self._path!r} is that of process {self._pid}, which was forked."
            )
        if not os.path.lexists(self._path):
            raise RunFolderError(
                f"{_missing(self._path)!r} was moved or removed while the run was writing in it. If it "
                "was moved, its draws are in the new place: tfbnn resume FOLDER."
            )
        if _content(self._path) != self._text:
            raise RunLockedError(
                f"The lease {self._path!r} was lost to {_holder(self._path)}. Nothing more is "
                "written here; what was committed is intact."
            )

    def release(self) -> None:
        """Release the lease, also where a process that was forked meanwhile has the file open."""
        if os.getpid() == self._pid:
            with contextlib.suppress(OSError):  # closing it unlocks it, too, if there are no forks
                unlock(self._handle)
        os.close(self._handle)
        self._is_released = True


def _holder(path: str) -> str:
    """Describe the holder of the lease; the text in the file is not trusted."""
    try:
        who = json.loads(_content(path))
        return f"process {int(who['pid'])} on host {str(who['host'])!r:.100}"
    except (KeyError, TypeError, ValueError, RecursionError):
        return "another process"


def _missing(path: str) -> str:
    """Return the topmost missing folder above a missing file, or the file if its folder exists."""
    above = os.path.dirname(path)
    return path if os.path.lexists(above) else _missing(above)


def _content(path: str) -> bytes:
    """Return the bytes of the file; none if it is missing."""
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_BYTES)
    except FileNotFoundError:
        return b""
