"""Libraries in C++ that are imported without their remarks on standard error."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

from tfbnn.system import log_filter

# Longer than it takes to write what is left. A process that was started meanwhile may keep the
# filter busy; it is not waited for.
_LAST_LINES_SECONDS = 1.0


@contextlib.contextmanager
def only_news() -> Iterator[None]:
    """While active, file descriptor 2 leads through `log_filter`, in a process of its own.

    Errors come out, also those that end this process, and whatever else is written there: only
    information and warnings of the log are dropped. Where no process can be started, or standard
    error is closed, all stays as it is.
    """
    with ExitStack() as stack:
        # Standard error may be closed, or the system refuse a further process.
        with contextlib.suppress(OSError):
            stack.enter_context(_filtered())
        yield


@contextlib.contextmanager
def _filtered() -> Iterator[None]:
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        saved = os.dup(2)
        try:
            command = [sys.executable, "-I", "-S", log_filter.__file__]
            child = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL)
            _flush()
            os.dup2(sink.fileno(), 2)
        except BaseException:
            os.close(saved)
            raise
        source.close()
        sink.close()
        try:
            yield
        finally:
            _flush()
            os.dup2(saved, 2)
            os.close(saved)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_LAST_LINES_SECONDS)


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
