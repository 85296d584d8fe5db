"""The readout, the last layer, and the regression of a network's targets on its last hidden units.

Given the earlier weights, a network is linear in its readout. `tfbnn.engine.density.conjugate` has
the algebra, for features and targets divided by the noise scale. v is the readout in units of its
prior scales: [C, G, p, J], with J targets in each of the G groups of outputs that share a noise
scale. A power t of the likelihood is again of this form: N(y; f, s^2)^t = N(y; f, s^2 / t) sqrt(2
pi s^2 / t) / (2 pi s^2)^(t / 2).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi, prod
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import has_gpu
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density import conjugate
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.densities import Noise, layer_scales, noise_scale, per_weight
from tfbnn.engine.density.network import hidden_units
from tfbnn.engine.density.row_blocks import rows_per_block, sum_over_blocks
from tfbnn.spec import likelihoods
from tfbnn.spec.counts import CountLikelihood
from tfbnn.spec.network_spec import NetworkSpec, Readout
from tfbnn.spec.required import required_of
from tfbnn.system.arrays import Array


def readout_of(spec: NetworkSpec) -> Readout:
    """Return the readout of a network.

    Raises:
        ValueError: If the network has none.
    """
    if spec.readout is None:
        raise ValueError(
            "The last layer must be linear, have a bias, and be sampled, received "
            f"{spec.architecture_text}. End a Keras model with Dense(units), without an activation, or "
            "use another kernel."
        )
    return spec.readout


def is_conjugate(spec: NetworkSpec) -> bool:
    """Check whether the readout's posterior given all other parameters is normal in closed form."""
    prior = readout_of(spec).prior
    if spec.earlier is not None:
        return False
    return spec.likelihood.is_conjugate and prior.kernel.is_normal and prior.bias.is_normal


def num_features(spec: NetworkSpec) -> int:
    """Return p, the number of the readout's inputs plus one for its bias."""
    return readout_of(spec).layer.kernel.shape[0] + 1


def readout_span(spec: NetworkSpec) -> slice:
    """Return the slice of theta with the readout: kernel, then bias, [p, number of outputs] by rows."""
    return readout_of(spec).layer.weights


def all_but_readout(spec: NetworkSpec) -> Array:
    """Return the indices of theta outside the readout: integers [P']."""
    return np.delete(np.arange(spec.layout.num_parameters), np.r_[readout_span(spec)])


def with_readout(spec: NetworkSpec, theta: Tensor, readout: Tensor) -> Tensor:
    """Replace the readout in theta [C, P] by the given entries [C, p * outputs]."""
    span = readout_span(spec)
    return tf.concat([theta[:, : span.start], readout, theta[:, span.stop :]], axis=1)


def grouped(spec: NetworkSpec, readout: Tensor, num_groups: int) -> Tensor:
    """Reshape entries of theta [C, p * outputs] to [C, G, p, J]."""
    matrix = tf.reshape(readout, [readout.shape[0], -1, spec.num_outputs])
    if num_groups == 1:
        return matrix[:, None]
    return tf.linalg.matrix_transpose(matrix)[..., None]


def ungrouped(v: Tensor) -> Tensor:
    """Reshape [C, G, p, J] to entries of theta, the inverse of `grouped`."""
    matrix = v[:, 0] if v.shape[1] == 1 else tf.linalg.matrix_transpose(v[..., 0])
    return tf.reshape(matrix, [v.shape[0], -1])


def entries(spec: NetworkSpec, theta: Tensor, v: Tensor) -> Tensor:
    """Convert v [C, G, p, J] to entries of theta [C, p * outputs]."""
    return entry_scales(spec, theta) * tf.cast(ungrouped(v), theta.dtype)


def entry_scales(spec: NetworkSpec, theta: Tensor) -> Tensor:
    """Return the readout entries per unit of v [C, p * outputs]: prior scales, or 1 in ntk."""
    count, shape = theta.shape[0], readout_of(spec).layer.kernel.shape
    widths = (prod(shape), shape[1])
    if spec.is_ntk:
        return tf.ones([count, sum(widths)], theta.dtype)
    wide = [
        tf.broadcast_to(per_weight(scales, width), [count, width])
        for scales, width in zip(prior_scales(spec, theta), widths)
    ]
    return tf.concat(wide, axis=1)


