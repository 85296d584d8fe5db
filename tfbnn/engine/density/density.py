"""What every sampler asks of what it samples; of networks and of plain functions alike."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.hessian import hessian
from tfbnn.engine.density.row_blocks import taped
from tfbnn.spec.density_spec import Sampled


@dataclass(frozen=True)
class Density(ABC):
    """log p(theta) + w log p(D | theta) up to a constant, for a batch of positions.

    Densities are pure functions of tensors: float64 [C] whatever the dtype of theta [C, P]. The weight
    w is a number, or one in a float64 tensor; or a float64 tensor [C], whose zeros leave the prior
    alone, value and gradient, even where the likelihood overflows.

    Chains run in the density's own coordinates, which are theta itself here; the subclasses in
    `tfbnn.engine.density.reparametrisation` have others and turn them into theta for the draws that are
    kept.

    Attributes:
        spec: What is sampled.
    """

    spec: Sampled

    # Standard normal numbers that `complete` needs for a draw.
    num_normals = 0

    @property
    def in_theta(self):
        """Which entry of theta every coordinate belongs to: integers [number of coordinates]."""
        return np.arange(self.spec.num_parameters)

    def coordinates(self, theta: Any, data: Any) -> Any:
        """The coordinates of theta [C, P], NumPy, outside compiled programs."""
        del data
        return theta

    def complete(self, coordinates, normals, data):
        """What is kept of draws.

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

    @property
    def limits(self):
        """(Lower, upper) limits of theta, the box: float64 [P] each, infinite where there are none."""
        high = np.full(self.spec.num_parameters, np.inf)
        return -high, high

    @property
    def prior_scales(self):
        """Fixed scales of the priors, in the density's coordinates: float64, one each; 1 where none is."""
        return np.ones(len(self.in_theta))

    @property
    def power(self):
        """The power to which the density has the likelihood where its weight is one."""
        return 1.0

    @abstractmethod
    def log_prior(self, theta):
        """The part that no weight touches, [C]."""

    @abstractmethod
    def log_likelihood(self, theta, data):
        """The part that the weight is of, to the power of one, [C]."""

    @abstractmethod
    def log_likelihood_and_gradient(self, theta, data):
        """The same and its gradient [C, P] in the dtype of theta."""

    @abstractmethod
    def why_not_finite(self, theta, data, chain):
        """Why the density is not finite at the start theta [1, P] of a chain, and what to do."""

    def log_prob(self, theta, data, likelihood_weight=1.0):
        """Log prior + `likelihood_weight` * log likelihood to the power that the density gives it."""
        return self.log_prior(theta) + self.powered_log_likelihood(theta, data, likelihood_weight)

    def powered_log_likelihood(self, theta, data, likelihood_weight):
        """`likelihood_weight` * log likelihood to the power of the density, see `log_prob`."""
        inside = _away_from_likelihood(theta, likelihood_weight)
        likelihood = _where_it_counts(self.log_likelihood(inside, data), likelihood_weight)
        return likelihood_weight * self.power * likelihood

    def value_and_gradient(self, theta, data, likelihood_weight=1.0):
        """Log density [C] in float64 and its gradient [C, P] in the dtype of theta."""
        prior, of_prior = taped(self.log_prior, theta)
        inside = _away_from_likelihood(theta, likelihood_weight)
        likelihood, of_likelihood = (
            _where_it_counts(values, likelihood_weight)
            for values in self.log_likelihood_and_gradient(inside, data)
        )
        power = likelihood_weight * self.power
        # A number straight to float64: by itself TensorFlow would round it to float32.
        weight = tf.cast(tf.convert_to_tensor(power, tf.float64), theta.dtype)[..., None]
        return prior + power * likelihood, of_prior + weight * of_likelihood

    def hessian(self, theta, data, likelihood_weight):
        """Second derivatives [C, P, P] of `log_prob` at theta, float64 both."""
        inside = _away_from_likelihood(theta, likelihood_weight)
        likelihood = hessian(lambda point: self.log_likelihood(point, data), inside)
        power = tf.convert_to_tensor(likelihood_weight * self.power, tf.float64)
        powered = power[..., None, None] * _where_it_counts(likelihood, likelihood_weight)
        return hessian(self.log_prior, theta) + powered


def _away_from_likelihood(theta, likelihood_weight):
    """Theta with zeros where the likelihood has no weight: networks are finite there."""
    if not _varies(likelihood_weight):
        return theta
    return tf.where(likelihood_weight[:, None] > 0, theta, tf.zeros_like(theta))


def _where_it_counts(values, likelihood_weight):
    """Values [C, ...] with zeros where the likelihood has no weight: zero times infinity is NaN."""
    if not _varies(likelihood_weight):
        return values
    counts = tf.reshape(likelihood_weight > 0, [-1] + [1] * (values.shape.rank - 1))
    return tf.where(counts, values, tf.zeros_like(values))


def _varies(likelihood_weight):
    return tf.is_tensor(likelihood_weight) and likelihood_weight.shape.rank
