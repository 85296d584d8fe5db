"""Predictions with NumPy alone: tiled forward passes and summaries over draws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tfbnn.posterior.averages import moments, weighted_quantiles
from tfbnn.posterior.calibration.calibration import central_levels
from tfbnn.posterior.calibration.misfit_features import calibrated_at
from tfbnn.posterior.checks import check_bytes
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.forward import forward_pass, network_outputs
from tfbnn.posterior.function_moments import judging_networks, moment_networks, moments_of_target
from tfbnn.posterior.mixture import NOISE_POINTS, Mixture
from tfbnn.posterior.prediction_frame import Prediction
from tfbnn.posterior.process_predictions import means_of_chains, sampled_outputs
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array, row_slices
from tfbnn.system.threads import on_all_cores

# Size of a tile of rows: its draws x rows, its least and most rows, and its largest number of draws
# x rows x outputs. It has to outweigh the calls of NumPy, fit into the processor's cache, and bound
# memory.
_TILE_POINTS = 131_072
_TILE_ROWS = (128, 1024)
_TILE_VALUES = 4_000_000
# Tiles that share a forward pass, as longer rows make faster products; and the fewest passes that
# are made, to keep all threads busy.
_TILES_PER_PASS = 4
_LEAST_PASSES = 8
# Quantiles beyond this probability are exact: points are off by .1 of the deviation at .00135, and end at
# 1 / NOISE_POINTS.
_TAIL = 0.02


class Summary(NamedTuple):
    """Request for a summary of the predictive distribution; see `BayesianMLP.predict`."""

    include_noise: bool = False
    quantiles: Sequence[float] | None = None
    space: str = "original"
    calibrated: bool = False


def function_draws(ensemble: Ensemble, x: Array) -> Array:
    """Compute noise-free predictions of all draws: x [N, D] -> [C * S, N, K], both transformed.

    For classes they are logits, which are unbounded and so suit diagnostics better than
    probabilities.
    """
    outputs = np.moveaxis(network_outputs(ensemble, x), 1, 2)
    return ensemble.spec.likelihood.location(outputs).astype(np.float64)


def function_of_chains(ensemble: Ensemble, x: Array | None = None) -> Array:
    """Compute the function values by which chains are compared: [C, S, R, K].

    Args:
        ensemble: Ensemble.
        x: Transformed inputs [R, D], by default the reference inputs saved with the ensemble.
    """
    if x is None:
        x = ensemble.x_pipeline.forward(ensemble.x_reference)
    if isinstance(ensemble.spec, InfiniteSpec):
        return ensemble.by_chains(means_of_chains(ensemble, x))
    return ensemble.by_chains(function_draws(ensemble, x))


def functions_together(ensemble: Ensemble, x: Array, space: str = "transformed") -> Array:
    """Compute the functions of all draws at x [N, D]; those of infinite width are drawn jointly.

    Raises:
        ValueError: If the arrays exceed the limit of memory.
    """
    shape = ensemble.num_draws, len(x), ensemble.spec.num_predicted
    what = f"{shape[0]} draws at {shape[1]} rows take"
    check_bytes(what, 8.0 * math.prod(shape), "Pass some of the rows.")
    location = ensemble.spec.likelihood.location
    inverse = partial(inverse_draws, ensemble) if space == "original" else np.asarray
    found = np.empty(shape)
    for rows, outputs in sampled_functions(ensemble, x):
        found[:, rows] = inverse(location(outputs))
    return found


def sampled_functions(ensemble: Ensemble, x: Array, seed: int = 0) -> Iterator[tuple[slice, Array]]:
    """Iterate over tiles of rows as `output_tiles` does, with sampled functions for infinite width.

    Functions of infinite width are drawn at all rows together, in a single tile.

    Args:
        ensemble: Ensemble.
        x: Inputs [N, D], transformed.
        seed: Seed of the sampled functions.
    """
    if isinstance(ensemble.spec, InfiniteSpec):
        yield slice(0, len(x)), _by_rows(sampled_outputs(ensemble, x, seed))
    else:
        yield from output_tiles(ensemble, x)


def inverse_draws(ensemble: Ensemble, location: Array) -> Array:
    """Return locations [..., K] in original units; for classes their probabilities."""
    return ensemble.y_pipeline.inverse(ensemble.spec.likelihood.inverse_link(location))


def row_tiles(ensemble: Ensemble, num_rows: int) -> list[slice]:
    """Split rows into slices small enough for all draws at once; the slices depend on sizes alone."""
    points = max(ensemble.num_draws, NOISE_POINTS) * ensemble.spec.num_outputs
    least, most = _TILE_ROWS
    step = min(max(least, _TILE_POINTS // ensemble.num_draws), most)
    return row_slices(num_rows, max(1, min(step, _TILE_VALUES // points)))


class TargetTile(NamedTuple):
    """Predictions of all draws for some rows with known targets, on the scale the network sees.

    Attributes:
        span: Slice or indices of the rows.
        location: Locations of all draws [C * S, n, K].
        fitted: Noise scales of the likelihood; a known noise scale is transformed at the target.
        predicted: Noise scales of a prediction, which knows no target; a known noise scale is
            transformed at the prediction of each draw. Both scales are broadcastable to `location`,
            equal if the transform is affine, and None for classes.
        spread: Standard deviations of the function of each draw, which are part of both scales, or
            None if it has none.
    """

    span: slice | Array
    location: Array
    fitted: Any
    predicted: Any
    spread: Any = None


def target_tiles(ensemble: Ensemble, rows: NetworkRows) -> Iterator[TargetTile]:
    """Iterate over tiles of rows with known targets.

    Args:
        ensemble: Ensemble.
        rows: Rows on the scale the network sees.
    """
    likelihood, pipeline = ensemble.spec.likelihood, ensemble.y_pipeline
    original = None
    if rows.noise is not None and not pipeline.is_affine:
        original = rows.noise / np.abs(pipeline.derivative(pipeline.inverse(rows.y)))
    for span, outputs in output_tiles(ensemble, rows.x):
        known = None if rows.noise is None else rows.noise[span]
        location = likelihood.location(outputs, known)
        fitted = likelihood.scale(outputs, ensemble.log_noise_scale, known)
        predicted = fitted
        if original is not None:
            predicted = scale_at(ensemble, outputs, location, original[span])
        yield TargetTile(span, location, fitted, predicted, likelihood.spread(outputs))


def output_tiles(ensemble: Ensemble, x: Array) -> Iterator[tuple[slice, Array]]:
    """Iterate over tiles of rows: (slice, outputs of every draw [C * S, n, num_outputs]).

    Args:
        ensemble: Ensemble.
        x: Inputs [N, D], transformed.
    """
    for rows in row_tiles(ensemble, len(x)):
        yield rows, _by_rows(network_outputs(ensemble, x[rows]))


def _by_rows(outputs: Array) -> Array:
    """Return network outputs [C * S, num_outputs, n] as [C * S, n, num_outputs], float64."""
    return outputs.swapaxes(1, 2).astype(np.float64)


def predict(
    ensemble: Ensemble,
    x: Array,
    wanted: Summary,
    row_noise: Array | None = None,
) -> Prediction:
    """Summarise the predictive distribution at transformed inputs x [N, D].

    The summary and the noise are the checked arguments of `BayesianMLP.predict`.
    """
    networks, fitted = moment_networks(ensemble, wanted.space), ensemble
    # Scores of calibrations are those of the scale that the network sees.
    scored = judging_networks(ensemble) if wanted.calibrated else None
    ensemble = ensemble.for_averages
    forward = forward_pass(ensemble, len(x))

    def summarise(tiles: list[slice]) -> None:
        first, last = tiles[0].start, tiles[-1].stop
        outputs = forward(x[first:last])
        for rows in tiles:
            noise = None if row_noise is None else row_noise[rows]
            span = slice(rows.start - first, rows.stop - first)
            mixture = mixture_of(ensemble, outputs[..., span], noise, wanted.include_noise)
            known = networks.moments(x[rows]) if networks.in_closed_form else None
            judged = None if scored is None else scored.moments(x[rows])
            tile = _Tile(mixture, known, judged)
            if wanted.calibrated:
                summary = _calibrated_summary(fitted, tile, wanted, x[rows])
            else:
                summary = _summary(fitted, tile, wanted)
            mean[rows], stddev[rows] = summary
            if found is not None:
                found[:, rows] = summary.quantiles

    shape = (len(x), ensemble.spec.num_predicted)
    mean, stddev = np.empty(shape), np.empty(shape)
    found = None if wanted.quantiles is None else np.empty((len(wanted.quantiles), *shape))
    tiles = row_tiles(ensemble, len(x))
    size = min(max(1, len(tiles) // _LEAST_PASSES), _TILES_PER_PASS)
    on_all_cores(summarise, [tiles[k : k + size] for k in range(0, len(tiles), size)])
    return Prediction(mean, stddev, found)


class _Tile(NamedTuple):
    """Mixture and closed-form moments of some rows, on the scale the network sees.

    Attributes:
        mixture: Mixture, whose scales are those of noise and of the function of each draw, or None
            without either.
        known: Mean and standard deviation of the function [n, K] if they are known in closed
            form, or None.
        judged: The same on the scale the network sees, for calibrations.
    """

    mixture: Mixture
    known: tuple[Array, Array] | None
    judged: tuple[Array, Array] | None

    def taken(self, rows: Array) -> _Tile:
        """Return the tile of some of the rows, which needs no calibration."""
        known = self.known
        if known is not None:
            known = known[0][rows], known[1][rows]
        return _Tile(self.mixture.at(rows), known, None)


def _summary(ensemble: Ensemble, tile: _Tile, wanted: Summary) -> Prediction:
    """Return the Prediction of a tile without calibration."""
    mixture, known, _ = tile
    original = wanted.space == "original"
    inverse = partial(inverse_draws, ensemble) if original else np.asarray
    is_affine = not original or ensemble.y_pipeline.is_affine
    unit = ensemble.target_unit if original and is_affine else 1.0
    values, weights = inverse(mixture.location), mixture.weights
    if known is None:
        mean, stddev = moments(values, weights)
    else:
        mean, stddev = inverse(known[0]), known[1] * unit
    if mixture.scale is not None:
        if is_affine:
            stddev = np.hypot(stddev, mixture.noise_spread() * unit)
        else:
            mean, stddev = moments_of_target(ensemble, mixture)
    levels = wanted.quantiles
    if levels is None:
        return Prediction(mean, stddev)
    if mixture.scale is None:
        return Prediction(mean, stddev, weighted_quantiles(values, weights, levels))
    quantiles = np.empty((len(levels), *mean.shape))
    exact = np.array([ensemble.spec.has_counts or min(q, 1.0 - q) < _TAIL for q in levels], bool)
    some, tails = (list(np.compress(chosen, levels)) for chosen in (~exact, exact))
    if some:
        points, weights = mixture.points()
        quantiles[~exact] = weighted_quantiles(inverse(points), weights, some)
    if tails:
        quantiles[exact] = inverse(mixture.quantiles(tails))
    return Prediction(mean, stddev, quantiles)


def _calibrated_summary(ensemble: Ensemble, tile: _Tile, wanted: Summary, x: Array) -> Prediction:
    """Return the Prediction of a tile, with noise and calibrated error bars."""
    original = wanted.space == "original"
    inverse = partial(inverse_draws, ensemble) if original else np.asarray
    mean, stddev = _summary(ensemble, tile, wanted._replace(quantiles=None))
    if not original:
        centre, spread = mean, stddev
    elif ensemble.y_pipeline.is_affine:  # saves a second pass over all draws
        centre, spread = ensemble.y_pipeline.forward(mean), stddev / ensemble.target_unit
    else:
        centre, spread = tile.mixture.moments(tile.judged)
    one = calibrated_at(ensemble, x, centre, spread)
    levels = [*central_levels(1), *(wanted.quantiles or ())]
    low, high, *found = inverse(one.quantiles(levels))
    stddev, quantiles = 0.5 * (high - low), np.reshape(found, (len(found), *mean.shape))
    left = one.is_left
    rows = np.flatnonzero(left.any(axis=1))
    if len(rows):
        plain = _summary(ensemble, tile.taken(rows), wanted)
        stddev[rows] = np.where(left[rows], plain.stddev, stddev[rows])
        if plain.quantiles is not None:
            quantiles[:, rows] = np.where(left[rows], plain.quantiles, quantiles[:, rows])
    return Prediction(mean, stddev, None if wanted.quantiles is None else quantiles)


def mixture_of(
    ensemble: Ensemble, outputs: Array, row_noise: Array | None, include_noise: bool
) -> Mixture:
    """Return the mixture of network outputs [C * S, num_outputs, n], with or without noise."""
    likelihood, outputs = ensemble.spec.likelihood, _by_rows(outputs)
    location = likelihood.location(outputs, row_noise)
    if include_noise:
        scale = scale_at(ensemble, outputs, location, row_noise)
    else:
        scale = likelihood.spread(outputs)
    return Mixture.of(ensemble, location, scale)


def scale_at(ensemble: Ensemble, outputs: Array, location: Array, row_noise: Array | None) -> Array:
    """Return the transformed noise scale; a known one is transformed at the prediction of each draw.

    Args:
        ensemble: Ensemble of a regression.
        outputs: Outputs of its networks [C * S, n, num_outputs].
        location: Locations of these outputs [C * S, n, K].
        row_noise: Known noise scales [n, K], original units, or None.
    """
    noise, pipeline = row_noise, ensemble.y_pipeline
    if row_noise is not None:
        noise = row_noise * np.abs(pipeline.derivative(pipeline.inverse(location)))
    return ensemble.spec.regression_likelihood.scale(outputs, ensemble.log_noise_scale, noise)