def prior_scales(spec: NetworkSpec, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the prior scales of the readout as in `layer_scales`; 1 for a prior without a scale."""
    layer, prior = readout_of(spec)
    if not (prior.kernel.has_scale and prior.bias.has_scale):
        return (tf.ones([1, 1], theta.dtype),) * 2
    return layer_scales(layer, prior, theta)


# In a single block, the sums and the computations that need them share the hidden units. In several
# blocks these are computed twice, which costs more than the cache saves: 20-20 units on 11 746 rows
# took 1.9 ms in one block and 2.5 ms in two, 64-64-64 on 16 384 rows 19 ms and 29 ms in four.
_LONGER = 4
_HALF_LOG_2PI = 0.5 * log(2.0 * pi)


@required_of(likelihoods.Likelihood)
def readout_targets(likelihood: likelihoods.Likelihood, y: Tensor, num_outputs: int) -> Tensor:
    """Return the targets of the readout's regression for all outputs, from y [K, n] or [C, K, n]."""


@readout_targets.register(likelihoods.LocationScale)
@readout_targets.register(likelihoods.Bernoulli)
def _as_they_are(
    likelihood: likelihoods.LocationScale | likelihoods.Bernoulli, y: Tensor, num_outputs: int
) -> Tensor:
    return y


@readout_targets.register(CountLikelihood)
def _logarithms(likelihood: CountLikelihood, y: Tensor, num_outputs: int) -> Tensor:
    return tf.math.log(y + 0.5)


@readout_targets.register(likelihoods.HeteroscedasticGaussian)
def _means_and_scales(
    likelihood: likelihoods.HeteroscedasticGaussian, y: Tensor, num_outputs: int
) -> Tensor:
    return tf.concat([y, tf.zeros_like(y)], axis=-2)


@readout_targets.register(likelihoods.Categorical)
def _one_hot(likelihood: likelihoods.Categorical, y: Tensor, num_outputs: int) -> Tensor:
    return tf.cast(y == tf.range(num_outputs, dtype=y.dtype)[:, None], y.dtype)


@dataclass(frozen=True)
class ReadoutRegression:
    """Linear model of the readout, for a batch of networks.

    Outputs that share a noise scale have the same covariance and are J targets of one group.
    Outputs with their own noise scales are G groups of one target.

    Attributes:
        spec: NetworkSpec.
        data: Data.
        regulariser: Noise variance, or None for that of the likelihood with the power of the spec.
    """

    spec: NetworkSpec
    data: Data
    regulariser: float | None = None

    @property
    def num_groups(self) -> int:
        """Number G of groups of outputs."""
        nothing_learned = tf.zeros([1, self.spec.layout.num_noise], self.data.x.dtype)
        return int(self._noise_scale(nothing_learned, self.data).shape[1])

    @property
    def is_tall(self) -> bool:
        """True if the arrays hold at least as many rows as features, so that feature space is smaller."""
        return num_features(self.spec) <= self.data.length

    def sum(self, theta: Tensor, function: Callable[[Data], Any], zeros: Any) -> Any:
        """Sum function(rows) over blocks of rows; data space has a single block.

        See `tfbnn.engine.density.conjugate`.
        """
        length = self.data.length
        if self.is_tall:
            longer = 1 if has_gpu() else _LONGER
            length = longer * rows_per_block(self.spec, theta.shape[0] * self.num_groups)
        return sum_over_blocks(function, zeros, self.data, length)

    def statistics(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return the statistics of the posterior: sums of `conjugate.products`; in data space (x, y)."""
        if not self.is_tall:  # a single block, which needs no p x p zeros to begin the sums
            return self._statistics_of(theta, self.data)
        size, num_groups = num_features(self.spec), self.num_groups
        num_targets = self.spec.num_outputs // num_groups
        zeros = tuple(
            tf.zeros([theta.shape[0], num_groups, size, columns], tf.float64)
            for columns in (size, num_targets)
        )
        return self.sum(theta, lambda rows: self._statistics_of(theta, rows), zeros)

    def pull_back(self, theta: Tensor, by_statistics: list[Tensor]) -> Tensor:
        """Convert the gradient with respect to the statistics to that with respect to theta [C, P]."""

        def of_rows(rows: Data) -> Tensor:
            with tf.GradientTape() as tape:
                tape.watch(theta)
                statistics = self._statistics_of(theta, rows)
            return tape.gradient(statistics, theta, by_statistics, unconnected_gradients="zero")

        return tf.cast(self.sum(theta, of_rows, tf.zeros(theta.shape, tf.float64)), theta.dtype)

    def _statistics_of(self, theta: Tensor, rows: Data) -> tuple[Tensor, Tensor]:
        x, y, _ = self.of_rows(theta, rows)
        return conjugate.products(x, y) if self.is_tall else (x, y)

    def posterior(self, statistics: tuple[Tensor, Tensor]) -> conjugate.ReadoutPosterior:
        """Compute the posterior of v given all other parameters, from the `statistics`."""
        make = conjugate.in_feature_space if self.is_tall else conjugate.in_data_space
        return make(*statistics)

    def log_marginal_and_gradient(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the log likelihood without the readout, float64 [C], and its gradient [C, P].

        The readout is integrated out. The gradient has the dtype of theta.
        """
        posterior = self.posterior(self.statistics(theta))
        by_regression = conjugate.pull_back(posterior, theta.dtype)

        def of_rows(rows: Data) -> tuple[Tensor, Tensor, Tensor]:
            with tf.GradientTape() as tape:
                tape.watch(theta)
                x, y, excess = self.of_rows(theta, rows)
            residual = conjugate.residuals(posterior, x, y)
            upstream = [*by_regression(x, residual), -tf.ones_like(excess)]
            by_theta = tape.gradient([x, y, excess], theta, upstream, unconnected_gradients="zero")
            return tf.reduce_sum(residual**2, [-2, -1]), excess, by_theta

        shapes = [theta.shape[0], self.num_groups], theta.shape[:1], theta.shape
        zeros = tuple(tf.zeros(shape, tf.float64) for shape in shapes)
        squares, excess, gradient = self.sum(theta, of_rows, zeros)
        each = conjugate.log_marginal(posterior, squares, self.data.num_rows)
        return tf.reduce_sum(each, axis=-1) - excess, tf.cast(gradient, theta.dtype)

    def of_rows(self, theta: Tensor, rows: Data) -> tuple[Tensor, Tensor, Tensor]:
        """Return (x [C, G, p, n], y [C, G, J, n], log of the factor by which their density is too large [C]).

        With the likelihood power one, the last is the sum of the log scales by which x and y are
        divided. Rows that do not count are zeros, which do not affect the readout.
        """
        scale = self._noise_scale(theta[:, self.spec.layout.log_noise_scale], rows)
        num_outputs, num_groups = self.spec.num_outputs, scale.shape[1]
        num_targets = num_outputs // num_groups
        shape = [theta.shape[0], num_groups, rows.length]
        power = self.spec.likelihood_power if self.regulariser is None else 1.0
        excess = power * tf.cast(tf.math.log(scale), tf.float64) - (1.0 - power) * _HALF_LOG_2PI
        weight, excess = (
            rows.counted(tf.broadcast_to(values, shape)) for values in (power**0.5 / scale, excess)
        )
        targets = readout_targets(self.spec.likelihood, rows.y, num_outputs)
        targets = tf.reshape(targets, [*targets.shape[:-2], num_groups, num_targets, rows.length])
        return (
            self._weighted_features(theta, rows, weight[:, :, None]),
            weight[:, :, None] * targets,
            num_targets * tf.reduce_sum(excess, axis=[1, 2]),
        )

    def _noise_scale(self, log_noise_scale: Tensor, rows: Data) -> Tensor:
        """Return the noise scales [C or 1, G, n or 1]."""
        dtype = log_noise_scale.dtype
        if self.regulariser is not None:
            return tf.constant(self.regulariser**0.5, dtype, shape=[1, 1, 1])
        scale = noise_scale(self.spec.likelihood, Noise(log_noise_scale, rows.row_noise), dtype)
        return scale if scale.shape.rank == 3 else scale[None]

    def _weighted_features(self, theta: Tensor, rows: Data, weight: Tensor) -> Tensor:
        """Multiply the features of v, scaled hidden units and ones, by weights [C, G, 1, n]."""
        hidden = hidden_units(self.spec, theta, rows.x)
        # A network without hidden layers has the same features in every chain.
        hidden = hidden if hidden.shape.rank == 3 else hidden[None]
        kernel_scales, bias_scale = prior_scales(self.spec, theta)
        if self.spec.is_ntk:
            kernel_scales = kernel_scales / hidden.shape[1] ** 0.5
        # Combine scales and weights first, because every pass over the hidden units is one over
        # memory.
        kernel_weight, bias_weight = (
            scales[:, None, :, None] * weight for scales in (kernel_scales, bias_scale)
        )
        return tf.concat([kernel_weight * hidden[:, None], bias_weight], axis=2)
