"""Texts for people: suggestions, names, warnings, missing extras, and text fit for terminals, notebooks and JSON."""

import importlib
import math
import sys
import warnings
from collections.abc import Iterable
from types import ModuleType
from typing import Any

_LAYOUT = "\n\t"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a sentence such as " Did you mean 'hmc'?", or nothing where no known word is near.

    Small and capital letters count alike.
    """
    from difflib import get_close_matches  # which predictions have no need of

    by_letters = {one.lower(): one for one in known}
    near = get_close_matches(word.lower(), by_letters, n=1)
    return f" Did you mean {by_letters[near[0]]!r}?" if near else ""


def name_of(value: object) -> str:
    """Name a value: text itself, a function or class by its name, all else by its class."""
    if isinstance(value, str):
        return value
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__


def without_controls(text: str) -> str:
    r"""Return the text with its control characters as escapes, such as \x1b; new lines and tabs stay.

    A file of somebody else's may hold names that would move the cursor, rename the window or hide
    what stands around them.
    """
    if text.isascii() and text.translate(dict.fromkeys(map(ord, _LAYOUT))).isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in _LAYOUT else one.encode("unicode_escape").decode("ascii")
        for one in text
    )


def plain(value: Any) -> Any:
    """Return values as JSON has them: arrays as lists, NaN as None, infinity as the text "inf"."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


# Packages whose lines say nothing to a user: searches call estimators, and decorators call functions.
_PASSED_OVER = {"tfbnn", "sklearn", "joblib", "contextlib", "concurrent", "threading"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """`warnings.warn` at the innermost frame outside this package and those that call it for a user.

    As `skip_file_prefixes` of Python 3.12; where there is none, in a thread, at the line that warns.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER:
        if frame.f_back is None:
            level = 2
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def required(name: str, need: str, extra: str, otherwise: str = "") -> ModuleType:
    """Return the module `name`.

    Args:
        name: Of the module.
        need: What needs it, and what it is called, such as "Plots need Matplotlib".
        extra: The extra that has it, such as "plots".
        otherwise: What else would help, such as "convert the table to CSV".

    Raises:
        ImportError: When it is not installed, or cannot be imported, with the command that installs
            it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError)
        fault = "is not installed" if absent else f"cannot be imported ({error})"
        remedy = f"pip install 'tfbnn[{extra}]'" + (f", or {otherwise}" if otherwise else "")
        raise ImportError(f"{need}, which {fault}: {remedy}.") from error


def folded(text: str, details: str) -> str:
    """HTML of a text, the first line bold, above details that unfold on a click.

    It has no colours of its own, so that it suits light and dark pages, and nothing in the texts
    acts as HTML.
    """
    from html import escape  # which those who only predict need not wait for

    first, *others = text.splitlines()
    lines = [f"<b>{escape(first)}</b>", *map(escape, others)]
    return (
        f"<div>{'<br>'.join(lines)}"
        f"<details><summary>details</summary><pre>{escape(details)}</pre></details></div>"
    )
