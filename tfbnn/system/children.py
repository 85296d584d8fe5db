"""What processes that tfbnn starts have in common."""

import contextlib
import os
import signal
import sys


def search_path() -> str:
    """PYTHONPATH with which a child finds the very packages that this process uses."""
    here = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 2))
    return os.pathsep.join([here, *(entry for entry in sys.path if entry)])


def describe_ending(code: int) -> str:
    """What the return code of a process says, in words."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}"
