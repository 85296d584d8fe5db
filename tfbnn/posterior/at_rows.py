"""Values of every draw at rows: functions, new observations and densities."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from tfbnn.posterior.checks import check_bytes, checked_points, checked_rows, require_noise
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.metrics import log_jacobian
from tfbnn.posterior.mixture import uniform
from tfbnn.posterior.prediction import inverse_draws, sampled_functions, scale_at
from tfbnn.spec.rows import NetworkRows, Rows, known_beside
from tfbnn.system.arrays import Array


class Points(NamedTuple):
    """Checked rows of a user.

    Attributes:
        x: Inputs [N, D], original units.
        inputs: The same, transformed.
        noise: Known noise scales [N, K], original units, or None.
        rows, transformed: Rows with targets, in original units and on the scale the network sees;
            None if the targets are not known.
    """

    x: Array
    inputs: Array
    noise: Array | None
    rows: Rows | None = None
    transformed: NetworkRows | None = None

    @classmethod
    def checked(
        cls, ensemble: Ensemble, x: Any, y: Any, noise_scale: Any, what: str = "to_arviz of rows"
    ) -> Points:
        """Check the arguments of `to_arviz`, or of the caller that `what` names.

        Raises:
            TypeError, ValueError: If the ensemble cannot take them.
        """
        if y is not None:
            rows, transformed = checked_rows(ensemble, x, y, noise_scale, what)
            return cls(rows.x, transformed.x, rows.noise, rows, transformed)
        matrix, inputs = checked_points(ensemble, x)
        names = ensemble.known.target_names
        noise = known_beside(ensemble.spec, x, noise_scale, names, len(matrix))
        require_noise(ensemble, noise, what)
        return cls(matrix, inputs, noise)


def at_rows(
    ensemble: Ensemble,
    points: Points,
    with_density: bool,
    seed: int,
    fewer: str = "take fewer draws (model.compress(1000))",
) -> tuple[Array, Array, Array | None]:
    """Evaluate every draw at some rows.

    Args:
        ensemble: Ensemble.
        points: The rows.
        with_density: Whether to compute the density of the targets, which then have to be known.
        seed: Seed of the noise. The noise of a row depends on the seed and the row's position
            alone.
        fewer: Advice on fewer draws, for the error message.

    Returns:
        (Predictions without noise [C, S, N, columns], original units, for classes their
        probabilities; one new observation per draw [C, S, N, K], original units, or class numbers;
        log density of the targets of each row together [C, S, N], original units, or None.)

    Raises:
        ValueError: If the arrays exceed the limit of memory.
    """
    spec, shape = ensemble.spec, (ensemble.num_draws, len(points.x))
    columns = spec.num_predicted + spec.num_targets + int(with_density)
    check_bytes(
        f"{shape[0]} draws at {shape[1]} rows take",
        8.0 * columns * shape[0] * shape[1],
        f"Pass some of the rows, or {fewer}.",
    )
    functions = np.empty((*shape, spec.num_predicted))
    observations = np.empty((*shape, spec.num_targets), int if spec.has_classes else float)
    log_likelihood = np.empty(shape) if with_density else None
    for rows, outputs in sampled_functions(ensemble, points.inputs, seed):
        known = None if points.noise is None else points.noise[rows]
        location = spec.likelihood.location(outputs, known)
        function = inverse_draws(ensemble, location)
        functions[:, rows] = function
        levels = _levels(seed, rows, (ensemble.num_draws, spec.num_targets))
        if spec.has_classes:
            observations[:, rows] = _classes(ensemble, function, levels)
        else:
            likelihood = spec.regression_likelihood
            scale = scale_at(ensemble, outputs, location, known)
            noisy = likelihood.noisy(likelihood.noise_quantile(levels), location, scale)
            observations[:, rows] = ensemble.y_pipeline.inverse(noisy)
        if log_likelihood is not None:
            log_likelihood[:, rows] = _log_density(ensemble, points, rows, outputs)
    by_chains = ensemble.by_chains
    density = None if log_likelihood is None else by_chains(log_likelihood)
    return by_chains(functions), by_chains(observations), density


def _levels(seed: int, rows: slice, shape: tuple[int, int]) -> Array:
    """Draw uniform random numbers for rows [C * S, n, K], with a generator for each row."""
    generators = (np.random.default_rng([seed, row]) for row in range(rows.start, rows.stop))
    return np.stack([uniform(generator, shape) for generator in generators], axis=1)


def _classes(ensemble: Ensemble, predicted: Array, levels: Array) -> Array:
    """Draw class numbers from predictions [C * S, n, columns] by levels [C * S, n, K]."""
    by_rows = predicted.reshape(-1, predicted.shape[-1])
    probabilities = ensemble.spec.class_likelihood.class_probabilities(by_rows)
    below = np.cumsum(probabilities, axis=-1)[..., :-1].reshape(*levels.shape, -1)
    return (levels[..., None] > below).sum(axis=-1)


def _log_density(ensemble: Ensemble, points: Points, rows: slice, outputs: Array) -> Array:
    """Compute the log densities [C * S, n] of the targets of some rows, original units."""
    likelihood, known = ensemble.spec.likelihood, cast(NetworkRows, points.transformed)
    noise = None if known.noise is None else known.noise[rows]
    scale = likelihood.scale(outputs, ensemble.log_noise_scale, noise)
    with np.errstate(over="ignore"):  # a prediction may be off by 1e154 deviations
        location = likelihood.location(outputs, noise)
        density = likelihood.log_density(known.y[rows], location, scale)
    return density + log_jacobian(ensemble, cast(Rows, points.rows).y[rows])
