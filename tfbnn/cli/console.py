"""What the commands share: exit codes, printing, JSON, TensorFlow without its chatter."""

import contextlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from tfbnn.engine.basis import libraries

DONE, FAILED, BAD_INPUT, DIAGNOSTICS_FAILED, STOPPED = 0, 1, 2, 3, 85


def say(text: str) -> None:
    """Prints to standard error, which is for people; standard output is for results."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Prints `value` as JSON; NumPy arrays become lists, NaN null, infinity the string "inf"."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def import_tensorflow() -> None:
    """Imports TensorFlow and hides its messages on build flags and absent GPU libraries.

    Raises:
        ImportError: When it cannot be imported, with the command that installs it.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    say("Starting TensorFlow ...")
    with _hidden_standard_error():
        for library in (libraries.tf, libraries.tfp):
            library.load()


@contextlib.contextmanager
def _hidden_standard_error() -> Iterator[None]:
    """Catches what C++ code writes to file descriptor 2, and shows it only after an exception."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            yield
        except BaseException:
            hidden.seek(0)
            os.write(saved, hidden.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
