"""Kinds of entries of records in files, so that nobody who shows them is surprised."""

from collections.abc import Callable, Mapping
from sys import float_info
from types import UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)


class Kind(NamedTuple):
    """Kind of an entry.

    Attributes:
        words: For messages: "a text".
        holds: Whether a value out of JSON is one.
    """

    words: str
    holds: Callable[[Any], bool]


def list_of(kind: Kind, words: str) -> Kind:
    """Return lists of a kind."""
    return Kind(words, lambda value: isinstance(value, list) and all(map(kind.holds, value)))


def integer(words: str, least: int, most: float = 2**63 - 1) -> Kind:
    """Integers from `least` to `most`."""
    return Kind(f"an integer, {words}", lambda value: type(value) is int and least <= value <= most)


def _is_number(value: Any) -> bool:
    # An integer of JSON may be too large for a float.
    return type(value) in (int, float) and abs(value) <= float_info.max


TEXT = Kind("a text", lambda value: isinstance(value, str))
TEXTS = list_of(TEXT, "a list of texts")
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
COUNT, POSITIVE = integer("0 or more", 0), integer("1 or more", 1)
COUNTS = list_of(COUNT, "a list of counts")
NUMBER = Kind("a finite number", _is_number)
SIZE = Kind("a number, 0 or more", lambda value: _is_number(value) and value >= 0)
OBJECT = Kind("an object", lambda value: isinstance(value, dict))

Kinds = Mapping[str, Any]  # name -> Kind, or Kinds of an object in turn
# As annotations of records.
Count: TypeAlias = Annotated[int, COUNT]
Positive: TypeAlias = Annotated[int, POSITIVE]
Counts: TypeAlias = Annotated[list[int], COUNTS]
Number: TypeAlias = Annotated[float, NUMBER]
Size: TypeAlias = Annotated[float, SIZE]
_OF_TYPES = {str: TEXT, bool: FLAG, list[str]: TEXTS, dict: OBJECT}


def kinds_of(record: type) -> dict[str, Any]:
    """Return the Kinds of the entries of a dataclass or TypedDict, by their annotations."""
    hints = get_type_hints(record, include_extras=True)
    return {name: _kind(hint) for name, hint in hints.items()}


def _kind(hint: Any) -> Any:
    """Return the Kind, or Kinds, of an annotation; of X | None that of X, and None of what has none."""
    origin = get_origin(hint)
    if origin is Annotated:
        return hint.__metadata__[0]
    if origin in (Union, UnionType):
        return _kind(get_args(hint)[0])
    return kinds_of(hint) if is_typeddict(hint) else _OF_TYPES.get(hint, _OF_TYPES.get(origin))


def check_entries(name: str, found: Any, kinds: Kinds) -> None:
    """Refuse what is no object with exactly these entries.

    Args:
        name: What messages call it.
        found: Out of JSON.
        kinds: Its entries.

    Raises:
        TypeError: Names the first that is something else.
    """
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        raise TypeError(
            f"{name} must be an object with the entries {', '.join(kinds)}, found {found!r:.99}."
        )
    for entry, kind in kinds.items():
        check_entry(f"{name}.{entry}", found[entry], kind)


def check_entry(name: str, found: Any, kind: Any) -> None:
    """Refuse a value that is not of a Kind, or an object that is not of Kinds; see above."""
    if not isinstance(kind, Kind):
        check_entries(name, found, kind)
    elif not kind.holds(found):
        raise TypeError(f"{name} must be {kind.words}, found {found!r:.99}.")
