"""Processes that tfbnn starts, and libraries in C++ without their remarks on standard error.

Run as a program, this filters a log from standard input to standard error. The filter has a process of its
own, so that what a library says before it ends the process, say on a processor that it was not built
for, still comes out.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, cast

_NO_NEWS = (
    # The lines of glog and Abseil: severity, date, time, thread, place, text.
    re.compile(rb"[IW]\d{4} [\d:.]+ +\d+ [\w./-]+:\d+\] "),
    # What Abseil writes before the first of them, and what TensorFlow calls an error where no driver
    # of NVIDIA's is installed (303: libcuda.so.1 cannot be loaded), as on most machines without a GPU.
    re.compile(rb"WARNING: All log messages before absl::InitializeLog\(\) is called"),
    re.compile(rb"E\d{4} .*cuda_platform\.cc:\d+\] failed call to cuInit: .*\(303\)\s*$"),
)
# Longer than it takes to write what is left. A process that was started meanwhile may keep the
# filter busy; it is not waited for.
_LAST_LINES_SECONDS = 1.0


def search_path() -> str:
    """PYTHONPATH with which a child finds the very packages that this process uses."""
    here = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 2))
    return os.pathsep.join([here, *(entry for entry in sys.path if entry)])


def describe_ending(code: int) -> str:
    """Say in words what the return code of a process means."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}"


@contextlib.contextmanager
def only_news() -> Iterator[None]:
    """While active, file descriptor 2 leads through `filter_log`, in a process of its own.

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
    with open(os.dup(2), "wb", buffering=0) as saved:
        command = [sys.executable, "-I", "-S", __file__]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        with cast(IO[bytes], child.stdin) as pipe:
            _flush()
            os.dup2(pipe.fileno(), 2)
        try:
            yield
        finally:
            _flush()
            os.dup2(saved.fileno(), 2)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_LAST_LINES_SECONDS)


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()


def is_news(line: bytes) -> bool:
    """Return whether a line of the log is shown: errors are, and all that has not the log's form."""
    return not any(pattern.match(line) for pattern in _NO_NEWS)


def filter_log() -> None:
    """Hand on what is news, line by line, until the end of standard input."""
    # Ctrl-C reaches all processes of a terminal; this one ends with the one it works for.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        if is_news(line):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


if __name__ == "__main__":
    filter_log()
