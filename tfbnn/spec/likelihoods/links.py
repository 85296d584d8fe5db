"""The one table of inverse links, which make predictions out of locations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tfbnn.system.arrays import Array


class Link(NamedTuple):
    """One inverse link wherever it is computed.

    Attributes:
        numpy: Locations [..., K] -> predictions of the same shape.
        tangent: (predictions [..., K], tangents of the locations [..., K]) -> those of the predictions.
        tensorflow: (tensorflow module, locations [S, K, n]) -> predictions of the same shape.
        onnx: (op, name of locations [S, K, n]) -> name of the predictions, where op(kind, *inputs)
            adds an operation of the ONNX standard.
    """

    numpy: Callable[[Array], Array]
    tangent: Callable[[Array, Array], Array]
    tensorflow: Callable[[Any, Any], Any]
    onnx: Callable[[Callable[..., str], str], str]


def log_softmax(logits: Array) -> Array:
    """Log probabilities [..., M] out of logits [..., M]."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    normalised: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return normalised


def _softmax_tangent(p: Array, tangent: Array) -> Array:
    change: Array = p * (tangent - np.sum(p * tangent, axis=-1, keepdims=True))
    return change


LINKS = {
    "identity": Link(lambda f: f, lambda p, tangent: tangent, lambda tf, f: f, lambda op, f: f),
    "sigmoid": Link(
        lambda f: np.exp(-np.logaddexp(0.0, -f)),
        lambda p, tangent: p * (1.0 - p) * tangent,
        lambda tf, f: tf.sigmoid(f),
        lambda op, f: op("Sigmoid", f),
    ),
    "softmax": Link(
        lambda f: np.exp(log_softmax(f)),
        _softmax_tangent,
        lambda tf, f: tf.nn.softmax(f, axis=1),
        lambda op, f: op("Softmax", f, axis=1),
    ),
}
