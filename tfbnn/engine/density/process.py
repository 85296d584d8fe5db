"""The log density of a network of infinite width: weights are integrated out, scales are sampled.

Given its scales theta the targets are normal, with the covariance of `tfbnn.spec.limit_kernels` and noise.
NumPy computes it, in float64: of 300 rows a gradient takes a third of the time that TensorFlow needs, whose
triangular products are slow, and XLA on a CPU takes up to 25 times as long as that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.potential import Density, Draws, Potential, Weight
from tfbnn.engine.density.row_blocks import WithGradient
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.limit_kernels import covariance, layer_gradients
from tfbnn.system.arrays import Array, keep_freed_memory
from tfbnn.system.triangular import triangular_inverse

# Step of second differences, of a scale and of the least one; the least curvature in a scale, that of the prior
# HalfNormal(3), and the least in any direction, of what single scales have.
_STEP, _LEAST_CURVATURE, _LEAST_SHARE = 1e-3, 0.1, 0.1
# Beside this no scale is told from zero.
_TINY = 1e-8


@dataclass(frozen=True)
class Marginal(Potential):
    """log p(theta | data) of networks of infinite width."""

    spec: InfiniteSpec

    @property
    def for_chains(self) -> Density:
        return SignedScales(self.spec)

    def log_prior(self, theta: Tensor) -> Tensor:
        return self.scales_log_prior(theta)

    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        """Log marginal likelihood [C], float64."""

        def with_gradient(theta: Tensor) -> tuple[Tensor, Any]:
            value, gradient = self.log_likelihood_and_gradient(theta, data)
            return value, lambda upstream: upstream[:, None] * gradient

        found: Tensor = tf.custom_gradient(with_gradient)(theta)
        return found

    def log_likelihood_and_gradient(self, theta: Tensor, data: Data) -> WithGradient:
        """The same and its gradient [C, P]."""
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
        """That of the scales, in their logarithms."""
        scales = np.exp(coordinates)
        return SignedScales(self.spec).curvature(scales, data) * np.outer(scales, scales)

    def why_not_finite(self, theta: Tensor, data: Data, chain: int) -> str:
        return (
            f"The log density is not finite where chain {chain} starts: the covariance of the rows has no "
            "Cholesky factor. Use x_transform='standardize', priors of smaller scales or more noise."
        )

    def hessian(self, theta: Tensor, data: Data, weight: Weight) -> Tensor:
        raise ValueError(
            "Infinite width has no second derivatives in TensorFlow. Use kernel='hmc' or 'nuts'."
        )


@dataclass(frozen=True)
class SignedScales(Marginal):
    """The same posterior in scales u of either sign, with theta = log |u|.

    The covariance is smooth and even in them. Where a scale may vanish the density of its logarithm falls off
    on one side as slowly as exp(theta); that of the scale is about normal around zero.
    """

    def log_prior(self, theta: Tensor) -> Tensor:
        """Log prior density of u [C, P]: [C]."""
        log_scales = _log_scales(theta)
        return super().log_prior(log_scales) - tf.reduce_sum(log_scales, axis=-1)

    def log_likelihood_and_gradient(self, theta: Tensor, data: Data) -> WithGradient:
        """Log marginal likelihood [C], and its gradient in u [C, P]."""
        value, gradient = super().log_likelihood_and_gradient(_log_scales(theta), data)
        return value, gradient * theta / (theta**2 + _TINY**2)

    def coordinates(self, theta: Any, data: Any) -> Array:
        found: Array = np.exp(theta)
        return found

    def complete(self, coordinates: Tensor, normals: Tensor, data: Data) -> Draws:
        return _log_scales(coordinates), {}

    def curvature(self, coordinates: Array, data: Data) -> Array:
        """Second differences of the gradient at one point u [P], made positive definite [P, P]."""
        steps = _STEP * np.maximum(np.abs(coordinates), _STEP)
        around = coordinates + np.concatenate([np.diag(steps), np.diag(-steps)])
        _, gradients = self.value_and_gradient(tf.constant(around), data)
        above, below = np.split(gradients.numpy(), 2)
        matrix = (below - above) / (2.0 * steps[:, None])
        sizes = np.sqrt(np.maximum(np.abs(np.diagonal(matrix)), _LEAST_CURVATURE))
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T) / np.outer(sizes, sizes))
        found = (vectors * np.maximum(np.abs(values), _LEAST_SHARE)) @ vectors.T
        return found * np.outer(sizes, sizes)


def _log_scales(scales: Tensor) -> Tensor:
    return 0.5 * tf.math.log(scales**2 + _TINY**2)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where a trajectory diverges
def log_marginal(
    spec: InfiniteSpec, theta: Array, x: Array, y: Array, row_noise: Array | None
) -> tuple[float, Array]:
    """(Log marginal likelihood, its gradient [P] in theta) by Rasmussen and Williams 2006, eqs. 5.8 and 5.9.

    Args:
        spec: InfiniteSpec.
        theta: [P].
        x, y, row_noise: Rows on the scale the network sees [N, D], [N, K], [N, K] or None.

    Returns:
        Minus infinity, and zeros, where the covariance has no Cholesky factor.
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
        matrix = np.outer(precise, precise) - root.T @ root
        by_covariance += 0.5 * matrix
        if spec.layout.num_noise:
            place = noise.start + target
            gradient[place] = np.exp(2.0 * theta[place]) * np.trace(matrix)
    parts = layer_gradients(spec.activations, layers, x, prior.stages, by_covariance)
    for slot, part in zip(spec.layout.slots, (one for layer in parts for one in layer)):
        count = slot.scales.stop - slot.scales.start
        if count:
            gradient[slot.scales] = part if count > 1 else np.sum(part)
    return float(value) if np.isfinite(value) else -np.inf, gradient
