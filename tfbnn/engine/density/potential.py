"""The one posterior density: pretraining, every kernel and `model.log_prob` use this and no other."""

from dataclasses import dataclass

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.densities import row_log_likelihood, scale_log_prior, weight_log_prior
from tfbnn.engine.density.density import Density
from tfbnn.engine.density.earlier import earlier_data
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix
from tfbnn.engine.density.hessian import hessian
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.row_blocks import (
    rows_per_block,
    sum_over_blocks,
    sum_over_rows,
    value_and_gradient_over_rows,
)
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import entries
from tfbnn.system.arrays import Array


def support(spec: NetworkSpec) -> tuple[Array, Array]:
    """Limits of theta by Uniform priors, the box: float64 [P] each, infinite where there are none."""
    low = np.full(spec.layout.num_parameters, -np.inf)
    high = -low
    for prior, place, _ in spec.weight_groups():
        low[place], high[place] = prior.limits
    return low, high


@dataclass(frozen=True)
class Potential(Density):
    """log p(theta | data) of networks up to the evidence.

    Attributes:
        spec: NetworkSpec.
    """

    spec: NetworkSpec

    @property
    def limits(self):
        """The box of Uniform priors, as in `Density`."""
        return support(self.spec)

    @property
    def prior_scales(self):
        """The scales of the weights' priors, as in `Density`; in ntk the network has them."""
        scales = np.ones(self.spec.num_parameters)
        if not self.spec.is_ntk:
            for prior, place, _ in self.spec.weight_groups():
                scales[place] = 1.0 if prior.scale is None else entries(prior.scale)
        return scales

    @property
    def power(self):
        """The power of the likelihood of the spec."""
        return self.spec.likelihood_power

    def log_prior(self, theta):
        """Log prior of weights, noise scales and prior scales, in the sampled coordinates."""
        weights = self.weights_log_prior(theta, self.spec.weight_groups())
        log_prior = self.scales_log_prior(theta) + weights
        if self.spec.earlier is None:
            return log_prior
        return log_prior + self.earlier_log_prob(theta)

    def earlier_log_prob(self, theta):
        """Log likelihood of the spec's earlier rows, in one block that can be differentiated."""
        rows = earlier_data(self.spec, theta.dtype.name)
        return sum_over_rows(self.row_log_likelihood, theta, rows, rows.length)

    def weights_log_prior(self, theta, groups):
        """Log prior of the weights in some of the spec's `weight_groups`, given their scales."""
        total = tf.zeros(theta.shape[:1], tf.float64)
        for prior, place, scale_place in groups:
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

    def log_likelihood(self, theta, data):
        """Log likelihood summed over all rows and targets of `data`, to the power of one."""
        length = rows_per_block(self.spec, theta.shape[0])
        return sum_over_rows(self.row_log_likelihood, theta, data, length)

    def row_log_likelihood(self, theta, rows):
        """Log likelihood of every row, summed over targets: [C, L] in float64."""
        outputs = network_outputs(self.spec, theta, rows.x)
        log_noise = theta[:, self.spec.layout.log_noise_scale]
        return row_log_likelihood(self.spec.likelihood, outputs, log_noise, rows.y, rows.row_noise)

    def log_likelihood_and_gradient(self, theta, data):
        """Log likelihood [C] in float64, to the power of one, and its gradient [C, P] as theta's."""
        length = rows_per_block(self.spec, theta.shape[0])
        return value_and_gradient_over_rows(self.row_log_likelihood, theta, data, length)

    def hessian(self, theta, data, likelihood_weight):
        """As in `Density`, row block by row block."""
        num_networks, size = theta.shape

        def of_likelihood(rows):
            return hessian(
                lambda point: self.powered_log_likelihood(point, rows, likelihood_weight), theta
            )

        length = rows_per_block(self.spec, num_networks * size)
        zeros = tf.zeros([num_networks, size, size], tf.float64)
        likelihood = sum_over_blocks(of_likelihood, zeros, data, length)
        return hessian(self.log_prior, theta) + likelihood

    def curvature(self, coordinates, data):
        """Curvature of minus the log density at one point [P], for whitening the coordinates.

        Positive semi-definite [P, P], NumPy, float64; see `tfbnn.engine.density.gauss_newton`.
        """
        return gauss_newton_matrix(self.spec, coordinates, data)

    def why_not_finite(self, theta, data, chain):
        """As in `Density`: whether the prior, the outputs or their likelihood is at fault."""
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
