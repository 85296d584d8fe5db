"""Starts that the user gives: checked parameters of every chain, or a size of random weights."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from tfbnn.data.validation import as_float_array, check_number
from tfbnn.engine.basis import seeds
from tfbnn.engine.density.potential import support
from tfbnn.run.definition import InitialState
from tfbnn.run.options import Sampling
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.system.arrays import Array


def given_starts(spec: ModelSpec, asked: Any, sampling: Sampling) -> InitialState:
    """The starts that `initial_state` of `fit_posterior` describes.

    Args:
        spec: ModelSpec.
        asked: What the user passed, not None; or what that came to in a run that goes on.
        sampling: The seed and the number of chains C.

    Raises:
        TypeError: For what holds no numbers.
        ValueError: For a wrong shape, numbers that the dtype does not have, and weights outside the
            box of a Uniform prior.
    """
    if isinstance(asked, InitialState):
        theta, text = asked
    elif isinstance(asked, Real):
        size = check_number("initial_state", asked, minimum=0)
        theta = _draw(spec, size, sampling)
        text = f"drawn at random, weights from N(0, {size:g}^2)"
    else:
        theta = as_float_array(asked, "initial_state")
        text = "where initial_state put them"
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


def _draw(spec: ModelSpec, size: float, sampling: Sampling) -> Array:
    """Weights N(0, size^2) in theta, noise scales and prior scales at their prior's median."""
    layout = spec.layout
    middle = np.zeros(layout.num_parameters)
    if spec.noise_prior is not None:
        middle[layout.log_noise_scale] = np.log(spec.noise_prior.median)
    for prior, _, place in spec.weight_groups():
        if prior.scale_prior is not None:
            middle[place] = np.log(prior.scale_prior.median)
    theta = np.tile(middle, (sampling.num_chains, 1))
    for chain, line in enumerate(theta):
        generator = seeds.generator(sampling.seed, "initial state", chain)
        line[: layout.num_weights] = size * generator.standard_normal(layout.num_weights)
    return theta


def _refuse(spec: ModelSpec, theta: Array, is_bad: Array, wanted: str) -> None:
    """Raises for the first of the numbers that are bad."""
    if not is_bad.any():
        return
    chain, index = map(int, np.argwhere(is_bad)[0])
    raise ValueError(
        f"initial_state must {wanted}, received {theta[chain, index]} as "
        f"{spec.layout.parameter_name(index)} of chain {chain}. Start that chain elsewhere."
    )
