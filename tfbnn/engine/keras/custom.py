"""Classes of layers that users bring: remembered by name, and never imported because a file says so."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

_known: dict[str, type] = {}


def name_of_class(kind: type) -> str:
    """Where a class is defined, "module:name"."""
    return f"{kind.__module__}:{kind.__qualname__}"


def is_of_keras(kind: type) -> bool:
    """Whether a class is one of Keras' own."""
    return kind.__module__.partition(".")[0] == "keras"


def remember(kinds: Iterable[type]) -> tuple[str, ...]:
    """Names of the classes, by which models in files find them from now on in this process."""
    named = {name_of_class(kind): kind for kind in kinds}
    _known.update(named)
    return tuple(sorted(named))


def import_classes(names: Sequence[str]) -> None:
    """Imports and remembers classes that the caller names because it trusts them.

    Raises:
        ImportError, AttributeError: When one is not there.
    """
    remember(_imported(name) for name in names)


def import_obstacle(names: Sequence[str]) -> str | None:
    """Why another process cannot import one of the classes, or None."""
    for name in names:
        if name.startswith("__main__:"):
            return f"{name} is in a script or notebook, which other processes do not import"
        try:
            found = _imported(name)
        except (ImportError, AttributeError):
            found = None
        if found is not _known.get(name):
            return f"{name} is not defined in its module itself, as one in a function is not"
    return None


def known_classes(names: Sequence[str]) -> dict[str, type]:
    """The classes by their names in a model's config.

    Raises:
        ValueError: Names those that nobody has brought in this process.
    """
    missing = [name for name in names if name not in _known]
    if missing:
        raise ValueError(
            f"The Keras model has layers of classes that are not Keras' own: {', '.join(missing)}. A "
            "file names them and never brings them: import or define them, and pass them as "
            "tfbnn.load(path, custom=[Class])."
        )
    return {_known[name].__name__: _known[name] for name in names}


def _imported(name: str) -> Any:
    module, _, path = name.partition(":")
    return attrgetter(path)(importlib.import_module(module))
