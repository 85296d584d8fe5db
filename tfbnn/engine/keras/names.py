"""Names that Keras gave to layers of its own accord, counted anew for each model.

Keras counts layers per process: the same code makes "dense" and, run again, "dense_1". Without this the
two would be different models, whose draws could not go from one to the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any


def counted_anew(named: list[tuple[str, str]]) -> dict[str, str]:
    """Dict name -> the name it has in a process that made no other model, where that differs.

    Args:
        named: (class name, name) of all layers and operations.
    """
    # In the order in which they were made, which is not that of a graph, or of layers in a model.
    given = dict.fromkeys(
        sorted((name for kind, name in named if _is_given(kind, name)), key=_number)
    )
    taken = {name for _, name in named} - given.keys()
    numbers: dict[str, Iterator[int]] = {}
    anew = {}
    for name in given:
        start = stem(name)
        candidates = (
            f"{start}_{number}" if number else start
            for number in numbers.setdefault(start, count())
        )
        anew[name] = next(one for one in candidates if one not in taken)
    return {name: other for name, other in anew.items() if other != name}


def named_in(config: Any) -> Iterator[tuple[str, str]]:
    """(class name, name) of all that a config has, in its order."""
    if isinstance(config, dict):
        inner = config.get("config")
        if isinstance(inner, dict) and {"class_name", "inbound_nodes"} <= config.keys():
            yield str(config["class_name"]), str(inner.get("name"))
        for value in config.values():
            yield from named_in(value)
    elif isinstance(config, list):
        for value in config:
            yield from named_in(value)


def renamed(config: Any, names: Mapping[str, str]) -> Any:
    """A config with other names, wherever it has one of these."""
    if isinstance(config, dict):
        return {key: renamed(value, names) for key, value in config.items()}
    if isinstance(config, list):
        return [renamed(value, names) for value in config]
    return names.get(config, config) if isinstance(config, str) else config


def renamed_path(path: str, names: Mapping[str, str]) -> str:
    """The path of a variable, "layer/name", with other names of layers."""
    return "/".join(names.get(part, part) for part in path.split("/"))


def _is_given(kind: str, name: str) -> bool:
    """Whether it is one that Keras makes of the name of a class: "max_pooling2d_3"."""
    return stem(name).replace("_", "") == kind.replace("_", "").lower()


def _number(name: str) -> int:
    """The number that Keras counts by, of the first none."""
    return int(name[len(stem(name)) + 1 :] or 0)


def stem(name: str) -> str:
    """A name without the number that Keras counts by."""
    return re.sub(r"_\d+$", "", name)
