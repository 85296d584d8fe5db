"""What a worker process and its parent tell each other: a line of JSON per message."""

import builtins
import json
import traceback

from tfbnn import exceptions


def send(stream, kind, content):
    """Writes a message to a text stream. Nothing is shared between lines, so one lost is one."""
    stream.write(json.dumps([kind, content]) + "\n")
    stream.flush()


def parse(line):
    """(Kind, content) of a message; None for a line that is none.

    It may be the beginning of one whose sender died, or what a library printed on start-up.
    """
    try:
        kind, content = json.loads(line)
    except (TypeError, ValueError):
        return None
    return (kind, content) if line.endswith("\n") and isinstance(kind, str) else None


def error_to_json(error):
    """An exception as JSON: its type's name, its arguments, its traceback."""
    plain = all(isinstance(argument, (str, int, type(None))) for argument in error.args)
    arguments = list(error.args) if plain and error.args else [str(error)]
    return [type(error).__name__, arguments, "".join(traceback.format_exception(error))]


def error_from_json(entry):
    """The exception that `error_to_json` described, with its traceback as a note.

    Of the types of this package and of Python it has its own; of others (TensorFlow's, say) it is
    a RuntimeError that names the type.
    """
    name, arguments, origin = entry
    kind = getattr(exceptions, name, None) or getattr(builtins, name, None)
    try:
        error = kind(*arguments)
    except TypeError:
        error = None  # none of the types, or one with arguments of its own
    if not isinstance(error, Exception):
        error = RuntimeError(f"{name}: {' '.join(map(str, arguments))}")
    error.add_note(f"In a worker process:\n{origin}")
    return error
