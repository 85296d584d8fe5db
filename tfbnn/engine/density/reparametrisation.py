"""Potentials in coordinates in which the readout, the last layer, is nearly standard normal.

With Gaussian noise and a normal prior, the readout's posterior given the earlier weights is normal
in closed form. The map from standard normal numbers to this posterior defines coordinates in which
the readout is standard normal. `RepriorisedPotential` samples in these coordinates. `Collapsed`
omits the readout and draws it afterwards. `tfbnn.engine.density.regression` computes the posterior
by row blocks.

References:
    Hron, Novak, Pennington and Sohl-Dickstein 2022, arXiv:2206.07673.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density import conjugate
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.densities import weight_log_prior
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix
from tfbnn.engine.density.potential import Draws, Potential, Weight
from tfbnn.engine.density.regression import (
    ReadoutRegression,
    all_but_readout,
    entries,
    entry_scales,
    grouped,
    is_conjugate,
    num_features,
    readout_span,
    ungrouped,
    with_readout,
)
from tfbnn.engine.density.row_blocks import WithGradient, taped
from tfbnn.spec import priors
from tfbnn.system.arrays import Array


class _Readout(Potential):
    """Common base of the two potentials: the density without the readout, and draws of the readout."""

    # Noise variance in the map in place of the likelihood's, or None.
    regulariser: float | None = None

    @property
    def prior_scales(self) -> Array:
        """Prior scales of the coordinates; the coordinates of the readout have the scale 1."""
        scales = super().prior_scales
        scales[readout_span(self.spec)] = 1.0
        return scales[self.in_theta]

    def _regression(self, data: Data) -> ReadoutRegression:
        return ReadoutRegression(self.spec, data, self.regulariser)

    def _posterior(self, theta: Tensor, data: Data) -> conjugate.ReadoutPosterior:
        """Compute the conjugate.ReadoutPosterior of the readout given the rest of theta [C, P]."""
        regression = self._regression(data)
        return regression.posterior(regression.statistics(theta))

    def _draw(self, theta: Tensor, posterior: conjugate.ReadoutPosterior) -> tuple[Tensor, Tensor]:
        """Apply `conjugate.draw` to the standard normal numbers in the readout's slice of theta."""
        numbers = theta[:, readout_span(self.spec)]
        return conjugate.draw(posterior, grouped(self.spec, numbers, posterior.mean.shape[1]))

    def _with_v(self, theta: Tensor, v: Tensor) -> Tensor:
        """Return theta [C, P] with the readout given by v [C, G, p, J]."""
        return with_readout(self.spec, theta, entries(self.spec, theta, v))

    def log_prob(self, theta: Tensor, data: Data, weight: Weight = 1.0) -> Tensor:
        """Compute the log density of the coordinates, with the power of the spec."""
        return self.value_and_gradient(theta, data, weight)[0]

    def _collapsed_value_and_gradient(self, theta: Tensor, data: Data) -> WithGradient:
        """Compute the log density without the readout, and its gradient [C, P].

        The entries of the readout in theta have no effect, and their gradient is zero.
        """
        prior, of_prior = taped(self._log_prior_without_readout, theta)
        marginal, of_marginal = self._regression(data).log_marginal_and_gradient(theta)
        return marginal + prior, of_marginal + of_prior

    def _log_prior_without_readout(self, theta: Tensor) -> Tensor:
        readout = readout_span(self.spec)
        earlier = [
            group
            for group in self.spec.weight_groups()
            if not readout.start <= group[1].start < readout.stop
        ]
        return self.weights_log_prior(theta, earlier) + self.scales_log_prior(theta)

    def _collapsed_curvature(self, theta: Tensor, data: Data) -> Array:
        """Compute the curvature [P', P'] of the collapsed density at theta [1, P] with any readout."""
        span, others = readout_span(self.spec), all_but_readout(self.spec)
        theta = self._with_v(theta, self._posterior(theta, data).mean)[0].numpy()
        matrix = gauss_newton_matrix(self.spec, theta, data)
        mixed = matrix[others, span]
        explained = mixed @ np.linalg.solve(matrix[span, span], mixed.T)
        return matrix[np.ix_(others, others)] - 0.5 * (explained + explained.T)


