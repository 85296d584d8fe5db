"""Predictions of networks of infinite width: a Gaussian process for each draw, with NumPy alone.

Given a draw theta the function is a Gaussian process, conditioned on the rows of the fit in closed form
(Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, chapters 2 and 5). N rows take N^3 / 3
products for each draw once, and N^2 for each point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tfbnn.spec.infinite_spec import InfiniteSpec, LayerVariances
from tfbnn.spec.limit_kernels import covariance, input_slopes
from tfbnn.system.arrays import Array, ReadOnlyArrays, read_only
from tfbnn.system.threads import on_all_cores
from tfbnn.system.triangular import triangular_inverse, triangular_product

if TYPE_CHECKING:
    from tfbnn.posterior.ensemble import Ensemble

# Draws that averages are over, each of which is a whole distribution, and bytes that their matrices may take.
MOST_AVERAGED, _MOST_BYTES = 64, 2e9
# Draws whose means at up to 200 points are kept in mind.
_MOST_REMEMBERED = 10_000
# Points for which functions are drawn together.
MOST_TOGETHER = 4000
# Powers of ten: the first with which there is a factor, of the largest variance of the prior, is added to
# those of functions drawn together, which are smooth.
_JITTERS = range(-12, -5)


@dataclass(frozen=True, eq=False)
class GivenRows(ReadOnlyArrays):
    """The rows of a fit that predictions are conditioned on, on the scale that the network sees.

    Attributes:
        x: [N, D].
        y: [N, K].
        noise: Known standard deviations [N, K], or None.
    """

    x: Array
    y: Array
    noise: Array | None = None

    def taken(self, places: Array) -> GivenRows:
        """Return some of them."""
        noise = None if self.noise is None else self.noise[places]
        return GivenRows(self.x[places], self.y[places], noise)

    def places_of(self, x: Array, y: Array) -> Array:
        """Return the places of rows (x, y) among these. Raises ValueError where one is not among them."""
        known = {_key(*row): place for place, row in enumerate(zip(self.x, self.y))}
        try:
            return np.array([known[_key(*row)] for row in zip(x, y)])
        except KeyError:
            raise ValueError(
                "Leaving out rows of a network of infinite width needs rows of its fit, received others."
            ) from None


def _key(x: Array, y: Array) -> tuple[bytes, bytes]:
    return x.tobytes(), y.tobytes()


class Conditioned(NamedTuple):
    """A draw given the rows.

    Attributes:
        layers: Its LayerVariances.
        roots: Of each target the inverse of the Cholesky factor L of the covariance, noise included [N, N].
        white: L^-1 y of each target [K, N].
    """

    layers: Sequence[LayerVariances]
    roots: list[Array]
    white: Array


def conditioned(spec: InfiniteSpec, theta: Array, given: GivenRows) -> Conditioned:
    """Return a draw theta [P] given the rows."""
    layers = spec.layer_variances(theta)
    prior = covariance(spec.activations, layers, given.x, given.x).c
    roots, white = [], np.empty((spec.num_targets, len(given.x)))
    scales = spec.noise_scales(theta[None], given.noise, len(given.x))[0]
    for target in range(spec.num_targets):
        noisy = prior.copy()
        noisy[np.diag_indices(len(noisy))] += scales[:, target] ** 2
        roots.append(triangular_inverse(np.linalg.cholesky(noisy)))
        white[target] = roots[-1] @ given.y[:, target]
    return Conditioned(layers, roots, white)


def moments(spec: InfiniteSpec, draw: Conditioned, given: GivenRows, x: Array) -> Array:
    """Means, then standard deviations, of the functions at transformed inputs x [n, D]: [2 K, n]."""
    found = np.empty((2 * spec.num_targets, len(x)))
    prior = covariance(spec.activations, draw.layers, given.x, x)
    for target, root in enumerate(draw.roots):
        across = triangular_product(root, prior.c)
        found[target] = draw.white[target] @ across
        left = prior.b - np.einsum("ij,ij->j", across, across)
        found[spec.num_targets + target] = np.sqrt(np.maximum(left, 0.0))
    return found


def process_outputs(ensemble: Ensemble, x: Array) -> Array:
    """Means, then standard deviations, of the functions of all draws: [C * S, 2 K, n].

    Args:
        ensemble: Ensemble of infinite width.
        x: Transformed inputs [n, D].
    """
    spec, given = _parts(ensemble)
    return _of_draws(ensemble, lambda draw: moments(spec, draw, given, x))


def means_of_chains(ensemble: Ensemble, x: Array) -> Array:
    """Means of all draws' functions given the rows that theta was sampled on: [C * S, n, K]."""
    spec, given = _parts(ensemble)
    points = x.tobytes()
    return _stacked(
        lambda theta: _mean_of_draw(spec, theta.tobytes(), given, points), list(_flat(ensemble))
    )


@lru_cache(maxsize=_MOST_REMEMBERED)  # as a run looks at its draws again and again
def _mean_of_draw(spec: InfiniteSpec, theta: bytes, given: GivenRows, points: bytes) -> Array:
    """One of `means_of_chains` [n, K], of arrays as bytes."""
    places = spec.places_of_chains(len(given.x))
    seen = given if places is None else given.taken(places)
    draw = conditioned(spec, np.frombuffer(theta), seen)
    x = np.frombuffer(points).reshape(-1, seen.x.shape[1])
    prior = covariance(spec.activations, draw.layers, seen.x, x).c
    whole = [white @ root @ prior for white, root in zip(draw.white, draw.roots)]
    return read_only(np.stack(whole, axis=1))


