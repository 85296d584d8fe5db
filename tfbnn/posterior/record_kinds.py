"""Kinds of entries of records in files, so that a file is checked when it is read."""

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
        words: Description for messages, such as "a text".
        holds: Function that returns whether a value from JSON is of this kind.
    """

    words: str
    holds: Callable[[Any], bool]


def list_of(kind: Kind, words: str) -> Kind:
    """Return the kind of a list whose entries are of another kind."""
    return Kind(words, lambda value: isinstance(value, list) and all(map(kind.holds, value)))


def integer(words: str, least: int, most: float = 2**63 - 1) -> Kind:
    """Return the kind of an integer from `least` to `most`."""
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

Kinds = Mapping[str, Any]  # name -> Kind, or Kinds of a nested object
# Annotations of the fields of records.
Count: TypeAlias = Annotated[int, COUNT]
Positive: TypeAlias = Annotated[int, POSITIVE]
Counts: TypeAlias = Annotated[list[int], COUNTS]
Number: TypeAlias = Annotated[float, NUMBER]
Size: TypeAlias = Annotated[float, SIZE]
_OF_TYPES = {str: TEXT, bool: FLAG, list[str]: TEXTS, dict: OBJECT}


def kinds_of(record: type) -> dict[str, Any]:
    """Return the Kinds of the entries of a dataclass or TypedDict, from its annotations."""
    hints = get_type_hints(record, include_extras=True)
    return {name: _kind(hint) for name, hint in hints.items()}


def _kind(hint: Any) -> Any:
    """Return the Kind or Kinds of an annotation, for X | None that of X; None if there is none."""
    origin = get_origin(hint)
    if origin is Annotated:
        return hint.__metadata__[0]
    if origin in (Union, UnionType):
        return _kind(get_args(hint)[0])
    return kinds_of(hint) if is_typeddict(hint) else _OF_TYPES.get(hint, _OF_TYPES.get(origin))


def check_entries(name: str, found: Any, kinds: Kinds) -> None:
    """Check that a value is an object with exactly the entries of `kinds`.

    Args:
        name: Name of the value in messages.
        found: Value from JSON.
        kinds: Kinds of its entries.

    Raises:
        TypeError: For an entry of another kind; the message names the first one.
    """
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        raise TypeError(
            f"{name} must be an object with the entries {', '.join(kinds)}, found {found!r:.99}."
        )
    for entry, kind in kinds.items():
        check_entry(f"{name}.{entry}", found[entry], kind)


def check_entry(name: str, found: Any, kind: Any) -> None:
    """Check that a value is of a Kind, or an object whose entries are of Kinds."""
    if not isinstance(kind, Kind):
        check_entries(name, found, kind)
    elif not kind.holds(found):
        raise TypeError(f"{name} must be {kind.words}, found {found!r:.99}.")
