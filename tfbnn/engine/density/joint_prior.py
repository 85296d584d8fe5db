"""Density and curvature of a `NormalMixture`, the prior of all parameters together. Float64."""

from __future__ import annotations

from math import log, pi
from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.fisher import prior_curvature
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors.mixture import NormalMixture


def mixture_log_prob(prior: NormalMixture, theta: Tensor) -> Tensor:
    """Log density of theta [C, P]: [C], float64, normalised."""
    theta = tf.cast(theta, tf.float64)
    parts = [_component_log_prob(prior, index, theta) for index in range(prior.num_components)]
    return parts[0] if len(parts) == 1 else tf.reduce_logsumexp(tf.stack(parts), axis=0)


def _component_log_prob(prior: NormalMixture, index: int, theta: Tensor) -> Tensor:
    """Log of weight and density of one component at theta [C, P]: [C]."""
    scale, stretch = prior.scale.values[index], prior.stretch.values[index]
    directions = prior.directions.values[index]
    constant = (
        np.log(prior.weights.values[index])
        - np.log(scale).sum()
        - np.log(stretch).sum()
        - 0.5 * prior.num_parameters * log(2.0 * pi)
    )
    z = (theta - prior.loc.values[index]) / scale
    along = tf.matmul(z, directions)
    # What lies across the directions is formed before it is squared: a difference of squares would
    # lose digits where the directions have next to everything.
    across = z - tf.matmul(along, directions, transpose_b=True)
    squares = tf.reduce_sum(across**2, axis=1) + tf.reduce_sum((along / stretch) ** 2, axis=1)
    return constant - 0.5 * squares


class DiagonalPrecision(NamedTuple):
    """The curvature of priors that are independent: its diagonal [P]."""

    values: Tensor

    def diagonal(self) -> Tensor:
        return self.values

    def matrix(self) -> Tensor:
        """[P, P]."""
        return tf.linalg.diag(self.values)

    def times(self, vector: Tensor) -> Tensor:
        """The matrix times a vector [P]."""
        return self.values * vector


class MixturePrecision(NamedTuple):
    """The precision of one normal distribution, D^-1 (I + V (T^-2 - I) V^T) D^-1.

    Attributes:
        scale: [P].
        directions: [P, r].
        stretch: [r].
    """

    scale: Tensor
    directions: Tensor
    stretch: Tensor

    def diagonal(self) -> Tensor:
        return (1.0 + tf.linalg.matvec(self.directions**2, self._excess())) / self.scale**2

    def matrix(self) -> Tensor:
        """[P, P]."""
        shaped = tf.matmul(self.directions * self._excess(), self.directions, transpose_b=True)
        shaped += tf.eye(self.scale.shape[0], dtype=tf.float64)
        return shaped / (self.scale[:, None] * self.scale)

    def times(self, vector: Tensor) -> Tensor:
        """The matrix times a vector [P]."""
        z = vector / self.scale
        along = tf.linalg.matvec(self.directions, z, transpose_a=True)
        return (z + tf.linalg.matvec(self.directions, self._excess() * along)) / self.scale

    def _excess(self) -> Tensor:
        return self.stretch**-2.0 - 1.0


def prior_precision(spec: NetworkSpec, theta: Tensor) -> DiagonalPrecision | MixturePrecision:
    """Curvature of minus the log prior at one theta [P], positive semi-definite.

    Of a mixture it is the precision of the component that theta most likely comes from.
    """
    prior = spec.joint_prior
    if prior is None:
        return DiagonalPrecision(prior_curvature(spec, theta))
    theta = tf.cast(theta, tf.float64)[None]
    parts = [_component_log_prob(prior, index, theta)[0] for index in range(prior.num_components)]
    likeliest = tf.argmax(tf.stack(parts))
    arrays = (prior.scale, prior.directions, prior.stretch)
    return MixturePrecision(*(tf.constant(array.values)[likeliest] for array in arrays))
