"""The log density of a network of infinite width: weights are integrated out, scales are sampled.

Given the scales theta, the targets are normal, with the covariance of `tfbnn.spec.limit_kernels`
and noise. NumPy computes it in float64. A gradient at 400 rows takes less than half the time of
TensorFlow, whose triangular products are slow. XLA on a CPU takes up to 25 times as long to
factorise a matrix. SciPy's LAPACK would save a sixth of a gradient, but it blocks the threads of
other chains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data, all_of, make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import WithGradient
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.limit_kernels import covariance, layer_gradients
from tfbnn.spec.priors import FrozenArray
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array, keep_freed_memory
from tfbnn.system.threads import on_all_cores, single_threaded_blas
from tfbnn.system.triangular import triangular_inverse

# Number of searches, and the scales around which they begin, with the standard deviation of the log
# scales. Units are almost linear there, because a search whose units bend at every row explains
# nothing and stays there. On yacht, which has four maxima, three of eight such searches end at the
# best one; from scales of 0.7 one does.
_NUM_SEARCHES, _SCALE, _NOISE, _SPREAD = 8, 0.2, 0.1, 0.5
# Limits of the log scales, and of the number of iterations.
_LOW, _HIGH, _MOST_ITERATIONS = -12.0, 6.0, 300
# Minus the log density if a covariance has no factor; no other value is as large.
_NOWHERE = 1e12
# Step of second differences, and the least curvature, about that of the prior of a log scale. It
# keeps a scale that the rows do not determine from getting an infinite width.
_STEP, _LEAST_CURVATURE = 1e-3, 0.3
# Positions on a slice, in standard deviations of the curvature: dense in the middle, reaching the
# tails.
_POSITIONS = np.sinh(np.linspace(-4.0, 4.0, 25))


@dataclass(frozen=True)
class Marginal(Potential):
    """Log posterior log p(theta | data) of networks of infinite width."""

    spec: InfiniteSpec

    def log_prior(self, theta: Tensor) -> Tensor:
        return self.scales_log_prior(theta)

    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        """Compute the log marginal likelihood [C], float64; it is not meant to be differentiated."""
        return self.log_likelihood_and_gradient(theta, data)[0]

    def log_likelihood_and_gradient(self, theta: Tensor, data: Data) -> WithGradient:
        """Compute the log marginal likelihood and its gradient [C, P]."""
        keep_freed_memory()
        noise = tf.zeros([0, 0], tf.float64) if data.row_noise is None else data.row_noise
        rows = [array[:, data.first : data.last] for array in (data.x, data.y, noise)]

        def of_all(theta: Array, x: Array, y: Array, noise: Array) -> tuple[Array, Array]:
            known = noise.T if noise.size else None
            found = [log_marginal(self.spec, one, x.T, y.T, known) for one in theta]
            values, gradients = zip(*found)
            return np.array(values), np.stack(gradients)

        kinds = (tf.float64, tf.float64)
        value, gradient = tf.numpy_function(of_all, [theta, *rows], kinds, stateful=False)
        value.set_shape(theta.shape[:1])
        gradient.set_shape(theta.shape)
        return value, gradient

    def curvature(self, coordinates: Array, data: Data) -> Array:
        """Return the curvature [P, P] at the maximum, for every point.

        At the position of a chain, the curvature of a scale that may vanish says nothing about its
        spread.
        """
        return maximum(self.spec, data).curvature

    def why_not_finite(self, theta: Tensor, data: Data, chain: int) -> str:
        return (
            f"The log density is not finite where chain {chain} starts: the covariance of the rows has no "
            "Cholesky factor. Use x_transform='standardize', priors of smaller scales or more noise."
        )


class Maximum(NamedTuple):
    """Maximum of a posterior of scales.

    Attributes:
        theta: Position of the maximum [P].
        log_prob: Log density there.
        others: Log densities at the ends of the other searches, best first.
        curvature: Curvature of minus the log density there [P, P], made positive definite. The
            width of each scale is that of the slice through the maximum along it, because scales
            that may vanish have long tails.
    """

    theta: Array
    log_prob: float
    others: tuple[float, ...]
    curvature: Array


def maximum(spec: InfiniteSpec, data: Data) -> Maximum:
    """Find the maximum of the posterior of scales given rows, the best of eight L-BFGS searches."""
    arrays = (None if one is None else one.numpy() for one in data.rows()[:3])
    with single_threaded_blas():  # otherwise the last bits depend on the first caller
        return _maximum(spec, *(None if one is None else FrozenArray.of(one) for one in arrays))


@lru_cache(maxsize=8)  # the choice of the kernel, the starts and all chains use it
def _maximum(
    spec: InfiniteSpec, x: FrozenArray, y: FrozenArray, noise: FrozenArray | None
) -> Maximum:
    rows = [one if one is None else tf.constant(one.values) for one in (x, y, noise)]
    minus = _minus_log_density(spec, all_of(*rows))
    searches = on_all_cores(
        lambda number: _search(minus, _first(spec, number)), range(_NUM_SEARCHES)
    )
    found = sorted(searches, key=lambda one: one.fun)
    theta, values = found[0].x, tuple(-float(one.fun) for one in found)
    steps = _STEP * np.eye(len(theta))
    matrix = np.stack([minus(theta + step)[1] - minus(theta - step)[1] for step in steps]) / (
        2 * _STEP
    )
    lengths, axes = np.linalg.eigh(0.5 * (matrix + matrix.T))
    curvature = (axes * np.maximum(np.abs(lengths), _LEAST_CURVATURE)) @ axes.T
    slices = [
        np.array([minus(theta + position * axis)[0] for position in _POSITIONS])
        for axis in np.diag(np.diagonal(curvature) ** -0.5)
    ]
    widths = np.array([_width(one) for one in slices])
    return Maximum(theta, values[0], values[1:], curvature / np.outer(widths, widths))


def maximum_near(spec: InfiniteSpec, rows: NetworkRows, theta: Array) -> Array:
    """Find the maximum [P] near theta [P], given rows, by one search."""
    found: Array = _search(_minus_log_density(spec, make_data(*rows, spec.dtype)), theta).x
    return found


def _minus_log_density(spec: InfiniteSpec, data: Data) -> Callable[[Array], tuple[float, Array]]:
    """Return the function from theta [P] to minus the log density and its gradient."""
    function = compiled(Marginal(spec).value_and_gradient, jit_compile=False)

    def minus(theta: Array) -> tuple[float, Array]:
        value, gradient = (array.numpy()[0] for array in function(tf.constant(theta[None]), data))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return _NOWHERE, np.zeros_like(theta)
        return -float(value), -gradient

    return minus


def _first(spec: InfiniteSpec, number: int) -> Array:
    """Draw the start [P] of a search."""
    first: Array = np.random.default_rng(number).standard_normal(spec.num_parameters)
    first = np.log(_SCALE) + _SPREAD * first
    first[spec.layout.log_noise_scale] = np.log(_NOISE)
    return first


def _search(minus: Callable[[Array], tuple[float, Array]], first: Array) -> Any:
    """Run one search and return SciPy's result."""
    from scipy.optimize import minimize

    bounds, options = [(_LOW, _HIGH)] * len(first), {"maxiter": _MOST_ITERATIONS}
    return minimize(minus, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


def _width(minus_log: Array) -> float:
    """Compute the standard deviation of a density from minus its logarithms at `_POSITIONS`."""
    weights = np.exp(minus_log.min() - minus_log) * np.gradient(_POSITIONS)
    weights /= weights.sum()
    return float(np.sqrt(weights @ np.square(_POSITIONS - weights @ _POSITIONS)))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where a trajectory diverges
def log_marginal(
    spec: InfiniteSpec, theta: Array, x: Array, y: Array, row_noise: Array | None
) -> tuple[float, Array]:
    """Compute the log marginal likelihood and its gradient [P] in theta.

    The formulas are eqs. 5.8 and 5.9 of Rasmussen and Williams 2006.

    Args:
        spec: InfiniteSpec.
        theta: Log scales [P].
        x, y, row_noise: Transformed rows [N, D], [N, K], [N, K] or None.

    Returns:
        (log marginal likelihood, gradient); minus infinity and zeros if the covariance has no
        Cholesky factor.
    """
    layers, gradient = spec.layer_variances(theta), np.zeros(spec.num_parameters)
    prior = covariance(spec.activations, layers, x, x)
    scales = spec.noise_scales(theta[None], row_noise, len(x))[0]
    value, by_covariance, noise = 0.0, np.zeros_like(prior.c), spec.layout.log_noise_scale
    for target in range(y.shape[1]):
        noisy = prior.c.copy()
        noisy[np.diag_indices(len(x))] += scales[:, target] ** 2
        try:
            factor = np.linalg.cholesky(noisy)
            root = triangular_inverse(factor)
        except np.linalg.LinAlgError:
            return -np.inf, np.zeros(spec.num_parameters)
        white = root @ y[:, target]
        value -= 0.5 * (white @ white + len(x) * np.log(2.0 * np.pi))
        value -= np.log(np.diagonal(factor)).sum()
        precise = white @ root
        root *= np.sqrt(0.5)
        matrix = np.outer(0.5 * precise, precise)
        matrix -= root.T @ root
        by_covariance += matrix
        if spec.layout.num_noise:
            index = noise.start + target
            gradient[index] = 2.0 * np.exp(2.0 * theta[index]) * np.trace(matrix)
    parts = layer_gradients(spec.activations, layers, x, prior.stages, by_covariance)
    for slot, part in zip(spec.layout.slots, (one for layer in parts for one in layer)):
        count = slot.scales.stop - slot.scales.start
        if count:
            gradient[slot.scales] = part if count > 1 else np.sum(part)
    return float(value) if np.isfinite(value) else -np.inf, gradient
