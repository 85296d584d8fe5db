"""Small text: what somebody may have meant, and what may be shown on a terminal."""

import unicodedata
from collections.abc import Iterable

# Control characters, halves of characters, separators of lines that are none on a terminal.
_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
# What turns the direction of the text that follows.
_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
_LAYOUT = "\n\t"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence such as " Did you mean 'hmc'?", or nothing where no known word is near.

    Small and capital letters count alike.
    """
    from difflib import get_close_matches  # which predictions have no need of

    by_letters = {one.lower(): one for one in known}
    near = get_close_matches(word.lower(), by_letters, n=1)
    return f" Did you mean {by_letters[near[0]]!r}?" if near else ""


def name_of(value: object) -> str:
    """What people call a value: text itself, a function or class by its name, all else by its class."""
    if isinstance(value, str):
        return value
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__


def without_controls(text: str) -> str:
    r"""The text with its control characters as escapes, such as \x1b; new lines and tabs stay.

    A file of somebody else's may hold names that would move the cursor, rename the window or hide
    what stands around them.
    """
    if text.isascii() and text.translate(dict.fromkeys(map(ord, _LAYOUT))).isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    harmless = (
        unicodedata.category(character) not in _CATEGORIES
        and unicodedata.bidirectional(character) not in _DIRECTIONS
    )
    if harmless or character in _LAYOUT:
        return character
    return character.encode("unicode_escape").decode("ascii")