@dataclass(frozen=True)
class RepriorisedPotential(_Readout):
    """Posterior in coordinates phi, which are theta with the readout replaced by normal numbers.

    Attributes:
        regulariser: Noise variance in the map, or None for that of the likelihood. With None, phi
            of the readout is standard normal, independent of the rest, if the model is conjugate.
    """

    regulariser: float | None = None

    def value_and_gradient(self, theta: Tensor, data: Data, weight: Weight = 1.0) -> WithGradient:
        """Compute the log density of phi [C, P], float64 [C], and its gradient [C, P] in phi's dtype."""
        if self.regulariser is None and is_conjugate(self.spec):
            # Phi of the readout is standard normal, independent of the rest.
            value, gradient = self._collapsed_value_and_gradient(theta, data)
            return value + self._log_density_of_numbers(theta), with_readout(
                self.spec, gradient, -theta[:, readout_span(self.spec)]
            )
        regression = self._regression(data)
        statistics = regression.statistics(theta)
        with tf.GradientTape() as tape:
            tape.watch([theta, *statistics])
            network, log_det = self._map(theta, regression.posterior(statistics))
        value, by_network = super().value_and_gradient(network, data, weight)
        gradient, *by_statistics = tape.gradient(
            [network, log_det], [theta, *statistics], [by_network, tf.ones_like(log_det)]
        )
        return value + log_det, gradient + regression.pull_back(theta, by_statistics)

    def _log_density_of_numbers(self, theta: Tensor) -> Tensor:
        return weight_log_prior(priors.Normal(1.0), theta[:, readout_span(self.spec)])

    def _map(self, theta: Tensor, posterior: conjugate.ReadoutPosterior) -> tuple[Tensor, Tensor]:
        """Map phi [C, P] to theta; return (theta, log determinant [C] of the map)."""
        v, log_dets = self._draw(theta, posterior)
        log_scales = tf.cast(tf.math.log(entry_scales(self.spec, theta)), tf.float64)
        log_det = tf.reduce_sum(log_dets, axis=-1) + tf.reduce_sum(log_scales, axis=-1)
        return self._with_v(theta, v), log_det

    def coordinates(self, theta: Any, data: Any) -> Array:
        """Map theta [C, P] to phi, NumPy."""
        theta = tf.convert_to_tensor(theta)
        posterior = self._posterior(theta, data)
        v = theta[:, readout_span(self.spec)] / entry_scales(self.spec, theta)
        v = grouped(self.spec, v, posterior.mean.shape[1])
        numbers = tf.cast(ungrouped(conjugate.to_normal(posterior, v)), theta.dtype)
        return with_readout(self.spec, theta, numbers).numpy()

    def complete(self, coordinates: Tensor, normals: Tensor, data: Data) -> Draws:
        """Convert kept draws to networks theta."""
        v, _ = self._draw(coordinates, self._posterior(coordinates, data))
        return self._with_v(coordinates, v), {}

    def curvature(self, coordinates: Array, data: Data) -> Array:
        """Return the curvature [P, P]: identity for the readout, that of the collapsed density else."""
        matrix, others = np.eye(len(coordinates)), all_but_readout(self.spec)
        theta = tf.constant(coordinates[None])
        matrix[np.ix_(others, others)] = self._collapsed_curvature(theta, data)
        return matrix


@dataclass(frozen=True)
class Collapsed(_Readout):
    """Posterior of all parameters except the readout, which is drawn only for kept draws.

    Attributes:
        keep_factor: Whether to keep a square root of the readout's covariance with every draw.
    """

    keep_factor: bool = False

    @property
    def num_normals(self) -> int:
        """Number of entries of the readout."""
        span = readout_span(self.spec)
        return span.stop - span.start

    @property
    def in_theta(self) -> Array:
        """Index in theta of every coordinate."""
        return all_but_readout(self.spec)

    def value_and_gradient(self, theta: Tensor, data: Data, weight: Weight = 1.0) -> WithGradient:
        """Compute the log density of coordinates [C, P'], float64 [C], and its gradient in their dtype."""
        value, gradient = self._collapsed_value_and_gradient(self._theta(theta), data)
        span = readout_span(self.spec)
        return value, tf.concat([gradient[:, : span.start], gradient[:, span.stop :]], axis=1)

    def coordinates(self, theta: Any, data: Any) -> Array:
        """Remove the readout from theta [C, P]."""
        return theta[:, self.in_theta]

    def complete(self, coordinates: Tensor, normals: Tensor, data: Data) -> Draws:
        """Convert kept draws to networks, with the mean and, if requested, covariance of the readout.

        "readout_factor" is an upper triangular square root of the covariance. It is stored by rows
        without the zeros, once for all outputs that share a noise scale.
        """
        theta = self._theta(coordinates, normals)
        posterior = self._posterior(theta, data)
        v, _ = self._draw(theta, posterior)
        found = {"readout_mean": entries(self.spec, theta, posterior.mean)}
        if self.keep_factor:
            found["readout_factor"] = self._packed_factor(theta, posterior)
        return self._with_v(theta, v), found

    def curvature(self, coordinates: Array, data: Data) -> Array:
        """Compute the curvature [P', P'] of the collapsed density."""
        return self._collapsed_curvature(self._theta(tf.constant(coordinates[None])), data)

    def _theta(self, coordinates: Tensor, readout: Tensor | None = None) -> Tensor:
        """Return theta [C, P] with the given entries of the readout, zeros by default."""
        if readout is None:
            readout = tf.zeros([coordinates.shape[0], self.num_normals], coordinates.dtype)
        start = readout_span(self.spec).start
        return tf.concat([coordinates[:, :start], readout, coordinates[:, start:]], axis=1)

    def _packed_factor(self, theta: Tensor, posterior: conjugate.ReadoutPosterior) -> Tensor:
        size = num_features(self.spec)
        scales = tf.reshape(entry_scales(self.spec, theta), [theta.shape[0], size, -1])
        root = tf.cast(scales[:, None, :, :1], tf.float64) * posterior.covariance_root
        rows, columns = np.triu_indices(size)
        flat = tf.reshape(root, [*root.shape[:2], size * size])
        return tf.cast(tf.gather(flat, rows * size + columns, axis=-1), theta.dtype)
