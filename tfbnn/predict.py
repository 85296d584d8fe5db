"""Predictions with NumPy alone: tiled forward passes and summaries over draws."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from tfbnn.activations import ACTIVATIONS
from tfbnn.likelihoods import StudentT
from tfbnn.threads import on_all_cores

__all__ = [
    "Prediction",
    "function_draws",
    "inverse_draws",
    "network_outputs",
    "noise_tiles",
    "predict",
    "sample_noisy",
    "weighted_quantiles",
]

# Draws x rows of one tile of rows, its least number of rows, and its largest number of draws x rows
# x outputs: enough work to outweigh NumPy's calls, little enough for the processor's cache, and a
# bound on memory.
_TILE_POINTS = 131_072
_TILE_ROWS = 128
_TILE_VALUES = 4_000_000
# Hidden activations of one tile of draws: as much as the cache of one core holds.
_HIDDEN_VALUES = 100_000
# Equally weighted points that stand for the predictive distribution with noise.
_NOISE_POINTS = 4096


@dataclass(frozen=True, eq=False)
class Prediction:
    """A summary of the predictive distribution; unpacks as `mean, stddev = prediction`.

    Of classes everything is about probabilities: K is then the number of columns M of Categorical.

    Attributes:
        mean: [N, K].
        stddev: [N, K]; of the function alone (epistemic), or with noise where that was asked for.
        quantiles: [Q, N, K], or None.
    """

    mean: np.ndarray
    stddev: np.ndarray
    quantiles: np.ndarray | None = None

    def __iter__(self):
        return iter((self.mean, self.stddev))


def network_outputs(ensemble, x):
    """Outputs of all networks at transformed inputs x [n, D]: [C * S, num_outputs, n].

    Rows are innermost, as in the engine: the first layer, bias included, is then one matrix product
    over all draws of a tile, and its result already has the layout of the next.
    """
    spec, (first, others) = ensemble.spec, ensemble.effective_weights
    columns = np.vstack([x.T, np.ones(len(x))]).astype(spec.dtype)
    outputs = np.empty((ensemble.num_draws, spec.layer_sizes[-1], len(x)), spec.dtype)
    per_draw = max(spec.layer_sizes[1:]) * len(x)
    step = min(max(1, _HIDDEN_VALUES // per_draw), ensemble.num_draws)
    # Arrays that are used again: threads that allocate wait for each other.
    used, spare = (np.empty(step * per_draw, spec.dtype) for _ in range(2))
    for start in range(0, ensemble.num_draws, step):
        tile = slice(start, start + step)
        kernel = first[tile]
        hidden = _part(used, *kernel.shape[:2], len(x))
        np.matmul(kernel.reshape(-1, len(columns)), columns, out=hidden.reshape(-1, len(x)))
        for name, (kernel, bias) in zip(spec.activations, others):
            used, spare = spare, used
            result = _part(used, len(hidden), kernel.shape[1], len(x))
            hidden = np.matmul(kernel[tile], ACTIVATIONS[name].numpy(hidden), out=result)
            hidden += bias[tile]
        outputs[tile] = hidden
    return outputs


def _part(array, *shape):
    """The beginning of a flat array in another shape."""
    return array[: math.prod(shape)].reshape(shape)


def function_draws(ensemble, x):
    """Noise-free predictions of all draws in transformed space: x [N, D] -> [C * S, N, K].

    Of classes they are logits, which have no bounds and so suit diagnostics better than
    probabilities.
    """
    outputs = network_outputs(ensemble, ensemble.x_pipeline.forward(x))
    return ensemble.spec.likelihood.location(np.moveaxis(outputs, 1, 2)).astype(np.float64)


def inverse_draws(ensemble, location):
    """Locations [..., K] in original units; of classes their probabilities."""
    return ensemble.y_pipeline.inverse(ensemble.spec.likelihood.inverse_link(location))


def row_tiles(ensemble, num_rows):
    """Slices of rows small enough for all draws at once; they depend on nothing but sizes."""
    points = max(ensemble.num_draws, _NOISE_POINTS) * ensemble.spec.layer_sizes[-1]
    step = max(_TILE_ROWS, _TILE_POINTS // ensemble.num_draws)
    step = max(1, min(step, _TILE_VALUES // points))
    return [slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step)]


def noise_tiles(ensemble, x, row_noise=None, y=None):
    """Iterates over tiles of rows with location and noise scale of every draw.

    Args:
        ensemble: Ensemble.
        x: Inputs [N, D], original units.
        row_noise: Known noise standard deviations [N, K] in the units of y, or None.
        y: Targets [N, K] at which `row_noise` is carried to transformed space; without them it is
            carried at each draw's own prediction.

    Yields:
        (slice of rows, location [C * S, n, K], scale broadcastable to it), in transformed space;
        for classes logits, and None for the scale.
    """
    for rows in row_tiles(ensemble, len(x)):
        parts = (None if part is None else part[rows] for part in (row_noise, y))
        yield rows, *location_and_scale(ensemble, x[rows], *parts)


def location_and_scale(ensemble, x, row_noise=None, y=None):
    """Location [C * S, N, K] and noise scale of every draw, as `noise_tiles` yields them."""
    likelihood, pipeline = ensemble.spec.likelihood, ensemble.y_pipeline
    outputs = network_outputs(ensemble, ensemble.x_pipeline.forward(x))
    outputs = np.moveaxis(outputs, 1, 2).astype(np.float64)
    location = likelihood.location(outputs)
    noise = None
    if row_noise is not None:
        at = pipeline.inverse(location) if y is None else y
        noise = row_noise * np.abs(pipeline.derivative(at))
    return location, likelihood.scale(outputs, ensemble.log_noise_scale, noise)


def predict(ensemble, x, *, include_noise, quantiles, space, row_noise):
    """Summarises the predictive distribution; arguments as in `BayesianMLP.predict`, checked."""
    ensemble = ensemble.weighted

    def summarise(rows):
        noise = None if row_noise is None else row_noise[rows]
        return _summary(ensemble, x[rows], noise, include_noise, quantiles, space)

    ensemble.effective_weights  # noqa: B018 - cached now, or every thread would compute them
    tiles = on_all_cores(summarise, row_tiles(ensemble, len(x)))
    if len(tiles) == 1:
        return tiles[0]
    mean, stddev = (np.concatenate(parts) for parts in zip(*tiles))
    if quantiles is None:
        return Prediction(mean, stddev)
    return Prediction(mean, stddev, np.concatenate([tile.quantiles for tile in tiles], axis=1))


def _summary(ensemble, x, row_noise, include_noise, quantiles, space):
    """The Prediction at few rows."""
    location, scale = location_and_scale(ensemble, x, row_noise)
    inverse = partial(inverse_draws, ensemble) if space == "original" else np.asarray
    values, weights = inverse(location), ensemble.draw_weights
    mean, stddev = _moments(values, weights)
    if include_noise:
        points, weights = sample_noisy(ensemble, location, scale)
        values = inverse(points)
        if space == "transformed" or ensemble.y_pipeline.is_affine:
            variance = _mean_noise_variance(ensemble, location, scale)
            stddev = np.sqrt(stddev**2 + variance * _unit(ensemble, space) ** 2)
        elif isinstance(ensemble.spec.likelihood, StudentT):
            # 10**t has no mean when t has the tails of a Student-t.
            mean, stddev = np.full_like(mean, np.inf), np.full_like(stddev, np.inf)
        else:
            mean, stddev = _moments(values, weights)
    found = None if quantiles is None else weighted_quantiles(values, weights, quantiles)
    return Prediction(mean, stddev, found)


def _unit(ensemble, space):
    """One unit of an affinely transformed target, in the units of `space`: [K] or 1."""
    if space == "transformed":
        return 1.0
    return 1.0 / ensemble.y_pipeline.derivative(np.ones(ensemble.spec.num_targets))


def _mean_noise_variance(ensemble, location, scale):
    """Transformed noise variance averaged over draws [n, K]."""
    variance = np.broadcast_to(np.square(scale), location.shape)
    return np.einsum("s,snk->nk", ensemble.draw_weights, variance)


def sample_noisy(ensemble, location, scale):
    """Represents the predictive distribution with noise by weighted points.

    Every draw contributes its noise quantiles at stratified levels that are shared by all rows, so
    results depend neither on the order of rows nor on how they are split, and need no seed.

    Args:
        ensemble: Ensemble.
        location: [C * S, n, K] in transformed space.
        scale: Noise standard deviations, broadcastable to `location`.

    Returns:
        (points [C * S * R, n, K] in transformed space, weights [C * S * R]).
    """
    repeats = -(-_NOISE_POINTS // ensemble.num_draws)
    levels = (np.arange(repeats) + _radical_inverse(ensemble.num_draws)[:, None]) / repeats
    noise = ensemble.spec.likelihood.noise_quantile(levels)[:, :, None, None]
    scale = np.broadcast_to(scale, location.shape)
    points = location[:, None] + noise * scale[:, None]
    weights = np.repeat(ensemble.draw_weights / repeats, repeats)
    return points.reshape(-1, *location.shape[1:]), weights


def weighted_quantiles(values, weights, probabilities):
    """Quantiles over the first axis: values [M, ...], weights [M] -> [Q, ...].

    Each value sits in the middle of its weight, with linear interpolation in between; for equal
    weights this is Hazen's definition.
    """
    used = weights > 0  # a point without weight would still bend the interpolation
    if not used.all():
        values, weights = values[used], weights[used]
    flat = values.reshape(len(values), -1)
    order = np.argsort(flat, axis=0)
    ordered = np.take_along_axis(flat, order, axis=0)
    spread = weights[order]
    middles = np.cumsum(spread, axis=0) - 0.5 * spread
    found = [
        np.interp(probabilities, middles[:, column], ordered[:, column])
        for column in range(flat.shape[1])
    ]
    return np.stack(found, axis=1).reshape(len(probabilities), *values.shape[1:])


def _moments(values, weights):
    mean = np.einsum("s,s...->...", weights, values)
    with np.errstate(invalid="ignore"):  # infinite draws have an undefined spread
        return mean, np.sqrt(np.einsum("s,s...->...", weights, np.square(values - mean)))


def _radical_inverse(count):
    """The first `count` numbers of van der Corput's sequence in base 2, strictly inside (0, 1)."""
    indices = np.arange(1, count + 1)
    result, weight = np.zeros(count), 0.5
    while indices.any():
        result += weight * (indices & 1)
        indices >>= 1
        weight *= 0.5
    return result
