"""The one posterior density: pretraining, every kernel and `model.log_prob` use this and no other."""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.densities import row_log_likelihood, scale_log_prior, weight_log_prior
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.row_blocks import (
    rows_per_block,
    sum_over_rows,
    taped,
    value_and_gradient_over_rows,
)
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.system.arrays import Array


def support(spec: ModelSpec) -> tuple[Array, Array]:
    """Limits of theta by Uniform priors, the box: float64 [P] each, infinite where there are none."""
    low = np.full(spec.layout.num_parameters, -np.inf)
    high = -low
    for prior, place, _ in spec.weight_groups():
        low[place], high[place] = prior.limits
    return low, high


@dataclass(frozen=True)
class Potential:
    """log p(theta | data) up to the evidence, for a batch of networks.

    Densities are pure functions of tensors: float64 [C] whatever the dtype of theta [C, P].

    Chains run in the potential's own coordinates, which are theta itself here; the subclasses in
    `tfbnn.engine.density.reparametrisation` have others and turn them into theta for the draws that are
    kept.

    Attributes:
        spec: ModelSpec.
    """

    spec: ModelSpec

    # Standard normal numbers that `complete` needs for a draw.
    num_normals = 0

    @property
    def in_theta(self):
        """Which entry of theta every coordinate belongs to: integers [number of coordinates]."""
        return np.arange(self.spec.layout.num_parameters)

    def coordinates(self, theta, data):
        """The coordinates of theta [C, P], NumPy, outside compiled programs."""
        del data
        return theta

    def complete(self, coordinates, normals, data):
        """Networks of kept draws.

        Args:
            coordinates: [M, number of coordinates].
            normals: Standard normal numbers [M, num_normals].
            data: Data.

        Returns:
            (theta [M, P], dict name -> what else is `found` about each draw).
        """
        del normals, data
        return coordinates, {}

    def found(self, data):
        """What `complete` finds out about a draw besides theta: dict name -> (shape, dtype)."""
        del data
        return {}

    def log_prob(self, theta, data, likelihood_weight=1.0):
        """Log prior + `likelihood_weight` * log likelihood to the power that the spec gives it.

        Args:
            theta: Parameters [C, P].
            data: Data.
            likelihood_weight: A number, or one in a float64 tensor; or a float64 tensor [C], whose
                zeros leave the prior alone, value and gradient, even where the likelihood overflows.
        """
        return self.log_prior(theta) + self.powered_log_likelihood(theta, data, likelihood_weight)

    def log_prior(self, theta):
        """Log prior of weights, noise scales and prior scales, in the sampled coordinates."""
        every = len(self.spec.layout.layers)
        return self.scales_log_prior(theta) + self.weights_log_prior(theta, every)

    def weights_log_prior(self, theta, num_layers):
        """Log prior of kernels and biases of the first layers, given their scales."""
        total = tf.zeros(theta.shape[:1], tf.float64)
        for prior, place, scale_place in islice(self.spec.weight_groups(), 2 * num_layers):
            # In ntk the scale sits in the network and the parameters have prior scale 1.
            scale = 1.0 if self.spec.is_ntk else None
            if prior.scale_prior is not None and not self.spec.is_ntk:
                scale = tf.exp(theta[:, scale_place])
            total += weight_log_prior(prior, theta[:, place], scale)
        return total

    def scales_log_prior(self, theta):
        """Log prior of noise scales and of prior scales."""
        layout, total = self.spec.layout, tf.zeros(theta.shape[:1], tf.float64)
        if layout.num_noise:
            log_noise_scale = theta[:, layout.log_noise_scale]
            total += scale_log_prior(self.spec.likelihood.scale_prior, log_noise_scale)
        for prior, _, place in self.spec.weight_groups():
            if prior.scale_prior is not None:
                total += scale_log_prior(prior.scale_prior, theta[:, place])
        return total

    def powered_log_likelihood(self, theta, data, likelihood_weight):
        """`likelihood_weight` * log likelihood to the power of the spec, see `log_prob`."""
        inside = _away_from_rows(theta, likelihood_weight)
        power = likelihood_weight * self.spec.likelihood_power
        return power * self.log_likelihood(inside, data)

    def log_likelihood(self, theta, data):
        """Log likelihood summed over all rows and targets of `data`, to the power of one."""
        length = rows_per_block(self.spec, theta.shape[0])
        return sum_over_rows(self.row_log_likelihood, theta, data, length)

    def row_log_likelihood(self, theta, rows):
        """Log likelihood of every row, summed over targets: [C, L] in float64."""
        outputs = network_outputs(self.spec, theta, rows.x)
        log_noise = theta[:, self.spec.layout.log_noise_scale]
        return row_log_likelihood(self.spec.likelihood, outputs, log_noise, rows.y, rows.row_noise)

    def value_and_gradient(self, theta, data, likelihood_weight=1.0):
        """Log density [C] in float64 and its gradient [C, P] in the dtype of theta."""
        prior, of_prior = taped(self.log_prior, theta)
        inside = _away_from_rows(theta, likelihood_weight)
        likelihood, of_likelihood = self.log_likelihood_and_gradient(inside, data)
        power = likelihood_weight * self.spec.likelihood_power
        # A number straight to float64: by itself TensorFlow would round it to float32.
        weight = tf.cast(tf.convert_to_tensor(power, tf.float64), theta.dtype)[..., None]
        return prior + power * likelihood, of_prior + weight * of_likelihood

    def log_likelihood_and_gradient(self, theta, data):
        """Log likelihood [C] in float64, to the power of one, and its gradient [C, P] as theta's."""
        length = rows_per_block(self.spec, theta.shape[0])
        return value_and_gradient_over_rows(self.row_log_likelihood, theta, data, length)

    def curvature(self, coordinates, data):
        """Curvature of minus the log density at one point [P], for whitening the coordinates.

        Positive semi-definite [P, P], NumPy, float64; see `tfbnn.engine.density.gauss_newton`.
        """
        return gauss_newton_matrix(self.spec, coordinates, data)


def _away_from_rows(theta, likelihood_weight):
    """Theta with zeros where the likelihood has no weight: zero times infinity is NaN."""
    if not (tf.is_tensor(likelihood_weight) and likelihood_weight.shape.rank):
        return theta
    return tf.where(likelihood_weight[:, None] > 0, theta, tf.zeros_like(theta))
