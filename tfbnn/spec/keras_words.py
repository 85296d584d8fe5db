"""How many words the inputs of a Keras model may number, where it looks them up in a table."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=32)
def num_words(architecture: str) -> int | None:
    """Rows of the smallest table of an Embedding on the inputs themselves; None where there is none.

    Args:
        architecture: The config of a Sequential or Functional model, JSON text; others do not say.
    """
    model = json.loads(architecture)
    config = model.get("config") if isinstance(model, dict) else None
    layers = config.get("layers") if isinstance(config, dict) else None
    sizes = [
        config.get("input_dim")
        for kind, config in _on_inputs(layers if isinstance(layers, list) else [])
        if kind == "Embedding"
    ]
    return min((size for size in sizes if isinstance(size, int)), default=None)


def _on_inputs(layers: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the class and config of each layer that receives the inputs."""
    known = [one for one in layers if isinstance(one, dict) and isinstance(one.get("config"), dict)]
    inputs = [one["config"].get("name") for one in known if one.get("class_name") == "InputLayer"]
    others = [one for one in known if one.get("class_name") != "InputLayer"]
    if not any("inbound_nodes" in one for one in known):  # one after the other
        others = others[:1]
    for one in others:
        received = json.dumps(one.get("inbound_nodes"))
        if "inbound_nodes" not in one or any(
            f'"keras_history": [{json.dumps(name)},' in received for name in inputs
        ):
            yield str(one.get("class_name")), one["config"]
