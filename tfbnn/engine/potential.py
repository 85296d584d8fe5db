"""The one posterior density: pretraining, every kernel and `model.log_prob` use this and no other."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfbnn import priors
from tfbnn.engine.densities import log_likelihood, scale_log_prior, weight_log_prior
from tfbnn.engine.gauss_newton import gauss_newton_matrix, gauss_newton_product
from tfbnn.engine.network import network_outputs

__all__ = ["Data", "Potential", "make_data"]


class Data(NamedTuple):
    """Transformed training rows as tensors, rows last.

    Attributes:
        x: [D, N].
        y: [K, N].
        row_noise: Known standard deviations [K, N], or None.
    """

    x: object
    y: object
    row_noise: object

    def map(self, function):
        """The Data whose arrays are `function` of these; a missing one stays None."""
        return Data(*(None if array is None else function(array) for array in self))


def make_data(x, y, row_noise, dtype):
    """Puts transformed NumPy rows x [N, D], y [N, K], row_noise [N, K] or None on the device."""

    def rows_last(array):
        return tf.constant(np.ascontiguousarray(array.T), dtype)

    return Data(x, y, row_noise).map(rows_last)


class Potential:
    """log p(theta | data) up to the evidence, for a batch of networks.

    Densities are pure functions of tensors: float64 [C] whatever the dtype of theta [C, P].
    """

    def __init__(self, spec):
        self.spec = spec

    def log_prob(self, theta, data, likelihood_weight=1.0):
        """Log prior + `likelihood_weight` * log likelihood.

        Args:
            theta: Parameters [C, P].
            data: Data.
            likelihood_weight: A number; or a float64 tensor [C], whose zeros leave the prior alone,
                value and gradient, even where the likelihood overflows.
        """
        inside = theta
        if tf.is_tensor(likelihood_weight):
            # Zero times infinity is NaN, so the network never sees these rows.
            inside = tf.where(likelihood_weight[:, None] > 0, theta, tf.zeros_like(theta))
        return self.log_prior(theta) + likelihood_weight * self.log_likelihood(inside, data)

    def log_prior(self, theta):
        """Log prior of weights, noise scales and prior scales, in the sampled coordinates."""
        spec, total = self.spec, tf.zeros(theta.shape[:1], tf.float64)
        for slot, layer in zip(spec.layout.layers, spec.priors):
            total += self._group_log_prior(theta, layer.kernel, slot.kernel, slot.kernel_scale)
            total += self._group_log_prior(theta, layer.bias, slot.bias, slot.bias_scale)
        if spec.layout.num_noise:
            log_noise_scale = theta[:, spec.layout.log_noise_scale]
            total += scale_log_prior(spec.likelihood.scale_prior, log_noise_scale)
        return total

    def log_likelihood(self, theta, data):
        """Log likelihood summed over all rows and targets of `data`."""
        outputs = network_outputs(self.spec, theta, data.x)
        log_noise_scale = theta[:, self.spec.layout.log_noise_scale]
        return log_likelihood(
            self.spec.likelihood, outputs, log_noise_scale, data.y, data.row_noise
        )

    def value_and_gradient(self, theta, data, likelihood_weight=1.0):
        """Log density [C] in float64 and its gradient [C, P] in the dtype of theta."""
        with tf.GradientTape() as tape:
            tape.watch(theta)
            value = self.log_prob(theta, data, likelihood_weight)
        return value, tape.gradient(value, theta)

    def gauss_newton(self, theta, data):
        """Positive semi-definite curvature of minus the log density at one theta [P]: [P, P].

        NumPy, float64; see `tfbnn.engine.gauss_newton`.
        """
        return gauss_newton_matrix(self.spec, theta, data)

    def gauss_newton_product(self, theta, data, vector):
        """That matrix times a vector [P], without building it: for large P."""
        return gauss_newton_product(self.spec, theta, data, vector)

    def _group_log_prior(self, theta, prior, place, scale_place):
        weights = theta[:, place]
        # In ntk the scale sits in the network and the parameters have prior scale 1.
        if not isinstance(prior, priors.HierarchicalNormal):
            return weight_log_prior(prior, weights, 1.0 if self.spec.is_ntk else None)
        log_scale = theta[:, scale_place : scale_place + 1]
        scale = 1.0 if self.spec.is_ntk else tf.exp(log_scale)
        hyper = scale_log_prior(prior.scale_prior, log_scale)
        return weight_log_prior(prior, weights, scale) + hyper
