"""The log densities that are sampled: the posterior of networks, and a user's own density.

Pretraining, every kernel and `model.log_prob` use the same posterior.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data, earlier_data
from tfbnn.engine.density.densities import (
    Noise,
    row_log_likelihood,
    scale_log_prior,
    weight_log_prior,
)
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.row_blocks import (
    WithGradient,
    rows_per_block,
    sum_over_blocks,
    sum_over_rows,
    taped,
    value_and_gradient_over_rows,
)
from tfbnn.spec.density_spec import DensitySpec, Function, Sampled
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import WeightPrior, entries
from tfbnn.system.arrays import Array

# Weight of the likelihood: a number, or a float64 tensor of shape [] or [C].
Weight: TypeAlias = Tensor
# Theta [M, P], and further results by name.
Draws: TypeAlias = tuple[Tensor, dict[str, Tensor]]
# Prior of some weights, their slice of theta, and the slice of its scales.
Group: TypeAlias = tuple[WeightPrior, slice, slice]


def hessian(function: Callable[[Tensor], Tensor], theta: Tensor) -> Tensor:
    """Compute the second derivatives of a function at several points.

    The backward passes of the P components of the gradient are one batch and share the forward
    pass. Measured on 150 rows and P = 27, this took 85 us under XLA, against 180 us with P copies
    of the network. It is always float64: TensorFlow 2.21 on oneDNN corrupts memory in the batched
    products of float32 matrices that occur here (tensorflow issue 117700).

    Args:
        function: Function theta [C, P] -> [C], each value depending only on its own point.
        theta: Points [C, P], float64.

    Returns:
        Symmetric matrices [C, P, P], float64.
    """
    with tf.GradientTape() as outer:
        outer.watch(theta)
        _, gradient = taped(function, theta)
    matrix = outer.batch_jacobian(gradient, theta, unconnected_gradients="zero")
    return 0.5 * (matrix + tf.linalg.matrix_transpose(matrix))


@dataclass(frozen=True)
class Density(ABC):
    """Log density log p(theta) + w log p(D | theta) up to a constant, for a batch of positions.

    Densities are pure functions of tensors and return float64 [C] for every dtype of theta [C, P].
    The weight w is a number, a scalar float64 tensor, or a float64 tensor [C]. Where the weight is
    zero, value and gradient are those of the prior, even if the likelihood overflows.

    Chains run in the density's own coordinates, which are theta itself here. The subclasses in
    `tfbnn.engine.density.reparametrisation` have other coordinates and convert kept draws to theta.

    Attributes:
        spec: Spec of the model or log density.
    """

    spec: Sampled

    @property
    def num_normals(self) -> int:
        """Number of standard normal numbers that `complete` needs per draw."""
        return 0

    @property
    def in_theta(self) -> Array:
        """Index in theta of every coordinate: integers [number of coordinates]."""
        return np.arange(self.spec.num_parameters)

    def coordinates(self, theta: Any, data: Any) -> Any:
        """Convert theta [C, P] to coordinates, NumPy, outside compiled programs."""
        return theta

    def complete(self, coordinates: Tensor, normals: Tensor, data: Data) -> Draws:
        """Convert coordinates to the draws that are kept.

        Args:
            coordinates: Coordinates [M, number of coordinates].
            normals: Standard normal numbers [M, num_normals].
            data: Data.

        Returns:
            (theta [M, P], dict of further results per draw, in the dtype of the spec).
        """
        return coordinates, {}

    @property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper limits of theta, the box: float64 [P] each, infinite without a limit."""
        high = np.full(self.spec.num_parameters, np.inf)
        return -high, high

    @property
    def prior_scales(self) -> Array:
        """Fixed prior scale of every coordinate of the density, float64; 1 without a fixed scale."""
        return np.ones(len(self.in_theta))

    @abstractmethod
    def log_prior(self, theta: Tensor) -> Tensor:
        """Compute the part that does not depend on the weight, [C]."""

    @abstractmethod
    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        """Compute the part that the weight multiplies, with the power of one, [C]."""

    def log_likelihood_and_gradient(self, theta: Tensor, data: Data) -> WithGradient:
        """Compute the log likelihood and its gradient [C, P] in the dtype of theta."""
        return taped(lambda theta: self.log_likelihood(theta, data), theta)

    @abstractmethod
    def why_not_finite(self, theta: Tensor, data: Data, chain: int) -> str:
        """Explain why the density is not finite at a chain's start theta [1, P], with advice."""

    def log_prob(self, theta: Tensor, data: Data, weight: Weight = 1.0) -> Tensor:
        """Compute log prior + `weight` * log likelihood with the power of the spec."""
        return self.log_prior(theta) + self.powered_log_likelihood(theta, data, weight)

    def powered_log_likelihood(self, theta: Tensor, data: Data, weight: Weight) -> Tensor:
        """Compute `weight` * log likelihood with the power of the spec, see `log_prob`."""
        inside = _where_it_counts(theta, weight)
        likelihood = _where_it_counts(self.log_likelihood(inside, data), weight)
        return weight * self.spec.likelihood_power * likelihood

    def value_and_gradient(self, theta: Tensor, data: Data, weight: Weight = 1.0) -> WithGradient:
        """Compute the log density [C] in float64 and its gradient [C, P] in the dtype of theta."""
        prior, of_prior = taped(self.log_prior, theta)
        inside = _where_it_counts(theta, weight)
        likelihood, of_likelihood = (
            _where_it_counts(values, weight)
            for values in self.log_likelihood_and_gradient(inside, data)
        )
        power = weight * self.spec.likelihood_power
        # Convert a number directly to float64; TensorFlow would round it to float32 by default.
        factor = tf.cast(tf.convert_to_tensor(power, tf.float64), theta.dtype)[..., None]
        return prior + power * likelihood, of_prior + factor * of_likelihood

    def hessian(self, theta: Tensor, data: Data, weight: Weight) -> Tensor:
        """Compute the second derivatives [C, P, P] of `log_prob` at theta by row blocks, all float64."""
        num_points, size = theta.shape

        def of_likelihood(rows: Data) -> Tensor:
            return hessian(lambda point: self.powered_log_likelihood(point, rows, weight), theta)

        length = rows_per_block(self.spec, num_points * size)
        zeros = tf.zeros([num_points, size, size], tf.float64)
        likelihood = sum_over_blocks(of_likelihood, zeros, data, length)
        return hessian(self.log_prior, theta) + likelihood


