"""Classes of Keras layers that users bring: remembered by name, and never imported because a file says so.

Keras is not imported here: whoever has such a class has done so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tfbnn.spec.own.classes import OwnClassError
from tfbnn.spec.own.importing import import_name

_known: dict[str, type] = {}


def is_of_keras(kind: type) -> bool:
    """Whether a class is one of Keras' own."""
    return kind.__module__.partition(".")[0] == "keras"


def is_layer(kind: Any) -> bool:
    """Whether something is a class that inherits from one of Keras."""
    return isinstance(kind, type) and any(map(is_of_keras, kind.__mro__))


def remember(kinds: Iterable[type]) -> tuple[str, ...]:
    """Names of the classes, by which models in files find them from now on in this process."""
    named = {import_name(kind): kind for kind in kinds}
    _known.update(named)
    return tuple(sorted(named))


def without_layers(custom: Any) -> Any:
    """What a user passes as `custom` without classes of layers, which are remembered."""
    if isinstance(custom, type) or not isinstance(custom, Iterable):
        return custom  # which whoever looks at the others refuses
    custom = tuple(custom)
    remember(filter(is_layer, custom))
    return tuple(one for one in custom if not is_layer(one))


def known_layers(names: Sequence[str]) -> tuple[type, ...]:
    """The classes of these names, as they were brought last.

    Raises:
        OwnClassError: Names those that nobody has brought in this process.
    """
    missing = [name for name in names if name not in _known]
    if missing:
        raise OwnClassError(
            f"The Keras model has layers of classes that are not Keras' own: {', '.join(missing)}. A "
            "file names them and never brings them: import or define them, and pass them as "
            "tfbnn.load(path, custom=[Class])"
        )
    return tuple(_known[name] for name in names)