def exactly_left_out(
    ensemble: Ensemble, places: Array, row_groups: Array | None = None
) -> tuple[Array, Array]:
    """(Mean, standard deviation with noise) of rows of the fit, each predicted without itself: [n, K] each.

    With P = K^-1, noise included, rows g are without themselves normal around y_g - P_gg^-1 (P y)_g with the
    covariance P_gg^-1 (Rasmussen and Williams 2006, eq. 5.12). Draws of theta have seen these rows, and
    count by the inverse of their density without them.

    Args:
        ensemble: Ensemble of infinite width.
        places: Of the rows among the given ones [n].
        row_groups: Which of them are left out together [n], numbered from 0; None: each by itself.
    """
    spec, given = _parts(ensemble)
    labels = np.arange(len(places)) if row_groups is None else row_groups
    blocks = [np.flatnonzero(labels == label) for label in np.unique(labels)]

    def without(draw: Conditioned) -> Array:
        found = np.empty((3, spec.num_targets, len(places)))
        for target, (root, white) in enumerate(zip(draw.roots, draw.white)):
            precision, solved = root.T @ root, white @ root
            for block in blocks:
                rows = places[block]
                part = precision[np.ix_(rows, rows)]
                covariance_left = np.linalg.inv(part)
                off = covariance_left @ solved[rows]
                density = 0.5 * np.linalg.slogdet(part)[1] - 0.5 * solved[rows] @ off
                found[0, target, block] = given.y[rows, target] - off
                found[1, target, block] = np.diagonal(covariance_left)
                found[2, target, block] = density
        return found

    mean, variance, density = np.moveaxis(_of_draws(ensemble, without), 1, 0)
    density = density.sum(axis=1, keepdims=True)  # of all targets of a draw, which has one theta
    weights = ensemble.draw_weights[:, None, None] * np.exp(density.min(axis=0) - density)
    weights = weights / weights.sum(axis=0)
    average = np.sum(weights * mean, axis=0)
    spread = np.sqrt(np.sum(weights * (variance + np.square(mean - average)), axis=0))
    return average.T, spread.T


def sampled_outputs(ensemble: Ensemble, x: Array, seed: int) -> Array:
    """A function of each draw at all of the inputs together, and zeros for its spread: [C * S, 2 K, n].

    Args:
        ensemble: Ensemble of infinite width; without rows its functions are of the prior.
        x: Transformed inputs [n, D].
        seed: Of the functions.

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

    return _stacked(function, list(enumerate(_flat(ensemble))))


def process_gradients(ensemble: Ensemble, x: Array) -> tuple[Array, Array]:
    """(Mean [M, n, K, D], variance) of the derivatives of each draw's targets in transformed inputs x [n, D].

    Of targets in original units. Those that are affine in the function f have derivatives that are normal; of
    exp(k f), which "log10" makes of it, f and f' are normal together.
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
        units = 1.0 / pipeline.derivative(values)  # of a target by the function
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


def _flat(ensemble: Ensemble) -> Array:
    flat: Array = ensemble.draws.reshape(-1, ensemble.draws.shape[-1])
    return flat


def _of_draws(ensemble: Ensemble, function: Callable[[Conditioned], Array]) -> Array:
    """Return what a function makes of every draw given the rows, which few draws keep."""
    spec, given = _parts(ensemble)
    if ensemble.num_draws <= MOST_AVERAGED:
        return _stacked(function, ensemble.conditioned_draws)
    return _stacked(lambda theta: function(conditioned(spec, theta, given)), list(_flat(ensemble)))


def condition_all(ensemble: Ensemble) -> list[Conditioned]:
    """Return every draw given the rows."""
    spec, given = _parts(ensemble)
    found: dict[int, Conditioned] = {}

    def condition(item: tuple[int, Array]) -> None:
        found[item[0]] = conditioned(spec, item[1], given)

    on_all_cores(condition, list(enumerate(_flat(ensemble))))
    return [found[number] for number in range(len(found))]


def num_averaged(num_rows: int, num_targets: int) -> int:
    """Return over how many draws averages are taken with so many rows, so that memory holds their matrices."""
    return max(1, min(MOST_AVERAGED, int(_MOST_BYTES / (8.0 * num_targets * num_rows**2))))


def _stacked(function: Callable[[Any], Array], items: Sequence[Any]) -> Array:
    """Return function(item) of all items, one after the other."""
    first = function(items[0])
    found = np.empty((len(items), *first.shape))
    found[0] = first

    def fill(index: int) -> None:
        found[index] = function(items[index])

    on_all_cores(fill, range(1, len(items)))
    return found


def _root(matrix: Array, largest: float) -> Array:
    """Return a Cholesky factor of a covariance that rounding may have left indefinite."""
    for power in _JITTERS:
        jitter = largest * 10.0**power * np.eye(len(matrix))
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(matrix + jitter)
    raise np.linalg.LinAlgError("The covariance of the function is not positive definite.")
