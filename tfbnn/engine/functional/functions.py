"""The functions that a caller brings, tried at the starts before anything is compiled for long."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.spec.density_spec import DensitySpec, Function
from tfbnn.spec.own_classes import import_name
from tfbnn.system.arrays import Array

_PARTS = ("log_prior", "log_likelihood")
# What a function of a batch and of one of its rows may differ by, relative, in float32; so far from the
# starts, which may be equal, so many chains are tried.
_TOLERANCE, _SPREAD, _MOST_PROBED = 1e-4, 0.01, 4


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
    names = tuple(map(import_name, functions))
    return DensitySpec(names, theta.shape[1], theta.dtype.name, functions, object())


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
    _check_independence(label, function, theta)


def _check_independence(label: str, function: Function, theta: Array) -> None:
    """Refuses a function whose value for one chain depends on the others, at points near the starts."""
    spread = _SPREAD * (1.0 + np.abs(theta))
    offsets = np.random.default_rng(0).standard_normal(theta.shape)
    points = tf.constant((theta + spread * offsets)[:_MOST_PROBED].astype(theta.dtype))
    beside = function(points).numpy()
    alone = np.concatenate([function(points[chain : chain + 1]) for chain in range(len(points))])
    is_finite = np.isfinite(beside) & np.isfinite(alone)
    gaps = np.where(is_finite, np.abs(beside - alone), 0.0)
    if np.max(gaps) > _TOLERANCE * (1.0 + np.max(np.abs(beside[is_finite]), initial=0.0)):
        chain = int(np.argmax(gaps))
        raise ValueError(
            f"{label} must treat every chain by itself, received {beside[chain]} for chain {chain} "
            f"beside others and {alone[chain]} for it alone. Sum over the last axis alone: "
            "tf.reduce_sum(..., axis=-1)."
        )
