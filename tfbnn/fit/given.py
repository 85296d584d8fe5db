"""Starts given by the user: parameters, a scale for random weights, draws or a trained Keras model."""

from __future__ import annotations

from math import prod, sqrt
from numbers import Real
from typing import Any

import numpy as np

from tfbnn.data.validation import as_float_array, check_number
from tfbnn.engine.basis import seeds
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.keras.describing import describe
from tfbnn.engine.keras.spec_of_model import check_keras_model, plain_stack
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.run.config import Starts
from tfbnn.run.options import Sampling
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.model_spec import perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.own_classes import is_layer
from tfbnn.spec.priors import WeightPrior
from tfbnn.spec.rows import NetworkRows, evenly_spaced
from tfbnn.system.arrays import Array

# Largest number of rows from which the noise is estimated, and the smallest noise scale to start with, in
# standard deviations of standardised targets.
_MOST_ROWS, _LEAST_NOISE = 4096, 1e-3
# Largest factor between the start of a prior scale and the median of its prior, in both directions.
_FARTHEST = 10.0
# Largest squared error, in units of the variance of the targets, of a network on the scale of the targets.
_LARGEST_MISFIT = 4.0


def given_starts(
    spec: NetworkSpec, asked: Any, sampling: Sampling, rows: NetworkRows | None = None
) -> Starts:
    """Return the starts that `initial_state` of `fit_posterior` describes.

    Args:
        spec: NetworkSpec.
        asked: The value that the user passed, not None; a fitted model is passed as its Ensemble. In a
            resumed run, the Starts made from it.
        sampling: The seed and the number of chains C.
        rows: Training rows, needed for a Keras model.

    Raises:
        TypeError: For values that are not numbers.
        ValueError: For a wrong shape, numbers out of the range of the dtype, and weights outside the box
            of a Uniform prior.
    """
    if isinstance(asked, np.ndarray) and asked.ndim == 0:
        asked = asked.item()
    if isinstance(asked, Starts):
        theta, text = asked.theta, asked.text
    elif isinstance(asked, Real):
        size = check_number("initial_state", asked, minimum=0)
        theta = _draw(spec, size, sampling)
        text = f"drawn at random: weights from N(0, {size:g}^2)"
    elif isinstance(asked, Ensemble):
        theta = _last_draws(spec, asked, sampling.num_chains)
        text = "the last draws of another model"
    elif is_layer(type(asked)):
        theta = np.tile(start_at(spec, asked, rows, _middle(spec)), (sampling.num_chains, 1))
        text = f"the weights of the Keras model {asked.name!r}"
    else:
        theta = as_float_array(asked, "initial_state")
        text = "given as initial_state"
    shape = (sampling.num_chains, spec.layout.num_parameters)
    if theta.shape != shape:
        raise ValueError(
            f"initial_state must have shape {list(shape)}, a line of parameters for each chain, "
            f"received {list(theta.shape)}. Take draws of model.posterior.draws, or a number."
        )
    with np.errstate(over="ignore"):  # numbers that become infinite are refused below
        theta = theta.astype(spec.dtype)
    _refuse(spec, theta, ~np.isfinite(theta), f"be finite in {spec.dtype}")
    low, high = (end.astype(spec.dtype) for end in Potential(spec).limits)
    _refuse(spec, theta, (theta < low) | (theta > high), "lie inside the box of its Uniform prior")
    return Starts.given(theta, text)


def _draw(spec: NetworkSpec, size: float, sampling: Sampling) -> Array:
    """Draw weights from N(0, size^2) in theta. Noise and prior scales are at the medians of their priors."""
    theta = np.tile(_middle(spec), (sampling.num_chains, 1))
    for chain, line in enumerate(theta[:, : spec.layout.num_weights]):
        generator = seeds.generator(sampling.seed, "initial state", chain)
        line[:] = size * generator.standard_normal(len(line))
    return theta


def _middle(spec: NetworkSpec) -> Array:
    """Return theta [P] with zero weights, and noise and prior scales at the medians of their priors."""
    theta = np.zeros(spec.layout.num_parameters)
    if spec.noise_prior is not None:
        theta[spec.layout.log_noise_scale] = np.log(spec.noise_prior.median)
    for prior, _, scale_span in spec.weight_groups():
        if prior.scale_prior is not None:
            theta[scale_span] = np.log(prior.scale_prior.median)
    return theta


def _last_draws(spec: NetworkSpec, ensemble: Ensemble, num_chains: int) -> Array:
    """Return the last draws of an ensemble as parameters [C, P] of the same functions under this prior.

    Chains of positive weight are used in turn.
    """
    ensemble.require_networks("initial_state")
    layout, there = spec.layout, ensemble.spec
    used = np.flatnonzero(ensemble.chain_weights > 0)
    last = ensemble.draws[used[np.arange(num_chains) % len(used)], -1].astype(np.float64)
    theta = np.tile(_middle(spec), (num_chains, 1))
    theta[:, : layout.log_noise_scale.stop] = last[:, : layout.log_noise_scale.stop]
    for (prior, span, scales), (other, _, others) in zip(
        spec.weight_groups(), there.weight_groups()
    ):
        if scales.stop - scales.start == others.stop - others.start:
            theta[:, scales] = last[:, others]
        if spec.is_ntk:  # scales multiply the weights in the network
            theta[:, span] *= _scales(other, last[:, others], span)
            theta[:, span] /= _scales(prior, theta[:, scales], span)
    return theta


