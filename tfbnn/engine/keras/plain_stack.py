"""Recognises a plain stack of Dense layers: today's perceptron, in Keras' words."""

from __future__ import annotations

from typing import Any

from tfbnn.engine.basis.libraries import keras
from tfbnn.engine.keras.calls import bare_operations
from tfbnn.spec.other_libraries import activation_name

_OFF = ("Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise", "ActivityRegularization")


def plain_stack(model: Any) -> tuple[list[int], list[str]] | None:
    """(Widths from inputs to outputs, an activation for each hidden layer) of a model that is nothing but such a stack, else None.

    All its layers are Dense, with a bias and trainable, up to activations by themselves and what is
    off outside training; its last one has no activation.
    """
    layers = _chain(model)
    if layers is None:
        return None
    sizes: list[int] = []
    activations: list[str | None] = []
    for layer in layers:
        kind = type(layer)
        if kind is keras.layers.Dense:
            if not (layer.use_bias and all(one.trainable for one in layer.variables)):
                return None
            sizes.append(layer.units)
            activations.append(_name(layer.activation))
        elif kind is keras.layers.Activation and activations and activations[-1] == "identity":
            activations[-1] = _name(layer.activation)
        elif not (kind.__name__ in _OFF and kind is getattr(keras.layers, kind.__name__)):
            return None
    known = [name for name in activations if name is not None]
    if not sizes or len(known) < len(activations) or known[-1] != "identity":
        return None
    return [model.input_shape[1], *sizes], known[:-1]


def _chain(model: Any) -> list[Any] | None:
    """The layers of a model of Keras' own kinds, each of which is called once; else None.

    Without one that joins several, as none of a plain stack does, they are a chain: nor may there be
    operations that are no layers, `keras.ops` and sums of outputs.
    """
    if type(model) is not keras.Sequential and type(model).__name__ != "Functional":
        return None
    layers = [one for one in model.layers if type(one) is not keras.layers.InputLayer]
    is_called_again = any(len(one._inbound_nodes) > 1 for one in layers)
    has_rows_of_numbers = len(model.input_shape) == 2 and model.input_shape[1] is not None
    is_chain = has_rows_of_numbers and not is_called_again and not bare_operations([model])
    return layers if is_chain else None


def _name(activation: Any) -> str | None:
    """The name that a perceptron has for an activation, or None."""
    name = activation_name(activation)
    return name if isinstance(name, str) else None
