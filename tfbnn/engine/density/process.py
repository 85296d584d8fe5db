"""The log density of a network of infinite width: weights are integrated out, scales are sampled.

Given its scales theta the targets are normal, with the covariance of `tfbnn.spec.limit_kernels` and noise.
All of it is float64, and none of it is for XLA: XLA on a CPU factorises matrices up to 25 times as slowly as
TensorFlow does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import Any

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import WithGradient
from tfbnn.spec.infinite_spec import NOISE_FLOOR, InfiniteSpec
from tfbnn.spec.likelihoods import LEARNED
from tfbnn.spec.limit_kernels import Covariance, covariance, layer_gradients
from tfbnn.system.arrays import Array

# Step in log scales of the second differences, and the least curvature in any direction: about that of the
# prior of a log scale, so that one which the rows do not tell is not taken for infinitely wide.
_STEP, _LEAST_CURVATURE = 1e-3, 0.5


@dataclass(frozen=True)
class Marginal(Potential):
    """log p(theta | data) of networks of infinite width."""

    spec: InfiniteSpec

    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        """Log marginal likelihood [C], float64; TensorFlow differentiates it as often as wanted."""
        return tf.map_fn(lambda one: self._value(one, data)[0], theta)

    def log_likelihood_and_gradient(self, theta: Tensor, data: Data) -> WithGradient:
        """The same and its gradient [C, P], in closed form."""
        kind = (tf.float64, tf.float64)
        return tf.map_fn(lambda one: self._with_gradient(one, data), theta, fn_output_signature=kind)

    def curvature(self, coordinates: Array, data: Data) -> Array:
        """Second differences of the gradient at one point [P], positive definite [P, P]."""
        from tfbnn.engine.density.value_and_gradient import make_value_and_gradient

        steps = _STEP * np.eye(len(coordinates))
        around = np.concatenate([coordinates + steps, coordinates - steps])
        _, gradients = make_value_and_gradient(self, data)(around)
        above, below = np.split(gradients, 2)
        matrix = (below - above) / (2.0 * _STEP)
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        return (vectors * np.maximum(np.abs(values), _LEAST_CURVATURE)) @ vectors.T

    def why_not_finite(self, theta: Tensor, data: Data, chain: int) -> str:
        return (
            f"The log density is not finite where chain {chain} starts: the covariance of the rows has no "
            "Cholesky factor. Use x_transform='standardize', priors of smaller scales or more noise."
        )

    def _value(self, theta: Tensor, data: Data) -> tuple[Tensor, list[Tensor], list[Tensor], Any]:
        """(Log marginal likelihood [], of each target the inverse root and the precision times y, Covariance)."""
        found, y, total = self._covariance(theta, data), data.y[:, data.first : data.last], 0.0
        roots, solved = [], []
        for target, variance in enumerate(self._noise_variances(theta, data)):
            factor = tf.linalg.cholesky(tf.linalg.set_diag(found.c, tf.linalg.diag_part(found.c) + variance))
            root = tf.linalg.triangular_solve(factor, tf.eye(tf.shape(factor)[0], dtype=tf.float64))
            white = tf.linalg.matvec(root, y[target])
            squares = tf.reduce_sum(white**2) + tf.cast(data.num_rows, tf.float64) * log(2.0 * pi)
            total -= 0.5 * squares + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
            roots.append(root)
            solved.append(tf.linalg.matvec(root, white, transpose_a=True))
        return total, roots, solved, found

    def _with_gradient(self, theta: Tensor, data: Data) -> tuple[Tensor, Tensor]:
        """Log marginal likelihood [] and its gradient [P] (Rasmussen and Williams 2006, eq. 5.9)."""
        import tensorflow.experimental.numpy as tnp

        spec = self.spec
        total, roots, solved, found = self._value(theta, data)
        by_noise, by_covariance = [], 0.0
        log_noise = theta[spec.layout.log_noise_scale]
        for target, (root, precise) in enumerate(zip(roots, solved)):
            matrix = precise[:, None] * precise - tf.matmul(root, root, transpose_a=True)
            by_covariance += 0.5 * matrix
            if spec.layout.num_noise:
                by_noise.append(tf.exp(2.0 * log_noise[target]) * tf.linalg.trace(matrix))
        layers = spec.layer_variances(tnp, theta)
        x = tf.transpose(data.x[:, data.first : data.last])
        by_layers = layer_gradients(tnp, layers, x, found.stages, by_covariance)
        parts = [tf.stack(by_noise)] if by_noise else []
        slots = iter(spec.layout.slots)
        for gradient in (one for layer in by_layers for one in layer):
            place = next(slots).scales
            if place.stop > place.start:
                of_inputs = tf.reshape(gradient, [-1])
                parts.append(of_inputs if place.stop - place.start > 1 else tf.reduce_sum(of_inputs)[None])
        return total, tf.concat(parts, axis=0) if parts else tf.zeros([0], tf.float64)

    def _covariance(self, theta: Tensor, data: Data) -> Covariance:
        import tensorflow.experimental.numpy as tnp

        x = tf.transpose(data.x[:, data.first : data.last])
        return covariance(tnp, self.spec.activations, self.spec.layer_variances(tnp, theta), x, x)

    def _noise_variances(self, theta: Tensor, data: Data) -> list[Tensor]:
        """Variances of the noise of each target, [N] or []."""
        spec, row_noise = self.spec, data.row_noise
        given, found = spec.likelihood.noise_scale, []
        for target in range(spec.num_targets):
            variance = tf.constant(NOISE_FLOOR**2, tf.float64)
            if given == LEARNED:
                variance += tf.exp(2.0 * theta[spec.layout.log_noise_scale][target])
            elif row_noise is None:
                variance += float(np.broadcast_to(given, spec.num_targets)[target]) ** 2
            if row_noise is not None:
                variance += row_noise[target, data.first : data.last] ** 2
            found.append(variance)
        return found
