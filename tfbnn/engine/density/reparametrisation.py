"""Potentials in coordinates of the readout, the last layer, in which it is nearly standard normal.

Given the earlier weights a network is linear in its readout. With Gaussian noise and a normal prior
the readout's posterior is normal in closed form, and the map that makes it from standard normal
numbers gives coordinates in which nothing is left to be learned about it: `Repriorised` samples in
these, `Collapsed` leaves the readout out and draws it afterwards. `tfbnn.engine.density.conjugate` has the
algebra, on features and targets divided by the noise scale.

References:
    Hron, Novak, Pennington and Sohl-Dickstein 2022, arXiv:2206.07673.
"""

from dataclasses import dataclass

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density import conjugate
from tfbnn.engine.density.densities import noise_scale, weight_log_prior
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix
from tfbnn.engine.density.network import hidden_units, weight_scales
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import taped
from tfbnn.spec import likelihoods, priors
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.required import required_of


def is_conjugate(spec: ModelSpec) -> bool:
    """Whether the readout's posterior given all else is normal in closed form."""
    readout = spec.priors[-1]
    return spec.likelihood.is_conjugate and readout.kernel.is_normal and readout.bias.is_normal


def num_features(spec: ModelSpec) -> int:
    """p, the readout's inputs and its bias."""
    return spec.layer_sizes[-2] + 1


def readout_place(spec: ModelSpec) -> slice:
    """Where theta has the readout: kernel, then bias, so [p, number of outputs] row by row."""
    slot = spec.layout.layers[-1]
    return slice(slot.kernel.start, slot.bias.stop)


@required_of(likelihoods.Likelihood)
def readout_targets(likelihood: likelihoods.Likelihood, y: Tensor, num_outputs: int) -> Tensor:
    """Targets of the readout's regression: y [K, N] or [C, K, N] -> the same with all outputs."""


@readout_targets.register(likelihoods.LocationScale)
@readout_targets.register(likelihoods.Bernoulli)
def _as_they_are(likelihood, y, num_outputs):
    return y


@readout_targets.register(likelihoods.HeteroscedasticGaussian)
def _means_and_scales(likelihood, y, num_outputs):
    return tf.concat([y, tf.zeros_like(y)], axis=-2)


@readout_targets.register(likelihoods.Categorical)
def _one_hot(likelihood, y, num_outputs):
    return tf.cast(y == tf.range(num_outputs, dtype=y.dtype)[:, None], y.dtype)


