"""Brief fits by ADAM to parts of the rows, used to compare networks before one is sampled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.starts.adam import make_adam_steps, start_adam
from tfbnn.engine.starts.check import draw_prior, with_residual_noise
from tfbnn.engine.starts.noise_by_inputs import one_noise, with_noise_by_inputs
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited

# The seed does not depend on that of the fit, so that refits of the same rows make the same choice.
_LEARNING_RATE, _NUM_LOOKS, _SEED = 0.01, 4, 0
# Steps per epoch, and limits on the rows per step.
_STEPS_PER_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 32, 32, 256
_WORST = -1e6
# Factors by which noise scales are multiplied; the best is used.
_FACTORS = np.exp(np.linspace(-2.0, 2.0, 81))


class Trial(NamedTuple):
    """Networks of one spec, and their scores on rows to which they were not fitted.

    Attributes:
        spec: NetworkSpec.
        theta: Parameters [F, P]: a network for each of F folds.
        log_density: Log density of each held-out row [n], on the scale the network sees.
        squares: Squared error of each row [n], averaged over targets; 0 for classes.
    """

    spec: Any
    theta: Array
    log_density: Array
    squares: Array


def fit_trial(
    spec: ModelSpec,
    rows: NetworkRows,
    folds: Array,
    num_steps: int,
    jit_compile: bool,
    before: Trial | None = None,
) -> Trial:
    """Fit a network to the rows outside each fold, and score it on the rows inside.

    The best of four checkpoints on the way is kept.

    Args:
        spec: ModelSpec.
        rows: NetworkRows.
        folds: The fold in which each row is held out [N], numbered from 0.
        num_steps: Steps of ADAM, a multiple of four.
        jit_compile: Whether XLA compiles the steps.
        before: A trial to continue, with the same layers, twice as many steps, and the same noise or one
            scale for all rows. Default: start from draws of the prior.
    """
    num_folds, data = folds.max() + 1, make_data(*rows, spec.dtype)
    if before is None:
        theta = with_residual_noise(spec, draw_prior(spec, _SEED, num_folds), data)
    else:
        theta, there = before.theta, one_noise(spec)
        if there is not None and before.spec.likelihood == there.likelihood:
            theta = with_noise_by_inputs(spec, there, theta)
    batch = np.clip(len(rows.x) // _STEPS_PER_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH)
    # The arrays have room for the steps of the earlier trial, twice as many, so its program is reused.
    room = num_steps if before is None else 2 * num_steps
    indices = np.zeros((room, num_folds, batch), np.int32)
    for fold in range(num_folds):
        generator = seeds.generator(_SEED, "trial", fold)
        fitted = np.flatnonzero(folds != fold)
        epochs = -(-num_steps * batch // len(fitted))
        orders = np.concatenate([generator.permutation(fitted) for _ in range(epochs)])
        indices[:num_steps, fold] = orders[: num_steps * batch].reshape(num_steps, batch)
    steps = make_adam_steps(spec, _LEARNING_RATE, "cosine", int(batch), _NUM_LOOKS, jit_compile)
    control = tf.constant([0, _NUM_LOOKS, num_steps // _NUM_LOOKS, num_steps])
    _, seen = awaited(steps, start_adam(theta), data, tf.constant(indices), control)
    held_out = folds, np.arange(len(folds))
    trials = [
        judged(spec, theta, _outputs(spec, theta, rows.x)[held_out], rows, folds)
        for theta in seen.numpy()
    ]
    return max(trials, key=lambda trial: trial.log_density.mean())


def judged(
    spec: NetworkSpec, theta: Array, outputs: Array, rows: NetworkRows, folds: Array
) -> Trial:
    """Return the Trial of networks, scored on the rows of the folds they were not fitted to.

    Args:
        spec: NetworkSpec.
        theta: Networks of the folds [F, P].
        outputs: Outputs at each row, of the network of its fold [n, num_outputs], float64.
        rows: NetworkRows.
        folds: Fold of each row [n].
    """
    log_scales = theta[folds, spec.layout.log_noise_scale].astype(np.float64)
    if spec.has_classes:
        density = spec.likelihood.log_density(rows.y, spec.likelihood.location(outputs))
        return Trial(spec, theta, density, np.zeros(len(density)))
    noise = spec.regression_likelihood
    location = noise.location(outputs, rows.noise)
    # Each row is treated as a network of its own, as each has its own scale.
    row_noise = None if rows.noise is None else rows.noise[:, None]
    scale = noise.scale(outputs[:, None], log_scales, row_noise)
    scale = np.broadcast_to(scale, location[:, None].shape)[:, 0]
    # An optimised network follows its rows closely, so its noise is too small. A common factor corrects
    # this; sampled networks do not need it, and are calibrated.
    factors = _FACTORS if noise.learns_noise else np.ones(1)
    densities = [noise.log_densities(rows.y, location, factor * scale) for factor in factors]
    density = max(densities, key=np.sum)
    # A lower bound limits the effect of single rows and of networks that have overflowed.
    density = np.maximum(np.nan_to_num(density, nan=-np.inf), _WORST).sum(axis=1)
    return Trial(spec, theta, density, np.mean((rows.y - location) ** 2, axis=1))


def _outputs(spec: ModelSpec, theta: Array, x: Array) -> Array:
    """Return outputs [F, N, num_outputs] of networks [F, P] at transformed inputs [N, D], float64."""
    inputs = tf.constant(x.T.astype(spec.dtype))
    found = awaited(network_outputs, spec, tf.constant(theta), inputs).numpy()
    return np.moveaxis(found.astype(np.float64), 1, 2)
