"""Starts that the user gives: parameters, the size of random weights, or the draws of a model."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from tfbnn.data.validation import as_float_array, check_number
from tfbnn.engine.basis import seeds
from tfbnn.engine.density.potential import support
from tfbnn.engine.starts.trained import start_at
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.run.definition import InitialState
from tfbnn.run.options import Sampling
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.own_classes import is_layer
from tfbnn.spec.priors import WeightPrior
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array


def given_starts(
    spec: NetworkSpec, asked: Any, sampling: Sampling, rows: NetworkRows | None = None
) -> InitialState:
    """The starts that `initial_state` of `fit_posterior` describes.

    Args:
        spec: NetworkSpec.
        asked: What the user passed, not None, but the Ensemble of a fitted model; or what that came to in a
            run that goes on.
        sampling: The seed and the number of chains C.
        rows: Training rows, where it may be a Keras model.

    Raises:
        TypeError: For what holds no numbers.
        ValueError: For a wrong shape, numbers that the dtype does not have, and weights outside the
            box of a Uniform prior.
    """
    if isinstance(asked, np.ndarray) and asked.ndim == 0:
        asked = asked.item()
    if isinstance(asked, InitialState):
        theta, text = asked
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
    with np.errstate(over="ignore"):  # what becomes infinite is refused below
        theta = theta.astype(spec.dtype)
    _refuse(spec, theta, ~np.isfinite(theta), f"be finite in {spec.dtype}")
    low, high = (end.astype(spec.dtype) for end in support(spec))
    _refuse(spec, theta, (theta < low) | (theta > high), "lie inside the box of its Uniform prior")
    return InitialState(theta, text)


def _draw(spec: NetworkSpec, size: float, sampling: Sampling) -> Array:
    """Weights N(0, size^2) in theta, noise scales and prior scales at their prior's median."""
    theta = np.tile(_middle(spec), (sampling.num_chains, 1))
    for chain, line in enumerate(theta[:, : spec.layout.num_weights]):
        generator = seeds.generator(sampling.seed, "initial state", chain)
        line[:] = size * generator.standard_normal(len(line))
    return theta


def _middle(spec: NetworkSpec) -> Array:
    """Theta [P] of weights zero, noise scales and prior scales at their prior's median."""
    theta = np.zeros(spec.layout.num_parameters)
    if spec.noise_prior is not None:
        theta[spec.layout.log_noise_scale] = np.log(spec.noise_prior.median)
    for prior, _, place in spec.weight_groups():
        if prior.scale_prior is not None:
            theta[place] = np.log(prior.scale_prior.median)
    return theta


def _last_draws(spec: NetworkSpec, ensemble: Ensemble, num_chains: int) -> Array:
    """Of its chains that have a weight, in turn, as parameters [C, P] of the same functions under this prior."""
    ensemble.require_networks("initial_state")
    layout, there = spec.layout, ensemble.spec
    used = np.flatnonzero(ensemble.chain_weights > 0)
    last = ensemble.draws[used[np.arange(num_chains) % len(used)], -1].astype(np.float64)
    theta = np.tile(_middle(spec), (num_chains, 1))
    theta[:, : layout.log_noise_scale.stop] = last[:, : layout.log_noise_scale.stop]
    for (prior, place, scales), (other, _, others) in zip(
        spec.weight_groups(), there.weight_groups()
    ):
        if scales.stop - scales.start == others.stop - others.start:
            theta[:, scales] = last[:, others]
        if spec.is_ntk:  # scales multiply the weights in the network
            theta[:, place] *= _scales(other, last[:, others], place)
            theta[:, place] /= _scales(prior, theta[:, scales], place)
    return theta


def _scales(prior: WeightPrior, logs: Array, place: slice) -> Array | float:
    """What ntk takes out of the weights at a place: one number, or sampled ones [C, their number]."""
    if prior.scale_prior is None:
        return prior.scale or 1.0
    return np.repeat(np.exp(logs), (place.stop - place.start) // logs.shape[1], axis=1)


def _refuse(spec: NetworkSpec, theta: Array, is_bad: Array, wanted: str) -> None:
    """Raises for the first of the numbers that are bad."""
    if not is_bad.any():
        return
    chain, index = map(int, np.argwhere(is_bad)[0])
    raise ValueError(
        f"initial_state must {wanted}, received {theta[chain, index]} as "
        f"{spec.layout.parameter_name(index)} of chain {chain}. Start that chain elsewhere."
    )
