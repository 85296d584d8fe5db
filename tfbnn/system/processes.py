"""Helpers for child processes, and a filter for the log of C++ libraries on standard error.

Run as a program, this module filters a log from standard input to standard error. The filter runs
in a process of its own. So a message is still shown if the library ends the process after it, for
example on a processor that it was not built for.
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
    # Lines of glog and Abseil: severity, date, time, thread, source position, text.
    re.compile(rb"[IW]\d{4} [\d:.]+ +\d+ [\w./-]+:\d+\] "),
    # A line that Abseil writes before the first of them; and a line that TensorFlow calls an error
    # if no NVIDIA driver is installed (303: libcuda.so.1 cannot be loaded), as on most machines
    # without a GPU.
    re.compile(rb"WARNING: All log messages before absl::InitializeLog\(\) is called"),
    re.compile(rb"E\d{4} .*cuda_platform\.cc:\d+\] failed call to cuInit: .*\(303\)\s*$"),
)
# Longer than it takes to write the remaining lines. A process that was started meanwhile may keep
# the filter running; the filter is then not waited for.
_LAST_LINES_SECONDS = 1.0


def search_path() -> str:
    """Return the PYTHONPATH with which a child process finds the packages of this process."""
    here = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 2))
    return os.pathsep.join([here, *(entry for entry in sys.path if entry)])


def describe_ending(code: int) -> str:
    """Describe the return code of a process in words."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}"


@contextlib.contextmanager
def only_news() -> Iterator[None]:
    """Redirect file descriptor 2 through `filter_log`, in a process of its own, while active.

    Only information and warnings of the log are dropped. Errors are shown, also those that end this
    process, and so is all other text. If no process can be started, or standard error is closed,
    nothing is redirected.
    """
    with ExitStack() as stack:
        # Standard error may be closed, or the system may refuse another process.
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
    """Return whether to show a line of the log: an error, or a line without the form of the log."""
    return not any(pattern.match(line) for pattern in _NO_NEWS)


def filter_log() -> None:
    """Copy the lines to be shown from standard input to standard error, until the input ends."""
    # Ctrl-C reaches all processes of a terminal, but the filter ends with the process that it
    # serves.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        if is_news(line):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


if __name__ == "__main__":
    filter_log()
