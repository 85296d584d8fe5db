"""Small text: what somebody may have meant, and what may be shown on a terminal."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

# Control characters, halves of characters, separators of lines that are none on a terminal.
_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
# What turns the direction of the text that follows.
_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
_LAYOUT = "\n\t"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence such as " Did you mean 'hmc'?", or nothing where no known word is near."""
    near = get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


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