def _where_it_counts(values: Tensor, weight: Weight) -> Tensor:
    """Return values [C, ...] with zeros where the likelihood has no weight.

    Zero times an infinite likelihood would be NaN, and networks are finite at theta = 0.
    """
    if not (tf.is_tensor(weight) and weight.shape.rank):
        return values
    counts = tf.reshape(weight > 0, [-1] + [1] * (values.shape.rank - 1))
    return tf.where(counts, values, tf.zeros_like(values))


@dataclass(frozen=True)
class Potential(Density):
    """Log posterior log p(theta | data) of networks up to the evidence.

    Attributes:
        spec: NetworkSpec.
    """

    spec: NetworkSpec

    @property
    def limits(self) -> tuple[Array, Array]:
        """Box of the bounded priors, as in `Density`."""
        low, high = super().limits
        for prior, span, _ in self.spec.weight_groups():
            low[span], high[span] = self.spec.limits_of(prior)
        return low, high

    @property
    def prior_scales(self) -> Array:
        """Scales of the weights' priors, as in `Density`; 1 in ntk, where the network has the scales."""
        scales = np.ones(self.spec.num_parameters)
        if not self.spec.is_ntk:
            for prior, span, _ in self.spec.weight_groups():
                scales[span] = 1.0 if prior.scale is None else entries(prior.scale)
        return scales

    def log_prior(self, theta: Tensor) -> Tensor:
        """Compute the log prior of weights, noise scales and prior scales, in the sampled coordinates."""
        weights = self.weights_log_prior(theta, self.spec.weight_groups())
        log_prior = self.scales_log_prior(theta) + weights
        if self.spec.earlier is None:
            return log_prior
        return log_prior + self.earlier_log_prob(theta)

    def earlier_log_prob(self, theta: Tensor) -> Tensor:
        """Compute the log likelihood of earlier rows in one block, which can be differentiated."""
        rows = earlier_data(self.spec, theta.dtype.name)
        return sum_over_rows(self.row_log_likelihood, theta, rows, rows.length)

    def weights_log_prior(self, theta: Tensor, groups: Iterable[Group]) -> Tensor:
        """Compute the log prior of weights in some of the spec's `weight_groups`, given their scales."""
        total = tf.zeros(theta.shape[:1], tf.float64)
        for prior, span, scale_span in groups:
            # In ntk the network contains the scale, and the parameters have prior scale 1.
            scale = 1.0 if self.spec.is_ntk else None
            if prior.scale_prior is not None and not self.spec.is_ntk:
                scale = tf.exp(theta[:, scale_span])
            total += weight_log_prior(prior, theta[:, span], scale)
        return total

    def scales_log_prior(self, theta: Tensor) -> Tensor:
        """Compute the log prior of noise scales and prior scales."""
        layout, total = self.spec.layout, tf.zeros(theta.shape[:1], tf.float64)
        if layout.num_noise:
            log_noise_scale = theta[:, layout.log_noise_scale]
            total += scale_log_prior(self.spec.likelihood.scale_prior, log_noise_scale)
        for prior, _, scale_span in self.spec.weight_groups():
            if prior.scale_prior is not None:
                total += scale_log_prior(prior.scale_prior, theta[:, scale_span])
        return total

    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        """Compute the log likelihood of all rows and targets of `data`, with the power of one."""
        length = rows_per_block(self.spec, theta.shape[0])
        return sum_over_rows(self.row_log_likelihood, theta, data, length)

    def row_log_likelihood(self, theta: Tensor, rows: Data) -> Tensor:
        """Compute the log likelihood of every row, summed over targets: [C, L] in float64."""
        outputs = network_outputs(self.spec, theta, rows.x)
        noise = Noise(theta[:, self.spec.layout.log_noise_scale], rows.row_noise)
        return row_log_likelihood(self.spec.likelihood, outputs, rows.y, noise)

    def log_likelihood_and_gradient(self, theta: Tensor, data: Data) -> WithGradient:
        """Compute the log likelihood [C] in float64, power one, and its gradient [C, P] in theta's dtype."""
        length = rows_per_block(self.spec, theta.shape[0])
        return value_and_gradient_over_rows(self.row_log_likelihood, theta, data, length)

    def curvature(self, coordinates: Array, data: Data) -> Array:
        """Compute the curvature of minus the log density at one point [P], to whiten the coordinates.

        The result is positive semi-definite [P, P], NumPy, float64; see
        `tfbnn.engine.density.gauss_newton`.
        """
        return gauss_newton_matrix(self.spec, coordinates, data)

    def why_not_finite(self, theta: Tensor, data: Data, chain: int) -> str:
        """Explain whether the prior, the outputs or their likelihood is not finite."""
        theta = tf.convert_to_tensor(theta)
        log_prior = float(self.log_prior(theta)[0])
        if not np.isfinite(log_prior):
            return (
                f"The log prior is {log_prior} where chain {chain} starts. With a Uniform prior, "
                "pretraining may have left the box: use pretraining=None or a wider box."
            )
        outputs = network_outputs(self.spec, theta, data.rows().x).numpy()[0]
        rows = np.flatnonzero(~np.isfinite(outputs).all(axis=0))
        if len(rows):
            return (
                f"The network's output is not finite for {len(rows)} training rows where chain "
                f"{chain} starts, first for row {rows[0]}. Use x_transform='standardize', a narrower "
                "prior or dtype='float64'."
            )
        return (
            f"The log likelihood is not finite where chain {chain} starts, though every output is. "
            "Use y_transform='standardize', a larger noise_scale or dtype='float64'."
        )


@dataclass(frozen=True)
class FunctionDensity(Density):
    """Sum of a user's own functions: the only one, or the second of two, is the likelihood."""

    spec: DensitySpec

    def log_prior(self, theta: Tensor) -> Tensor:
        if len(self.spec.functions) == 1:
            return tf.zeros(theta.shape[:1], tf.float64)
        return self._value(self.spec.functions[0], theta)

    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        return self._value(self.spec.functions[-1], theta)

    def why_not_finite(self, theta: Tensor, data: Data, chain: int) -> str:
        parts = zip(self.spec.own_names, self.spec.functions)
        values = ", ".join(f"{name} is {float(self._value(f, theta)[0])}" for name, f in parts)
        return (
            f"The log density is not finite where chain {chain} starts: {values}. Start elsewhere."
        )

    @staticmethod
    def _value(function: Function, theta: Tensor) -> Tensor:
        return tf.cast(function(theta), tf.float64)