def _scales(prior: WeightPrior, logs: Array, span: slice) -> Array | float:
    """Return the factor that ntk takes out of the weights of a slice: a number, or sampled scales [C, n]."""
    if prior.scale_prior is None:
        return prior.scale or 1.0
    return np.repeat(np.exp(logs), (span.stop - span.start) // logs.shape[1], axis=1)


def _refuse(spec: NetworkSpec, theta: Array, is_bad: Array, wanted: str) -> None:
    """Raise ValueError for the first bad number, if there is one."""
    if not is_bad.any():
        return
    chain, index = map(int, np.argwhere(is_bad)[0])
    raise ValueError(
        f"initial_state must {wanted}, received {theta[chain, index]} as "
        f"{spec.layout.parameter_name(index)} of chain {chain}. Start that chain elsewhere."
    )


def trained_weights(spec: NetworkSpec, model: Any) -> list[Array]:
    """Return the weights of a Keras model, an array for each of `spec.weight_groups()`.

    Raises:
        TypeError, ValueError: For a model other than the one that is sampled.
    """
    check_keras_model(model)
    if not isinstance(spec, KerasSpec):
        model_spec = perceptron(spec, "initial_state")
        here = list(model_spec.layer_sizes), list(model_spec.activations)
        if plain_stack(model) != here:
            _refuse_model(model, f"a stack of Dense layers {here[0]} with {here[1]}")
        return [one.numpy() for one in model.trainable_variables]
    described = describe(model, spec.facts.input_shape)
    if described.architecture != spec.architecture:
        _refuse_model(
            model, "the Keras model that is sampled, with the layers that were trainable then"
        )
    values = {one.index: value for one, value in zip(described.variables, described.values)}
    for one in spec.frozen:
        if not np.array_equal(values[one.index], one.array):
            _refuse_model(
                model, f"as it was in {one.path!r}, which is not sampled: make BayesianModel anew"
            )
    return [values[one.index] for one in spec.sampled]


def _refuse_model(model: Any, wanted: str) -> None:
    raise ValueError(
        f"initial_state must be {wanted}; received the Keras model {model.name!r}, which differs. Pass "
        "the model of which this one was made, after its training."
    )


def start_at(spec: NetworkSpec, model: Any, rows: NetworkRows | None, theta: Array) -> Array:
    """Return the parameters [P] whose network is the Keras model.

    Args:
        spec: NetworkSpec.
        model: The Keras model; it maps transformed inputs to transformed targets.
        rows: Training rows. Their residuals set the noise scales.
        theta: Parameters [P] at the medians of their priors, for values that neither model nor rows
            determine. Prior scales are set to the root mean square of their weights.

    Raises:
        TypeError, ValueError: For a model other than the one that is sampled, or one that was trained on
            rows of another scale.
    """
    theta = theta.copy()
    fan_ins = [one.fan_in for one in getattr(spec, "sampled", ())]
    for index, ((prior, span, scales), weights) in enumerate(
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
        theta[span] = weights.ravel() / (scale if spec.is_ntk else 1.0)
    if rows is not None and spec.has_additive_noise:
        _start_noise(spec, model, rows, theta)
    return theta


def _start_noise(spec: NetworkSpec, model: Any, rows: NetworkRows, theta: Array) -> None:
    """Set the noise scales in theta to the size of the residuals."""
    some = evenly_spaced(len(rows.x), _MOST_ROWS)
    x, y = rows.x[some], rows.y[some]
    shape = spec.facts.input_shape if isinstance(spec, KerasSpec) else x.shape[1:]
    given = model(x.reshape(-1, *shape).astype(model.dtype), training=False).numpy()
    residuals = y - given[:, : y.shape[1]]
    squares = np.mean(residuals**2, axis=0)
    largest = _LARGEST_MISFIT * y.var(axis=0).sum()
    if (spec.x_transform or spec.y_transform) and squares.sum() > largest:
        raise ValueError(
            "initial_state must predict transformed rows, received a Keras model that misses them by "
            f"far, with x_transform={list(spec.x_transform)} and y_transform={list(spec.y_transform)}. "
            "Train it on transformed rows, or make both transforms None."
        )
    log_scales = theta[spec.layout.log_noise_scale]  # a view
    if spec.noise_prior is not None and len(log_scales):
        found = squares if len(log_scales) == len(squares) else squares.mean()
        log_scales[:] = np.log(np.maximum(np.sqrt(found), _LEAST_NOISE))