class _Readout(Potential):
    """What the two potentials share: the readout's linear model, and its map to theta.

    Outputs with a noise scale in common have the same covariance: they are J targets of one group;
    outputs with scales of their own are G groups of one target. v is the readout divided by its prior
    scale.
    """

    def value_and_gradient(self, theta, data, likelihood_weight=1.0):
        """Log density [C] in float64 and its gradient in the dtype of theta."""
        return taped(lambda theta: self.log_prob(theta, data, likelihood_weight), theta)

    # The noise variance that stands in for the likelihood's in the map, or None.
    regulariser = None

    def _collapsed_log_prob(self, theta, data):
        """Log density of everything but the readout, whose entries in theta do not matter."""
        x, y, log_scale = self._regression(theta, data)
        marginal = tf.reduce_sum(conjugate.log_marginal(x, y, data.num_rows), axis=-1) - log_scale
        earlier = self.weights_log_prior(theta, len(self.spec.layout.layers) - 1)
        return marginal + earlier + self.scales_log_prior(theta)

    def _regression(self, theta, data):
        """(x [C, G, p, N], y [C, G, J, N], sum of the log scales they are divided by [C])."""
        features = self._features(theta, data)[:, None]
        targets = readout_targets(self.spec.likelihood, data.y, self.spec.layer_sizes[-1])
        if self.regulariser is None:
            log_noise_scale = theta[:, self.spec.layout.log_noise_scale]
            scale = noise_scale(self.spec.likelihood, log_noise_scale, data.row_noise, theta.dtype)
            scale = scale if scale.shape.rank == 3 else scale[None]
        else:
            scale = tf.constant(self.regulariser**0.5, theta.dtype, shape=[1, 1, 1])
        num_groups, (num_outputs, num_rows) = scale.shape[1], targets.shape[-2:]
        shape = [num_groups, num_outputs // num_groups, num_rows]
        targets = tf.reshape(targets, [*targets.shape[:-2], *shape])
        scale = scale[:, :, None]
        # Rows of zeros say nothing about the readout.
        features, targets = (
            tf.where(data.counts, rows, tf.zeros_like(rows)) for rows in (features, targets)
        )
        x, y = features / scale, targets / scale
        log_scale = tf.cast(tf.math.log(scale), tf.float64)
        log_scales = tf.broadcast_to(log_scale, [*log_scale.shape[:-1], data.length])
        log_scales = tf.where(data.counts, log_scales, 0.0)
        total = y.shape[-2] * tf.reduce_sum(log_scales, axis=[1, 2, 3])
        return x, tf.broadcast_to(y, [*x.shape[:2], *y.shape[2:]]), total

    def _features(self, theta, data):
        """What multiplies v [C, p, N]: hidden units and a line of ones, scaled."""
        spec, last = self.spec, len(self.spec.layout.layers) - 1
        hidden = hidden_units(spec, theta, data.x)
        kernel_scale, bias_scale = _prior_scales(spec, theta, last)
        if spec.is_ntk:
            kernel_scale = kernel_scale / spec.layer_sizes[-2] ** 0.5
        hidden = kernel_scale[..., None] * hidden
        ones = bias_scale[..., None] * tf.ones_like(hidden[:, :1])
        # A network without hidden layers has the same features in every chain.
        shape = [theta.shape[0], *hidden.shape[1:]]
        ones = tf.broadcast_to(ones, [shape[0], 1, shape[2]])
        return tf.concat([tf.broadcast_to(hidden, shape), ones], axis=1)

    def _grouped(self, readout, num_groups):
        """Entries of theta [C, p * outputs] as [C, G, p, J]."""
        matrix = tf.reshape(readout, [readout.shape[0], -1, self.spec.layer_sizes[-1]])
        if num_groups == 1:
            return matrix[:, None]
        return tf.linalg.matrix_transpose(matrix)[..., None]

    def _ungrouped(self, v):
        """The inverse of `_grouped`."""
        matrix = v[:, 0] if v.shape[1] == 1 else tf.linalg.matrix_transpose(v[..., 0])
        return tf.reshape(matrix, [v.shape[0], -1])

    def _scales_of_readout(self, theta):
        """Entries of the readout per unit of v [C, p * outputs]: prior scales, or 1 in ntk."""
        shape, sizes = theta.shape[0], self.spec.layer_sizes
        if self.spec.is_ntk:
            return tf.ones([shape, (sizes[-2] + 1) * sizes[-1]], theta.dtype)
        scales = _prior_scales(self.spec, theta, len(sizes) - 2)
        widths = (sizes[-2] * sizes[-1], sizes[-1])
        wide = [tf.broadcast_to(scale, [shape, width]) for scale, width in zip(scales, widths)]
        return tf.concat(wide, axis=1)

    def _draw(self, theta, data):
        """The conjugate.Draw made from the standard normal numbers in the readout's place."""
        x, y, _ = self._regression(theta, data)
        normal = self._grouped(theta[:, readout_place(self.spec)], x.shape[1])
        return conjugate.draw(x, y, normal)

    def _entries(self, theta, v):
        """v [C, G, p, J] as entries of theta [C, p * outputs]."""
        return self._scales_of_readout(theta) * tf.cast(self._ungrouped(v), theta.dtype)

    def _with_readout(self, theta, readout):
        """Theta [C, P] with other entries of the readout."""
        place = readout_place(self.spec)
        return tf.concat([theta[:, : place.start], readout, theta[:, place.stop :]], axis=1)

    @property
    def _others(self):
        """The entries of theta that are not the readout's."""
        place = readout_place(self.spec)
        return np.delete(np.arange(self.spec.layout.num_parameters), np.r_[place])

    def _collapsed_curvature(self, theta, data):
        """Curvature of the collapsed density, from theta [1, P] with any readout: [P', P']."""
        place, others = readout_place(self.spec), self._others
        mean = self._draw(theta, data).mean
        theta = self._with_readout(theta, self._entries(theta, mean))[0].numpy()
        matrix = gauss_newton_matrix(self.spec, theta, data)
        mixed = matrix[others, place]
        explained = mixed @ np.linalg.solve(matrix[place, place], mixed.T)
        return matrix[np.ix_(others, others)] - 0.5 * (explained + explained.T)


@dataclass(frozen=True)
class Repriorised(_Readout):
    """The posterior in coordinates phi: theta with the readout replaced by normal numbers.

    Attributes:
        regulariser: Noise variance in the map; None for that of the likelihood, with which phi of
            the readout is standard normal whatever the rest, if the model is conjugate.
    """

    regulariser: float | None = None

    def log_prob(self, theta, data, likelihood_weight=1.0):
        """Log density of phi [C, P]; the posterior's, not that of a power of the likelihood."""
        if self.regulariser is None and is_conjugate(self.spec):
            normal = weight_log_prior(priors.Normal(1.0), theta[:, readout_place(self.spec)])
            return self._collapsed_log_prob(theta, data) + normal
        drawn, scales = self._draw(theta, data), self._scales_of_readout(theta)
        log_scales = tf.reduce_sum(tf.cast(tf.math.log(scales), tf.float64), axis=-1)
        theta = self._with_readout(theta, self._entries(theta, drawn.v))
        log_det = tf.reduce_sum(drawn.log_det, axis=-1) + log_scales
        return super().log_prob(theta, data, likelihood_weight) + log_det

    def coordinates(self, theta, data):
        """phi of theta [C, P], NumPy."""
        theta = tf.convert_to_tensor(theta)
        x, y, _ = self._regression(theta, data)
        v = theta[:, readout_place(self.spec)] / self._scales_of_readout(theta)
        normal = conjugate.to_normal(x, y, self._grouped(v, x.shape[1]))
        return self._with_readout(theta, tf.cast(self._ungrouped(normal), theta.dtype)).numpy()

    def complete(self, coordinates, normals, data):
        """Networks of kept draws."""
        drawn = self._draw(coordinates, data)
        return self._with_readout(coordinates, self._entries(coordinates, drawn.v)), {}

    def curvature(self, coordinates, data):
        """The identity for the readout, the collapsed density's curvature for the rest [P, P]."""
        matrix, others = np.eye(len(coordinates)), self._others
        theta = tf.constant(coordinates[None])
        matrix[np.ix_(others, others)] = self._collapsed_curvature(theta, data)
        return matrix


@dataclass(frozen=True)
class Collapsed(_Readout):
    """The posterior of everything but the readout, which is drawn for the kept draws alone.

    Attributes:
        keep_factor: Whether kept draws come with a square root of the readout's covariance.
    """

    keep_factor: bool = False

    @property
    def num_normals(self):
        """Entries of the readout."""
        place = readout_place(self.spec)
        return place.stop - place.start

    def found(self, data):
        """The readout's mean, and with `keep_factor` the square root of its covariance.

        The root is upper triangular, its rows one after the other without the zeros, and one for all
        outputs that have their noise scale in common.
        """
        found = {"readout_mean": ((self.num_normals,), self.spec.dtype)}
        if self.keep_factor:
            size, learned = num_features(self.spec), self.spec.layout.num_noise
            log_scale = tf.zeros([1, learned], self.spec.dtype)
            scale = noise_scale(self.spec.likelihood, log_scale, data.row_noise, self.spec.dtype)
            groups = scale.shape[-2]
            found["readout_factor"] = ((groups, size * (size + 1) // 2), self.spec.dtype)
        return found

    @property
    def in_theta(self):
        """Which entry of theta every coordinate belongs to."""
        return self._others

    def log_prob(self, theta, data, likelihood_weight=1.0):
        """Log density of the coordinates [C, P']; the posterior's, not that of a power."""
        return self._collapsed_log_prob(self._theta(theta), data)

    def coordinates(self, theta, data):
        """Theta [C, P] without the readout."""
        return theta[:, self._others]

    def complete(self, coordinates, normals, data):
        """Networks of kept draws, with the mean and perhaps the spread of their readouts."""
        theta = self._theta(coordinates, normals)
        drawn = self._draw(theta, data)
        found = {"readout_mean": self._entries(theta, drawn.mean)}
        if self.keep_factor:
            found["readout_factor"] = self._packed_factor(theta, data)
        return self._with_readout(theta, self._entries(theta, drawn.v)), found

    def curvature(self, coordinates, data):
        """Curvature of the collapsed density [P', P']."""
        return self._collapsed_curvature(self._theta(tf.constant(coordinates[None])), data)

    def _theta(self, coordinates, readout=None):
        """Theta [C, P] with the given entries of the readout, by default zeros."""
        if readout is None:
            readout = tf.zeros([coordinates.shape[0], self.num_normals], coordinates.dtype)
        start = readout_place(self.spec).start
        return tf.concat([coordinates[:, :start], readout, coordinates[:, start:]], axis=1)

    def _packed_factor(self, theta, data):
        size = num_features(self.spec)
        root = conjugate.covariance_root(self._regression(theta, data)[0])
        scales = tf.reshape(self._scales_of_readout(theta), [theta.shape[0], size, -1])
        root = tf.cast(scales[:, None, :, :1], tf.float64) * root
        rows, columns = np.triu_indices(size)
        flat = tf.reshape(root, [*root.shape[:2], size * size])
        return tf.cast(tf.gather(flat, rows * size + columns, axis=-1), theta.dtype)


def _prior_scales(spec, theta, index):
    """Prior scales of kernel and bias [C or 1, 1]; of a prior that has none, 1."""
    readout = spec.priors[index]
    if not (readout.kernel.has_scale and readout.bias.has_scale):
        return (tf.ones([1, 1], theta.dtype),) * 2
    return weight_scales(spec, theta, index)
