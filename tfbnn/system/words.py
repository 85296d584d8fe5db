"""Texts for users: suggestions, warnings, missing extras, and output to terminals and notebooks."""

import importlib
import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any

_LAYOUT = "\n\t"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a sentence such as " Did you mean 'hmc'?", or "" if no known word is similar.

    Upper and lower case are not distinguished.
    """
    from difflib import get_close_matches  # not needed for predictions

    by_letters = {one.lower(): one for one in known}
    near = get_close_matches(word.lower(), by_letters, n=1)
    return f" Did you mean {by_letters[near[0]]!r}?" if near else ""


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, each once."""
    return [name for name, count in Counter(names).items() if count > 1]


def name_of(value: object) -> str:
    """Return a name for a value: a text itself, the name of a function or class, or of its class."""
    if isinstance(value, str):
        return value
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__


def without_controls(text: str) -> str:
    r"""Replace control characters by escapes such as \x1b; keep newlines and tabs.

    An untrusted file may hold names that would move the cursor, rename the window or hide the text
    around them.
    """
    if text.isascii() and text.translate(dict.fromkeys(map(ord, _LAYOUT))).isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in _LAYOUT else one.encode("unicode_escape").decode("ascii")
        for one in text
    )


def plain(value: Any) -> Any:
    """Convert values to JSON types: arrays to lists, NaN to None, infinity to the text "inf"."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


# Packages whose lines do not help users: searches call estimators, and decorators call functions.
_PASSED_OVER = {"tfbnn", "sklearn", "joblib", "contextlib", "concurrent", "threading"}
_left_out: ContextVar[tuple[type[Warning], ...]] = ContextVar("left_out", default=())


@contextmanager
def without_warnings(category: type[Warning]) -> Iterator[None]:
    """Suppress warnings of this package in the calls inside, and in threads that they start.

    Filters of Python belong to the process, so that threads restore those of each other.
    """
    token = _left_out.set((*_left_out.get(), category))
    try:
        yield
    finally:
        _left_out.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the innermost frame of the user's code.

    Frames of this package, and of packages that call it for a user, are skipped, as with
    `skip_file_prefixes` of Python 3.12. If there is no other frame, as in a thread, the warning is
    issued at the caller of this function.
    """
    if issubclass(category, _left_out.get()):
        return
    frame, level = sys._getframe(1), 2
    while frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER:
        if frame.f_back is None:
            level = 2
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_or_print(message: str, category: type[Warning]) -> None:
    """Issue a warning; print it if warnings are errors, which would end a run with draws in memory."""
    try:
        warn(message, category)
    except Warning:
        print(f"{category.__name__}: {message}", file=sys.stderr)


def required(name: str, need: str, extra: str, otherwise: str = "") -> ModuleType:
    """Import an optional module; suggest how to install it if that fails.

    Args:
        name: Name of the module.
        need: Clause about the need for it, such as "Plots need Matplotlib".
        extra: Extra of tfbnn that installs it, such as "plots".
        otherwise: Another remedy, such as "convert the table to CSV".

    Raises:
        ImportError: When the module is not installed, or cannot be imported. The message has the
            command that installs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError)
        fault = "is not installed" if absent else f"cannot be imported ({error})"
        remedy = f"pip install 'tfbnn[{extra}]'" + (f", or {otherwise}" if otherwise else "")
        raise ImportError(f"{need}, which {fault}: {remedy}.") from error


def folded(text: str, details: str) -> str:
    """Format a text as HTML, with the first line in bold and details that unfold on a click.

    No colours are set, so that the HTML suits light and dark pages. The texts are escaped.
    """
    from html import escape  # not needed for predictions

    first, *others = text.splitlines()
    lines = [f"<b>{escape(first)}</b>", *map(escape, others)]
    return (
        f"<div>{'<br>'.join(lines)}"
        f"<details><summary>details</summary><pre>{escape(details)}</pre></details></div>"
    )
