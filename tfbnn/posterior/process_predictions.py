"""Predictions of draws of infinite width: pointwise, joint, and for left-out rows of the fit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import cast

import numpy as np

from tfbnn.posterior.conditioned import MOST_AVERAGED, Conditioned, GivenRows, conditioned, moments
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.limit_kernels import covariance, input_slopes
from tfbnn.system.arrays import Array, read_only
from tfbnn.system.threads import on_all_cores
from tfbnn.system.triangular import triangular_product

# Most draws whose means at up to 200 points are cached.
_MOST_REMEMBERED = 10_000
# Most points at which functions are drawn together.
MOST_TOGETHER = 4000
# Jitter as powers of ten, relative to the largest variance of the prior. Functions drawn together are
# smooth, so that their covariance may need it; the first with which a Cholesky factor exists is used.
_JITTERS = range(-12, -5)


def process_outputs(ensemble: Ensemble, x: Array) -> Array:
    """Compute means, then standard deviations, of the functions of all draws: [C * S, 2 K, n].

    Args:
        ensemble: Ensemble of infinite width.
        x: Transformed inputs [n, D].
    """
    spec, given = _parts(ensemble)
    return _of_draws(ensemble, lambda draw: moments(spec, draw, given, x))


def means_of_chains(ensemble: Ensemble, x: Array) -> Array:
    """Compute the means of all draws' functions: [C * S, n, K].

    Each is conditioned on the rows that theta was sampled on.
    """
    spec, given = _parts(ensemble)
    points = x.tobytes()
    found = on_all_cores(
        lambda theta: _mean_of_draw(spec, theta.tobytes(), given, points), list(ensemble.flat)
    )
    return np.stack(found)


@lru_cache(maxsize=_MOST_REMEMBERED)  # a run checks its draws repeatedly
def _mean_of_draw(spec: InfiniteSpec, theta: bytes, given: GivenRows, points: bytes) -> Array:
    """Compute one entry of `means_of_chains` [n, K]; arrays are passed as bytes."""
    indices = spec.indices_of_chains(len(given.x))
    seen = given if indices is None else given.taken(indices)
    draw = conditioned(spec, np.frombuffer(theta), seen)
    x = np.frombuffer(points).reshape(-1, seen.x.shape[1])
    prior = covariance(spec.activations, draw.layers, seen.x, x).c
    whole = [white @ root @ prior for white, root in zip(draw.white, draw.roots)]
    return read_only(np.stack(whole, axis=1))


def exactly_left_out(
    ensemble: Ensemble, indices: Array, row_groups: Array | None = None
) -> tuple[Array, Array]:
    """Predict rows of the fit without themselves: mean and standard deviation with noise, [n, K] each.

    Let P = K^-1, noise included. Without themselves, rows g are normal around y_g - P_gg^-1 (P y)_g
    with the covariance P_gg^-1 (Rasmussen and Williams 2006, eq. 5.12). Draws of theta have seen
    these rows, and are weighted by the inverse of the density of the rows without them.

    Args:
        ensemble: Ensemble of infinite width.
        indices: Positions of the rows among the given ones [n].
        row_groups: Groups of rows that are left out together [n], numbered from 0; None: each row
            by itself.
    """
    spec, given = _parts(ensemble)
    labels = np.arange(len(indices)) if row_groups is None else row_groups
    blocks = [np.flatnonzero(labels == label) for label in np.unique(labels)]

    def without(draw: Conditioned) -> Array:
        found = np.empty((3, spec.num_targets, len(indices)))
        for target, (root, white) in enumerate(zip(draw.roots, draw.white)):
            precision, solved = root.T @ root, white @ root
            for block in blocks:
                rows = indices[block]
                part = precision[np.ix_(rows, rows)]
                covariance_left = np.linalg.inv(part)
                off = covariance_left @ solved[rows]
                density = 0.5 * np.linalg.slogdet(part)[1] - 0.5 * solved[rows] @ off
                found[0, target, block] = given.y[rows, target] - off
                found[1, target, block] = np.diagonal(covariance_left)
                found[2, target, block] = density
        return found

    mean, variance, density = np.moveaxis(_of_draws(ensemble, without), 1, 0)
    density = density.sum(axis=1, keepdims=True)  # all targets of a draw share one theta
    weights = ensemble.draw_weights[:, None, None] * np.exp(density.min(axis=0) - density)
    weights = weights / weights.sum(axis=0)
    average = np.sum(weights * mean, axis=0)
    spread = np.sqrt(np.sum(weights * (variance + np.square(mean - average)), axis=0))
    return average.T, spread.T


def sampled_outputs(ensemble: Ensemble, x: Array, seed: int) -> Array:
    """Draw a function of each draw at all inputs together, and zeros for its spread: [C * S, 2 K, n].

    Args:
        ensemble: Ensemble of infinite width; without rows its functions are those of the prior.
        x: Transformed inputs [n, D].
        seed: Seed of the functions.

    Raises:
        ValueError: For more than 4000 points.
    """
    if len(x) > MOST_TOGETHER:
        raise ValueError(
            f"Functions of infinite width are drawn at up to {MOST_TOGETHER} points together, received "
            f"{len(x)}. Pass fewer points; predict gives means and deviations of any number."
        )
    spec, given = cast(InfiniteSpec, ensemble.spec), ensemble.given
    zeros = np.zeros((spec.num_targets, len(x)))

    def function(item: tuple[int, Array]) -> Array:
        number, theta = item
        layers = spec.layer_variances(theta)
        prior = covariance(spec.activations, layers, x, x).c
        draw = None if given is None else conditioned(spec, theta, given)
        across = None if given is None else covariance(spec.activations, layers, given.x, x).c
        values = []
        for target in range(spec.num_targets):
            mean, left = zeros[target], prior
            if draw is not None and across is not None:
                white = triangular_product(draw.roots[target], across)
                mean, left = draw.white[target] @ white, prior - white.T @ white
            root = _root(left, float(np.diagonal(prior).max()))
            normals = np.random.default_rng([seed, number, target]).standard_normal(len(x))
            values.append(mean + root @ normals)
        return np.concatenate([np.stack(values), zeros])

    return np.stack(on_all_cores(function, list(enumerate(ensemble.flat))))


def process_gradients(ensemble: Ensemble, x: Array) -> tuple[Array, Array]:
    """Compute mean and variance [M, n, K, D] of the derivatives of each draw in transformed x [n, D].

    Targets are in original units. If they are affine in the function f, derivatives are normal. If
    "log10" makes them exp(k f), f and its derivative are jointly normal.
    """
    spec, given = _parts(ensemble)
    pipeline = ensemble.y_pipeline

    def slopes(draw: Conditioned) -> Array:
        prior = covariance(spec.activations, draw.layers, x, given.x)
        at = covariance(spec.activations, draw.layers, given.x, x)
        inputs = input_slopes(spec.activations, draw.layers, x, given.x, prior.stages)
        found = np.empty((2, len(x), spec.num_targets, x.shape[1]))
        means = moments(spec, draw, given, x)
        location, spread = (part.T for part in np.split(means, 2))
        values = pipeline.inverse(location)
        units = 1.0 / pipeline.derivative(values)  # change of a target per unit of the function
        for target, (root, white) in enumerate(zip(draw.roots, draw.white)):
            across = triangular_product(root, at.c)
            for column, of_c in enumerate(inputs.of_c):
                turned = triangular_product(root, of_c.T)
                mean = white @ turned
                variance = np.maximum(inputs.mixed[column] - np.square(turned).sum(axis=0), 0.0)
                shared = inputs.of_value[column] - np.einsum("ij,ij->j", across, turned)
                unit = units[:, target]
                if not pipeline.is_affine:
                    growth = unit / values[:, target]
                    squares = np.square(growth * spread[:, target])
                    mean = mean + growth * shared
                    variance = np.exp(squares) * (variance + np.square(mean + growth * shared))
                    variance -= np.square(mean)
                    unit = unit * np.exp(0.5 * squares)
                found[:, :, target, column] = unit * mean, np.square(unit) * variance
        return found

    mean, variance = np.moveaxis(_of_draws(ensemble, slopes), 1, 0)
    return mean, variance


def _parts(ensemble: Ensemble) -> tuple[InfiniteSpec, GivenRows]:
    return cast(InfiniteSpec, ensemble.spec), cast(GivenRows, ensemble.given)


def _of_draws(ensemble: Ensemble, function: Callable[[Conditioned], Array]) -> Array:
    """Apply a function to every draw conditioned on the rows; few draws cache this."""
    spec, given = _parts(ensemble)
    if ensemble.num_draws <= MOST_AVERAGED:
        return np.stack(on_all_cores(function, ensemble.conditioned_draws))
    found = on_all_cores(
        lambda theta: function(conditioned(spec, theta, given)), list(ensemble.flat)
    )
    return np.stack(found)


def _root(matrix: Array, largest: float) -> Array:
    """Compute a Cholesky factor of a covariance that rounding may have left indefinite."""
    for power in _JITTERS:
        jitter = largest * 10.0**power * np.eye(len(matrix))
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(matrix + jitter)
    raise np.linalg.LinAlgError("The covariance of the function is not positive definite.")
