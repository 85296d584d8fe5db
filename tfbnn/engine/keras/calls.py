"""What goes into the layers of a model while it is called, and what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tfbnn.engine.basis.libraries import keras


class Call(NamedTuple):
    """One call of a layer: what it was given, and what it gave."""

    layer: Any
    received: Any
    given: Any


@contextmanager
def recorded_calls(layers: list[Any]) -> Iterator[list[Call]]:
    """While active, calls of these layers are put down in a list.

    A model of any kind can be looked into so, as only some have a graph of their layers. For one
    thread at a time.
    """
    calls: list[Call] = []

    def recording(layer: Any) -> Any:
        original = layer.call

        def call(*arguments: Any, **named: Any) -> Any:
            given = original(*arguments, **named)
            calls.append(Call(layer, arguments[0] if arguments else None, given))
            return given

        return call

    try:
        for layer in layers:
            layer.__dict__["call"] = recording(layer)
        yield calls
    finally:
        for layer in layers:
            layer.__dict__.pop("call", None)


def all_layers(model: Any) -> list[Any]:
    """The model and all layers inside it, those of layers too; Keras has no public way to them."""
    layers: list[Any] = model._flatten_layers(include_self=True, recursive=True)
    return layers


def inner_layers(model: Any) -> list[Any]:
    """All layers inside a model."""
    return all_layers(model)[1:]


def innermost_first(layers: Iterable[Any]) -> list[Any]:
    """Layers around one variable: its own, then those that hold others, too, or hold that one."""

    def size(layer: Any) -> tuple[int, int]:
        return len(layer.variables), len(all_layers(layer))

    return sorted(layers, key=size)


def bare_operations(layers: Iterable[Any]) -> list[Any]:
    """Operations in the graphs of these models that are no layers: `keras.ops`, and sums of outputs."""
    graphs = [layer.operations for layer in layers if hasattr(layer, "operations")]
    return [one for graph in graphs for one in graph if not isinstance(one, keras.layers.Layer)]


def is_seed(variable: Any) -> bool:
    """Whether a variable is the state of a random generator, which decides nothing here."""
    return bool(variable.path.endswith("seed_generator_state"))
