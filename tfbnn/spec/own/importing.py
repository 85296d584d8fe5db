"""Functions and classes of a user by their names, for processes that have to import them.

What is imported is named by the caller, who has it in his hands: a name in a file counts for nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from operator import attrgetter
from typing import Any


def import_name(thing: Any) -> str:
    """Where a function or class is defined, "module:name"; of another callable its class."""
    place = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{place.__module__}:{place.__qualname__}"


def imported(name: str) -> Any:
    """What "module:name" names.

    Raises:
        ImportError, AttributeError: When it is not there.
    """
    module, _, path = name.partition(":")
    return attrgetter(path)(importlib.import_module(module))


def import_obstacle(things: Sequence[Any]) -> str | None:
    """Why another process cannot import some functions or classes by their names, or None."""
    for thing in things:
        name = import_name(thing)
        if name.startswith("__main__:"):
            return f"{name} is in a script or notebook, which other processes do not import"
        try:
            found = imported(name)
        except (ImportError, AttributeError):
            found = None
        if found is not thing:
            kind = "class" if isinstance(thing, type) else "function"
            other = "one made" if kind == "class" else "a lambda or one"
            return f"{name} is no module-level {kind}, as {other} in a function is not"
    return None
