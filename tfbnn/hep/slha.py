"""Numbers out of SUSY Les Houches Accord text (Skands et al. 2004, hep-ph/0311123)."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tfbnn.data.numbers import is_number
from tfbnn.system.extras import required

Place = tuple[str, *tuple[int, ...]]  # the name of a block, then indices

_INDEX = re.compile(r"-?[0-9]+")
_HEADER = re.compile(r"block\s+(?P<name>\w+)(\s+q\s*=\s*(?P<scale>\S+))?", re.IGNORECASE)


def check_place(place: Any) -> Place:
    """The place of a number, (block, index, ..), as a tuple; the name of the block in capitals.

    Raises:
        TypeError: For anything but a name followed by integers.
    """
    sound = isinstance(place, (tuple, list)) and place and isinstance(place[0], str)
    if not (sound and all(type(index) is int for index in place[1:])):
        raise TypeError(
            "An SLHA place must be the name of a block followed by integer indices, such as "
            f"('MASS', 1000022) or ('NMIX', 1, 1), received {place!r}."
        )
    return (place[0].upper(), *place[1:])


def place_of_text(text: str) -> Place:
    """The place that `place_text` wrote.

    Raises:
        TypeError: For anything but the name of a block followed by integers.
    """
    name, *indices = text.split() or [""]
    if not all(_INDEX.fullmatch(index) for index in indices):
        raise TypeError(
            f"An SLHA place must be like 'MASS 1000022' or 'NMIX 1 1', received {text!r}."
        )
    return check_place((name, *map(int, indices)))


def place_text(place: Iterable[str | int]) -> str:
    """A place as it stands in a file: 'NMIX 1 1'."""
    return " ".join(map(str, place))


def read_places(text: str, places: Mapping[str, Place]) -> dict[str, float]:
    """Reads numbers; needs the package pyslha.

    Args:
        text: SLHA text.
        places: Dict name -> (block, index, ..).

    Returns:
        Dict name -> float.

    Raises:
        ImportError: When pyslha is not installed.
        TypeError, ValueError: When the text is none, or entries are missing, there more than once,
            or not plain numbers.
    """
    pyslha = required("pyslha", "Reading SLHA needs pyslha", "hep", "use set_parameters")
    if not isinstance(text, str):
        raise TypeError(f"SLHA text must be a str, received {type(text).__name__}.")
    try:
        # The absence of masses is reported below, by name, where they are needed.
        pyslha.readSLHA(text, ignorenomass=True)
    except Exception as error:
        # It evaluates what it reads, and fails of what others made of it in every way there is.
        raise ValueError(
            f"The text is not SLHA: {type(error).__name__}: {error!s:.200}. Pass the content of a "
            "spectrum file."
        ) from error
    written = _written(text)
    found = {name: written.get(place_text(place), []) for name, place in places.items()}
    missing = [name for name, entries in found.items() if not entries]
    if missing:
        wanted = ", ".join(f"{place_text(places[name])} ({name})" for name in missing)
        raise ValueError(f"The SLHA text has no entry {wanted}. Add it, or use set_parameters.")
    for name, entries in found.items():
        place = f"{place_text(places[name])} ({name})"
        if len(entries) > 1:
            raise ValueError(
                f"The SLHA text has {len(entries)} entries {place}: {', '.join(map(str, entries))}. Keep the "
                "one that was meant, or use set_parameters."
            )
        if not is_number(entries[0].value):
            raise ValueError(
                f"The SLHA entry {place} must be a finite number, received {entries[0].value!r}. "
                "Was the spectrum computed?"
            )
    return {name: float(entries[0].value) for name, entries in found.items()}


class _Entry(NamedTuple):
    """What stands at a place, and the scale of its block."""

    value: str
    scale: str | None

    def __str__(self) -> str:
        return self.value if self.scale is None else f"{self.value} at Q = {self.scale}"


def _written(text: str) -> dict[str, list[_Entry]]:
    """All entries of blocks, dict text of the place -> those there, as they stand in the text.

    pyslha keeps the last of several, also of blocks at several scales, and takes values for Python:
    1_2 is 12, and 0x10 is 16.
    """
    found: dict[str, list[_Entry]] = {}
    header = None
    for line in text.splitlines():
        line = line.partition("#")[0].rstrip()
        if line and not line[0].isspace():
            header = _HEADER.match(line)
        elif line and header:
            *indices, value = line.split()
            place = place_text((header["name"].upper(), *indices))
            found.setdefault(place, []).append(_Entry(value, header["scale"]))
    return found
