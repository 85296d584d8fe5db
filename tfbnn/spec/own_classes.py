"""User-defined functions and classes in models and files: which exist, and how they are found.

A file names them and holds no code. Built-in classes are looked up in tables. User-defined classes
must be passed by the user, and are never imported because a file names them. Keras is not imported
here either: a user who has a class of layers has imported it already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from math import isfinite
from typing import Any

from tfbnn.data.validation import check_number
from tfbnn.spec.own_densities import CustomNoise, CustomPrior, centre_and_width_of
from tfbnn.spec.settings_json import settings_from_json, settings_to_json


def import_name(thing: Any) -> str:
    """Return where a function, class or other callable's class is defined, as "module:name"."""
    definition = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{definition.__module__}:{definition.__qualname__}"


_LONGEST_NAME = 100


class OwnClassError(ValueError):
    """Raised when a file needs a class that nobody passed; the reader of the file adds its name."""


class Classes(dict[str, type]):
    """A table of classes by their names; a name that is missing is taken for a user-defined class.

    Raises:
        OwnClassError: With the name and what to do.
    """

    def __missing__(self, name: str) -> type:
        if not name.isidentifier() or len(name) > _LONGEST_NAME:
            raise KeyError(name)
        raise OwnClassError(
            f"it uses the custom class {name}, and files hold no code. In Python import the class and "
            f"pass custom=[{name}] to tfbnn.load or tfbnn.resume"
        )


def with_custom(registry: Mapping[str, type], custom: Iterable[Any]) -> Classes:
    """Return a table of classes by their names that includes the user's `custom` classes.

    Classes that no file needs do no harm: a user may pass all that exist.

    Raises:
        TypeError: For anything but classes of priors or noise that a file can name.
        ValueError: For names of built-in classes, and for two classes with one name.
    """
    if isinstance(custom, type) or not isinstance(custom, Iterable):
        raise TypeError(f"custom must be a list of classes, received {custom!r:.200}.")
    own: dict[str, type] = {}
    for cls in custom:
        check_class(cls, registry)
        if own.setdefault(cls.__name__, cls) is not cls:
            raise ValueError(
                f"custom has two classes {cls.__name__}. Files tell them by their names."
            )
    return Classes({**registry, **own})


def check_class(cls: Any, registry: Mapping[str, type]) -> None:
    """Check that an object can be used as a user-defined class.

    Raises:
        TypeError: If it is no class of priors or noise, or no frozen dataclass.
        ValueError: If its name is taken.
    """
    if not (isinstance(cls, type) and issubclass(cls, (CustomPrior, CustomNoise))):
        raise TypeError(
            "custom takes classes that inherit from tfbnn.priors.CustomPrior or "
            f"tfbnn.likelihoods.CustomNoise, received {cls!r:.200}."
        )
    made = vars(cls).get("__dataclass_params__")
    if not (is_dataclass(cls) and made is not None and made.frozen and made.eq):
        raise TypeError(
            f"{cls.__name__} must be a frozen dataclass, so that settings can be compared and kept. "
            "Write @dataclass(frozen=True) above it."
        )
    if cls.__name__ in registry:
        raise ValueError(
            f"{cls.__name__} is the name of a class of tfbnn, and files tell classes by their names. "
            "Choose another name."
        )


def check_settings(settings: CustomPrior | CustomNoise, registry: Mapping[str, type]) -> None:
    """Check that a user-defined prior or likelihood can be sampled, saved and compared.

    Checks that need TensorFlow are done where a fit begins.

    Args:
        settings: The prior or likelihood.
        registry: A table that has its class.

    Raises:
        TypeError, ValueError: With the setting and what to do.
    """
    try:
        hash(settings)
        text = json.dumps(settings_to_json(settings), allow_nan=False)
        again = settings_from_json(json.loads(text), registry)
        if again != settings:
            raise ValueError(f"a file would bring back {again!r:.200}")
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Settings of {type(settings).__name__} must be finite numbers, texts, booleans, None or "
            f"tuples of them, which a file can hold, received {settings!r:.200} ({error})."
        ) from error
    if isinstance(settings, CustomNoise):
        centre_and_width_of(settings)
    else:
        _check_prior(settings)


def _check_prior(prior: CustomPrior) -> None:
    name = type(prior).__name__
    if prior.scale is not None:
        check_number(f"scale of {name}", prior.scale, above=0)
    low, high = prior.limits
    if not low < high or isfinite(low) != isfinite(high):
        raise ValueError(
            f"limits of {name} must be two finite ascending numbers, or minus and plus infinity, "
            f"received {(low, high)}."
        )
    if not (isfinite(prior.spread) and prior.spread > 0.0):
        raise ValueError(
            f"{name}.sample must give draws of some spread, found {prior.spread} for half of the "
            "central 68 %. Is its `shape` left unused?"
        )


_known: dict[str, type] = {}


def is_of_keras(kind: type) -> bool:
    """Check whether a class is one of Keras' own."""
    return kind.__module__.partition(".")[0] == "keras"


def is_layer(kind: Any) -> bool:
    """Check whether an object is a class that inherits from a class of Keras."""
    return isinstance(kind, type) and any(map(is_of_keras, kind.__mro__))


def remember(kinds: Iterable[type]) -> tuple[str, ...]:
    """Remember classes for this process, and return their names, by which files refer to them."""
    named = {import_name(kind): kind for kind in kinds}
    _known.update(named)
    return tuple(sorted(named))


def without_layers(custom: Any) -> Any:
    """Return a user's `custom` classes without classes of layers, which are remembered."""
    if isinstance(custom, type) or not isinstance(custom, Iterable):
        return custom  # refused where the other classes are checked
    custom = tuple(custom)
    remember(filter(is_layer, custom))
    return tuple(one for one in custom if not is_layer(one))


def known_layers(names: Sequence[str]) -> tuple[type, ...]:
    """Return the classes with these names that were passed last.

    Raises:
        OwnClassError: With the names of classes that nobody has passed in this process.
    """
    missing = [name for name in names if name not in _known]
    if missing:
        raise OwnClassError(
            f"The Keras model has custom layers: {', '.join(missing)}. Files hold no code: import or "
            "define the classes, and pass them as tfbnn.load(path, custom=[Class])"
        )
    return tuple(_known[name] for name in names)
