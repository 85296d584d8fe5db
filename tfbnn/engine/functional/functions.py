"""The functions that a caller brings, tried at the starts before anything is compiled for long."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import no_rows
from tfbnn.engine.density.function_density import FunctionDensity
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient
from tfbnn.spec.density_spec import DensitySpec, Function, name_of
from tfbnn.system.arrays import Array

_PARTS = ("log_prior", "log_likelihood")
# What a function of a batch and of one of its rows may differ by, in float32.
_RTOL, _ATOL = 1e-4, 1e-4


def make_density_spec(log_prob: Any, theta: Array) -> DensitySpec:
    """The spec of what was passed as `log_prob`, found to work at the starts theta [C, P].

    Raises:
        TypeError: For what is no function, or no function of TensorFlow.
        ValueError: For values of another shape, and rows that depend on each other.
    """
    is_pair = isinstance(log_prob, (tuple, list))
    functions = tuple(log_prob) if is_pair else (log_prob,)
    if len(functions) != (2 if is_pair else 1) or not all(map(callable, functions)):
        raise TypeError(
            "log_prob must be a function [C, P] -> [C], or a pair (log_prior, log_likelihood) of "
            f"them, received {log_prob!r}."
        )
    for label, function in zip(_PARTS if is_pair else ("log_prob",), functions):
        _check(label, function, theta)
    names = tuple(map(name_of, functions))
    return DensitySpec(names, theta.shape[1], theta.dtype.name, functions)


def log_prob_at(spec: DensitySpec, theta: Array) -> Array:
    """The log density [C] at theta [C, P], by the program that the chains use as well."""
    return make_value_and_gradient(FunctionDensity(spec), no_rows(spec.dtype))(theta)[0]


def _check(label: str, function: Function, theta: Array) -> None:
    points = tf.constant(theta)
    with tf.GradientTape() as tape:
        tape.watch(points)
        value = function(points)
    expected = f"{label} must return a tensor [C] for positions [C, P] = {list(theta.shape)}"
    if not tf.is_tensor(value):
        raise TypeError(
            f"{expected}, received {type(value).__name__}. Compute with TensorFlow's operations, so "
            "that it has gradients."
        )
    if tuple(value.shape) != theta.shape[:1]:
        raise ValueError(
            f"{expected}, received shape {list(value.shape)}. Sum over the last axis alone: "
            "tf.reduce_sum(..., axis=-1)."
        )
    if not value.dtype.is_floating:
        raise TypeError(f"{expected}, of floating point, received {value.dtype.name}.")
    if tape.gradient(value, points) is None:
        raise TypeError(
            f"{label} must depend on its argument by TensorFlow's operations, found no gradient. Were "
            "its values computed with NumPy?"
        )
    alone = np.concatenate([function(points[chain : chain + 1]) for chain in range(len(theta))])
    if not np.allclose(alone, value.numpy(), rtol=_RTOL, atol=_ATOL, equal_nan=True):
        chain = int(np.argmax(np.abs(alone - value.numpy())))
        raise ValueError(
            f"{label} must treat every chain by itself, received {value.numpy()[chain]} for chain "
            f"{chain} beside the others and {alone[chain]} for it alone. Sum over the last axis "
            "alone: tf.reduce_sum(..., axis=-1)."
        )
