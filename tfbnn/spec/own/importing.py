"""Names of functions and classes of a user, as files and messages have them."""

from __future__ import annotations

from typing import Any


def import_name(thing: Any) -> str:
    """Where a function or class is defined, "module:name"; of another callable its class."""
    place = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{place.__module__}:{place.__qualname__}"
