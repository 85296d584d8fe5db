"""Shared helpers of the commands: exit codes, printing, JSON, import of TensorFlow.

No name in a file can act as a control sequence on a terminal: `say`, and the standard output that `main`
sets up, remove control characters.
"""

import contextlib
import json
import sys
from typing import Any

from tfbnn.engine.basis import libraries
from tfbnn.system.words import plain, without_controls

DONE, FAILED, BAD_INPUT, DIAGNOSTICS_FAILED, STOPPED = 0, 1, 2, 3, 85


def say(text: str) -> None:
    """Print to standard error, which is for people; standard output is for results."""
    # RuntimeError is raised when a signal handler prints while a line is being printed.
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        print(without_controls(text), file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print `value` as JSON; NumPy arrays become lists, NaN null, infinity the string "inf"."""
    print(json.dumps(plain(value), indent=2, allow_nan=False))


def import_tensorflow() -> None:
    """Import TensorFlow, after a message, because it takes seconds.

    Raises:
        ImportError: When it cannot be imported, with the command that installs it.
    """
    say("Starting TensorFlow ...")
    for library in (libraries.tf, libraries.tfp):
        library.load()
