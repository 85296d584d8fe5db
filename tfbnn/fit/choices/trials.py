"""Short fits by ADAM to parts of the rows, by which networks are compared before one is sampled."""

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

# The seed is not that of the fit: refits of the same rows choose the same.
_LEARNING_RATE, _NUM_LOOKS, _SEED = 0.01, 4, 0
# Rows of a step: an epoch has so many steps, within these limits.
_STEPS_PER_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 32, 32, 256
_WORST = -1e6
# Factors that noise scales are tried with.
_FACTORS = np.exp(np.linspace(-2.0, 2.0, 81))


class Trial(NamedTuple):
    """Networks of one spec, and what rows say that they were not fitted to.

    Attributes:
        spec: NetworkSpec.
        theta: Parameters [F, P]: a network for each of F folds.
        log_density: Of every row that was held out [n], on the scale the network sees.
        squares: Squared error of these [n], the mean over targets; 0 of classes.
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
    """Fit a network to the rows outside each fold, and judge it by those inside, at the best of four looks.

    Args:
        spec: ModelSpec.
        rows: NetworkRows.
        folds: The fold in which each row is held out [N], numbered from 0.
        num_steps: Steps of ADAM, a multiple of four.
        jit_compile: Whether XLA compiles the steps.
        before: A trial of the same layers and twice as many steps, and of the same noise or one scale for all
            rows, to go on from; by default from draws of the prior.
    """
    num_folds, data = folds.max() + 1, make_data(*rows, spec.dtype)
    if before is None:
        theta = with_residual_noise(spec, draw_prior(spec, _SEED, num_folds), data)
    else:
        theta, there = before.theta, one_noise(spec)
        if there is not None and before.spec.likelihood == there.likelihood:
            theta = with_noise_by_inputs(spec, there, theta)
    batch = np.clip(len(rows.x) // _STEPS_PER_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH)
    # With room for as many steps as the trial before it made, twice as many, its program serves again.
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
    return max(
        (
            judged(
                spec,
                theta,
                _outputs(spec, theta, rows.x)[folds, np.arange(len(folds))],
                rows,
                folds,
            )
            for theta in seen.numpy()
        ),
        key=lambda trial: trial.log_density.mean(),
    )


def judged(
    spec: NetworkSpec, theta: Array, outputs: Array, rows: NetworkRows, folds: Array
) -> Trial:
    """Return what the rows of each fold say of the network that has not seen them.

    Args:
        spec: NetworkSpec.
        theta: Networks of the folds [F, P].
        outputs: At each row, of the network of its fold [n, num_outputs], float64.
        rows: NetworkRows.
        folds: Of each row [n].
    """
    log_scales = theta[folds, spec.layout.log_noise_scale].astype(np.float64)
    if spec.has_classes:
        density = spec.likelihood.log_density(rows.y, spec.likelihood.location(outputs))
        return Trial(spec, theta, density, np.zeros(len(density)))
    noise = spec.regression_likelihood
    location = noise.location(outputs, rows.noise)
    # A network for each row, which has its own scale.
    row_noise = None if rows.noise is None else rows.noise[:, None]
    scale = noise.scale(outputs[:, None], log_scales, row_noise)
    scale = np.broadcast_to(scale, location[:, None].shape)[:, 0]
    # What follows its rows closely has too small a noise; sampled networks do not, and are calibrated.
    factors = _FACTORS if noise.learns_noise else np.ones(1)
    densities = [noise.log_densities(rows.y, location, factor * scale) for factor in factors]
    density = max(densities, key=np.sum)
    # Single rows, and networks that have overflowed, are bad enough.
    density = np.maximum(np.nan_to_num(density, nan=-np.inf), _WORST).sum(axis=1)
    return Trial(spec, theta, density, np.mean((rows.y - location) ** 2, axis=1))


def _outputs(spec: ModelSpec, theta: Array, x: Array) -> Array:
    """Return outputs [F, N, num_outputs] of networks [F, P] at transformed inputs [N, D], float64."""
    inputs = tf.constant(x.T.astype(spec.dtype))
    found = awaited(network_outputs, spec, tf.constant(theta), inputs).numpy()
    return np.moveaxis(found.astype(np.float64), 1, 2)
