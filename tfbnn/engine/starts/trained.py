"""Starts at the weights of a Keras model: those that Keras has trained."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np

from tfbnn.engine.keras.describing import describe
from tfbnn.engine.keras.making import check_keras_model, plain_stack
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows, evenly_spaced
from tfbnn.system.arrays import Array

# Rows that tell the size of the noise, and the smallest noise that they may tell, in standard
# deviations of standardised targets.
_MOST_ROWS, _LEAST_NOISE = 4096, 1e-3
# Times its prior's median by which a scale may start larger or smaller.
_FARTHEST = 10.0
# Times the variance of targets that a network on their scale may miss them by, squared, however weak.
_LARGEST_MISFIT = 4.0


def trained_weights(spec: NetworkSpec, model: Any) -> list[Array]:
    """The weights of a Keras model, an array for each of `spec.weight_groups()`.

    Raises:
        TypeError, ValueError: For a model that is not the one that is sampled.
    """
    check_keras_model(model)
    if not isinstance(spec, KerasSpec):
        stack = plain_stack(model)
        here = list(spec.layer_sizes), list(spec.activations)
        if stack is None or here != (stack.layer_sizes, stack.activations):
            _refuse(model, f"a stack of Dense layers {here[0]} with {here[1]}")
        return [one.numpy() for one in model.trainable_variables]
    described = describe(model, spec.facts.input_shape)
    if described.architecture != spec.architecture:
        _refuse(model, "the Keras model that is sampled, with the layers that were trainable then")
    values = {one.index: value for one, value in zip(described.variables, described.values)}
    for one in spec.frozen:
        if not np.array_equal(values[one.index], one.array):
            _refuse(
                model, f"as it was in {one.path!r}, which is not sampled: make BayesianModel anew"
            )
    return [values[one.index] for one in spec.sampled]


def _refuse(model: Any, wanted: str) -> None:
    raise ValueError(
        f"initial_state must be {wanted}; received the Keras model {model.name!r}, which differs. Pass "
        "the model of which this one was made, after its training."
    )


def start_at(spec: NetworkSpec, model: Any, rows: NetworkRows, theta: Array) -> Array:
    """Parameters [P] whose network is the Keras model.

    Args:
        spec: NetworkSpec.
        model: The Keras model; it maps transformed inputs to transformed targets.
        rows: Training rows, which tell the noise: the size of the residuals.
        theta: Parameters [P] at the medians of their priors, for what neither tells. Scales of priors
            are the root mean square of their weights.

    Raises:
        TypeError, ValueError: For a model that is not the one that is sampled, or was trained on rows
            of another scale.
    """
    theta = theta.copy()
    fan_ins = [one.fan_in for one in getattr(spec, "sampled", ())]
    for index, ((prior, place, scales), weights) in enumerate(
        zip(spec.weight_groups(), trained_weights(spec, model))
    ):
        fan_in = fan_ins[index] if fan_ins else prod(weights.shape[:-1])
        weights = weights.astype(np.float64) * (sqrt(fan_in) if spec.is_ntk else 1.0)
        scale = 1.0 if prior.scale is None else np.ravel(prior.scale)
        if prior.scale_prior is not None:
            lines = weights.reshape(scales.stop - scales.start, -1)
            median = prior.scale_prior.median
            found = np.sqrt(np.mean(lines**2, axis=1))
            found = np.clip(found, median / _FARTHEST, median * _FARTHEST)
            theta[scales] = np.log(found)
            scale = np.repeat(found, lines.shape[1])
        theta[place] = weights.ravel() / (scale if spec.is_ntk else 1.0)
    if not spec.has_classes:
        _start_noise(spec, model, rows, theta)
    return theta


def _start_noise(spec: NetworkSpec, model: Any, rows: NetworkRows, theta: Array) -> None:
    """Noise scales of the size of the residuals."""
    some = evenly_spaced(len(rows.x), _MOST_ROWS)
    x, y = rows.x[some], rows.y[some]
    shape = spec.facts.input_shape if isinstance(spec, KerasSpec) else x.shape[1:]
    given = model(x.reshape(-1, *shape).astype(model.dtype), training=False).numpy()
    residuals = y - given[:, : y.shape[1]]
    squares = np.mean(residuals**2, axis=0)
    largest = _LARGEST_MISFIT * y.var(axis=0).sum()
    if (spec.x_transform or spec.y_transform) and squares.sum() > largest:
        raise ValueError(
            "initial_state must fit rows as the network sees them, received a Keras model that misses "
            f"them by far more than their mean does: x_transform is {list(spec.x_transform)}, y_transform "
            f"{list(spec.y_transform)}. Train it on such rows, or make both transforms None."
        )
    place = theta[spec.layout.log_noise_scale]  # a view
    if spec.noise_prior is not None and len(place):
        found = squares if len(place) == len(squares) else squares.mean()
        place[:] = np.log(np.maximum(np.sqrt(found), _LEAST_NOISE))
