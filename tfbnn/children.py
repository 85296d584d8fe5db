"""What processes that tfbnn starts have in common."""

import contextlib
import os
import signal
import sys

__all__ = ["describe_ending", "search_path"]


def search_path():
    """PYTHONPATH with which a child finds the very packages that this process uses."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.pathsep.join([here, *(entry for entry in sys.path if entry)])


def describe_ending(code):
    """What the return code of a process says, in words."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}"
