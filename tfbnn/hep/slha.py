"""Numbers out of SUSY Les Houches Accord text (Skands et al. 2004, hep-ph/0311123)."""

from collections.abc import Mapping
from typing import Any

from tfbnn.data.csv_tables import is_number
from tfbnn.system.extras import required

Place = tuple[str, *tuple[int, ...]]  # the name of a block, then indices


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


def place_text(place: Place) -> str:
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
        TypeError, ValueError: When the text is none, or entries are missing or not numbers.
    """
    pyslha = required("pyslha", "Reading SLHA needs pyslha", "hep", "use set_parameters")
    if not isinstance(text, str):
        raise TypeError(f"SLHA text must be a str, received {type(text).__name__}.")
    try:
        # Its absence is reported below, by name, where masses are needed.
        blocks = pyslha.readSLHA(text, ignorenomass=True).blocks
    except (pyslha.ParseError, ValueError, LookupError, AssertionError, TypeError) as error:
        raise ValueError(
            f"The text is not SLHA: {type(error).__name__}: {error}. Pass the content of a "
            "spectrum file."
        ) from error
    found = {name: _entry(blocks, place) for name, place in places.items()}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        wanted = ", ".join(f"{place_text(places[name])} ({name})" for name in missing)
        raise ValueError(f"The SLHA text has no entry {wanted}. Add it, or use set_parameters.")
    for name, value in found.items():
        if not is_number(value):
            raise ValueError(
                f"The SLHA entry {place_text(places[name])} ({name}) must be a finite number, "
                f"received {value!r}. Was the spectrum computed?"
            )
    return {name: float(value) for name, value in found.items()}


def _entry(blocks: Mapping[str, Any], place: Place) -> Any:
    name, *indices = place
    if name not in blocks:
        return None
    # pyslha's keys: None without an index, the index itself, or a tuple of several.
    key = tuple(indices) if len(indices) > 1 else next(iter(indices), None)
    return blocks[name].entries.get(key)
