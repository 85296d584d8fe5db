"""Whether the variables that a spec names are those of its architecture, found before they are made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tfbnn.engine.keras.names import stem


@dataclass(frozen=True)
class Place:
    """A variable that a spec names: its path, its place among the model's variables, its shape."""

    path: str
    index: int
    shape: tuple[int, ...]


def is_seed(variable: Any) -> bool:
    """Whether a variable is the state of a random generator, which decides nothing here."""
    return bool(variable.path.endswith("seed_generator_state"))


def check_variables(model: Any, architecture: str, places: Iterable[Place]) -> None:
    """Refuses a spec whose variables are not those of its model, all of them.

    Args:
        model: Built out of the architecture; its variables need no values.
        architecture: Its config, JSON text.
        places: Of all variables that the spec names, sampled or not.

    Raises:
        ValueError: Names the first that differs.
    """
    named = {one.index: one for one in places}
    own = {
        index: Place(one.path, index, tuple(one.shape))
        for index, one in enumerate(model.variables)
        if not is_seed(one)
    }
    names = set(_names(json.loads(architecture)))
    for index in sorted(own.keys() | named.keys()):
        expected, found = own.get(index), named.get(index)
        if expected is None or found is None or not _agree(found, expected, names):
            raise ValueError(
                "the variables are not those of the Keras model's architecture: expected "
                f"{_text(expected)}, found {_text(found)}."
            )


def _text(place: Place | None) -> str:
    if place is None:
        return "none"
    return f"{place.path!r:.200} of shape {list(place.shape)} at {place.index}"


def _agree(found: Place, expected: Place, names: set[str]) -> bool:
    """Whether shapes are the same, and paths as far as both name the layers around.

    Names that Keras gives by itself, and no config holds, are counted on from model to model.
    """
    ours, own = (
        [part if part in names else stem(part) for part in one.path.split("/")]
        for one in (found, expected)
    )
    shared = min(len(ours), len(own))
    is_named = shared >= min(2, len(own)) and ours[-shared:] == own[-shared:]
    return is_named and found.shape == expected.shape


def _names(config: Any) -> Iterator[str]:
    """Names of layers in a config."""
    if isinstance(config, dict):
        if isinstance(config.get("name"), str):
            yield config["name"]
        config = list(config.values())
    if isinstance(config, list):
        for one in config:
            yield from _names(one)
