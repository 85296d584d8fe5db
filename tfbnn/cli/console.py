"""Helpers that the commands share: exit codes, printing, JSON, starting TensorFlow.

No name in a file reaches a terminal as a command to it: what is said and printed is made plain, by
`say` and by the standard output of `main`.
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
    # RuntimeError: a signal's handler came while a line was being printed.
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        print(without_controls(text), file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print `value` as JSON; NumPy arrays become lists, NaN null, infinity the string "inf"."""
    print(json.dumps(plain(value), indent=2, allow_nan=False))


def import_tensorflow() -> None:
    """Import TensorFlow, and say so, as it takes seconds.

    Raises:
        ImportError: When it cannot be imported, with the command that installs it.
    """
    say("Starting TensorFlow ...")
    for library in (libraries.tf, libraries.tfp):
        library.load()
