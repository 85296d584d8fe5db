"""Reader of numbers in SUSY Les Houches Accord text (Skands et al. 2004, hep-ph/0311123)."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.numbers import is_number
from tfbnn.exceptions import DataWarning
from tfbnn.system.words import warn

Place = tuple[str, *tuple[int, ...]]  # the name of a block, then indices

_INDEX = re.compile(r"-?[0-9]{1,18}")
_HEADER = re.compile(r"block\s+(?P<name>\w+)(\s+q\s*=\s*(?P<scale>\S+))?", re.IGNORECASE)
_HEADERS = re.compile(rf"^[ \t]*{_HEADER.pattern}", re.IGNORECASE | re.MULTILINE)
# Endings of the files that are found in a folder; other files have to be named.
SPECTRUM_ENDINGS = (".slha", ".slha1", ".slha2", ".lha", ".spc")
# First words of section headers, in capitals.
SECTIONS = ("BLOCK", "DECAY", "XSECTION")
# Block of the spectrum program; entry 1 is its name, entries 3 are its warnings, entries 4 its errors.
_PROGRAM, _NAME, _WARNING, _ERROR = "SPINFO", "1", "3", "4"
# Fortran's 1.5D+02, and 1.000-102 without a letter for exponents of three digits.
_FORTRAN = re.compile(
    r"(?P<digits>[+-]?([0-9]+\.?[0-9]*|\.[0-9]+))([dD](?=[+-]?[0-9])|(?=[+-][0-9]{3}))"
    r"(?P<exponent>[+-]?[0-9]+)"
)


def check_place(place: Any) -> Place:
    """Check an SLHA place; return (block, index, ..) with the name of the block in capitals.

    Args:
        place: A tuple or list (block, index, ..), or text such as "NMIX 1 1".

    Raises:
        TypeError: For anything but a name followed by integers.
    """
    if isinstance(place, str):
        name, *indices = place.split() or [""]
        place = name, *(int(word) if _INDEX.fullmatch(word) else word for word in indices)
    sound = isinstance(place, (tuple, list)) and place and isinstance(place[0], str)
    if not (sound and all(type(index) is int for index in place[1:])):
        raise TypeError(
            "An SLHA place must be the name of a block followed by integer indices, such as "
            f"('MASS', 1000022) or 'NMIX 1 1', received {place!r}."
        )
    return (place[0].upper(), *place[1:])


def place_text(place: Iterable[str | int]) -> str:
    """Return an SLHA place in the notation of a file: 'NMIX 1 1'."""
    return " ".join(map(str, place))


def read_places(text: str, places: Mapping[str, Place]) -> dict[str, float]:
    """Read numbers from the blocks of SLHA text; other sections, such as decays, are ignored.

    Entries may begin without a blank and end in words. Numbers may have Fortran exponents, 1.5D+02
    and 1.000-102.

    Args:
        text: SLHA text.
        places: Dict name -> (block, index, ..).

    Returns:
        Dict name -> float.

    Raises:
        TypeError, ValueError: When the text is not SLHA, the spectrum program calls the point
            invalid (SPINFO 4), or entries are missing, duplicate, or not plain numbers.

    Warns:
        DataWarning: For warnings of the spectrum program (SPINFO 3).
    """
    if not isinstance(text, str):
        raise TypeError(f"SLHA text must be a str, received {type(text).__name__}.")
    lines = _lines_of_blocks(text, {place[0] for place in places.values()} | {_PROGRAM})
    _heed_the_program(line for line in lines if line.block == _PROGRAM)
    by_place = _entries(lines, places.values())
    found = {name: by_place[place] for name, place in places.items()}
    missing = [name for name, entries in found.items() if not entries]
    if missing:
        wanted = ", ".join(f"{place_text(places[name])} ({name})" for name in missing)
        raise ValueError(f"The SLHA text has no entry {wanted}. Add it, or use set_parameters.")
    for name, entries in found.items():
        place = f"{place_text(places[name])} ({name})"
        if len(entries) > 1:
            raise ValueError(
                f"The SLHA text has {len(entries)} entries {place}: "
                f"{', '.join(map(str, entries)):.200}. Keep the one that was meant, or use "
                "set_parameters."
            )
        if not is_number(entries[0].value):
            raise ValueError(
                f"The SLHA entry {place} must be a finite number, received "
                f"{entries[0].value[:80]!r}. Was the spectrum computed?"
            )
    return {name: float(entries[0].value) for name, entries in found.items()}


def spectra_in(text: str) -> list[str]:
    """Split a text into its spectra.

    Each spectrum begins with the block that is first in the text, and has exactly one block MASS, or
    none where the spectrum program names itself and an error. A text that cannot be split in this
    way is returned whole.
    """
    headers = list(_HEADERS.finditer(text))
    blocks = [header["name"].upper() for header in headers]
    starts = [header.start() for header, name in zip(headers, blocks) if name == blocks[0]][1:]
    ends = [0, *starts, len(text)]
    masses = [header.start() for header, name in zip(headers, blocks) if name == "MASS"]
    counts = np.diff(np.searchsorted(masses, ends))
    pieces = [text[begin:end] for begin, end in pairwise(ends)]
    for count, piece in zip(counts, pieces):
        if count != 1 and (count or not _has_failed(piece)):
            return [text]
    return pieces


def _has_failed(text: str) -> bool:
    """Return whether a spectrum program says its name and an error."""
    codes = {words[0] for words in read_rows(text, _PROGRAM)}
    return {_NAME, _ERROR} <= codes


def read_rows(text: str, block: str) -> list[list[str]]:
    """Return the words of each line of a block (named in capitals), without comments.

    The list is empty if there is no such block.
    """
    return [line.words for line in _lines_of_blocks(text, {block})]


def number_of(word: Any) -> float:
    """Convert a word or a number to float; NaN for anything else."""
    if isinstance(word, str):
        word = _value([word])
        return float(word) if is_number(word) else np.nan
    return np.nan if word is None else float(word)


class _Line(NamedTuple):
    """Line of a block: block and scale, words without the comment, and the comment."""

    block: str
    scale: str | None
    words: list[str]
    comment: str


class _Entry(NamedTuple):
    """Value at an SLHA place, and the scale of its block."""

    value: str
    scale: str | None

    def __str__(self) -> str:
        return self.value if self.scale is None else f"{self.value} at Q = {self.scale}"


def _lines_of_blocks(text: str, names: Collection[str]) -> list[_Line]:
    """Return all lines of the blocks with these names (in capitals)."""
    found: list[_Line] = []
    block, scale = None, None  # both are None inside other sections
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        content, _, comment = line.partition("#")
        words = content.split()
        if not words:
            continue
        if words[0].upper() in SECTIONS:
            header = _HEADER.match(content.strip())
            name = header["name"].upper() if header else None
            block, scale = (name, header["scale"]) if header and name in names else (None, None)
        elif block:
            if block != _PROGRAM and not _looks_like_number(words[0]):
                raise ValueError(
                    f"The text is not SLHA: line {number}, in block {block}, must be an entry of "
                    f"numbers, received {content.strip()[:80]!r}. Put a # before comments."
                )
            found.append(_Line(block, scale, words, comment.strip()))
    return found


def _entries(lines: Iterable[_Line], places: Iterable[Place]) -> dict[Place, list[_Entry]]:
    """Collect the entries at each SLHA place, in one pass over the lines."""
    found: dict[Place, list[_Entry]] = {place: [] for place in places}
    numbers_of_indices: dict[str, set[int]] = {}
    for block, *indices in found:
        numbers_of_indices.setdefault(block, set()).add(len(indices))
    for line in lines:
        for count in numbers_of_indices.get(line.block, ()):
            if _has_indices(line.words, count):
                place = (line.block, *map(int, line.words[:count]))
                if place in found:
                    found[place].append(_Entry(_value(line.words[count:]), line.scale))
    return found


def _has_indices(words: Sequence[str], count: int) -> bool:
    """Return whether a line has exactly `count` indices.

    An integer that is followed by a number is one more index.
    """
    rest = words[count:]
    more = len(rest) > 1 and _INDEX.fullmatch(rest[0]) and _looks_like_number(rest[1])
    return not more and all(_INDEX.fullmatch(word) for word in words[:count])


def _value(words: Sequence[str]) -> str:
    """Return the value after the indices, in Python's notation.

    Two numbers are returned as one text, which does not parse as a number.
    """
    value, *others = words or [""]
    if others and _looks_like_number(others[0]):
        return " ".join(words)
    match = _FORTRAN.fullmatch(value)
    return f"{match['digits']}e{match['exponent']}" if match else value


def _looks_like_number(word: str) -> bool:
    return word[0] in "+-.0123456789" or word.lower() in ("nan", "inf", "infinity")


def _heed_the_program(lines: Iterable[_Line]) -> None:
    """Refuse a point that the spectrum program calls invalid, and repeat the program's warnings."""
    said: dict[str, list[str]] = {_WARNING: [], _ERROR: []}
    for line in lines:
        code, *words = line.words
        if code in said:  # some programs write the message as a comment
            said[code].append(" ".join(words) or line.comment or "no message")
    if said[_ERROR]:
        raise ValueError(
            "The spectrum program calls this point invalid (SPINFO 4): "
            f"{'; '.join(said[_ERROR])[:200]}. Leave it out, or use set_parameters."
        )
    if said[_WARNING]:
        warn(
            f"The spectrum program warns of this point (SPINFO 3): {'; '.join(said[_WARNING])[:200]}.",
            DataWarning,
        )
