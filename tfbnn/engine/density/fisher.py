"""Curvature that likelihoods and priors contribute: Fisher information in the outputs and in scales.

The information Lambda in the outputs of one row is a diagonal matrix, or that of a categorical
distribution; both offer the two operations that the Gauss-Newton matrix is made of.

All float64. Laplace and Uniform priors enter with the precision of the normal of equal variance.
"""

from typing import NamedTuple

from tfbnn.engine.basis.libraries import tf
from tfbnn.spec import priors
from tfbnn.spec import regression_likelihoods as likelihoods


class DiagonalInformation(NamedTuple):
    """Lambda = diag(weights), weights [num_outputs, n]: of outputs that are independent."""

    weights: object

    def times(self, vectors):
        """Lambda times vectors [num_outputs, n]."""
        return self.weights * vectors

    def root_times(self, jacobian):
        """L^T J with Lambda = L L^T, for a Jacobian J [num_outputs, P, n], of the same shape."""
        return jacobian * tf.sqrt(self.weights)[:, None, :]


class CategoricalInformation(NamedTuple):
    """Lambda = diag(p) - p p^T, probabilities p [M, n]: of the logits of M classes.

    Its factor is L^T = diag(sqrt(p)) (I - 1 p^T), so that L L^T = diag(p) - p p^T because the
    probabilities add up to one. No matrix M x M is formed.
    """

    probabilities: object

    def times(self, vectors):
        """Lambda times vectors [M, n]."""
        mean = tf.reduce_sum(self.probabilities * vectors, axis=0)
        return self.probabilities * (vectors - mean)

    def root_times(self, jacobian):
        """L^T J for a Jacobian J [M, P, n], of the same shape."""
        weights = self.probabilities[:, None, :]
        mean = tf.reduce_sum(weights * jacobian, axis=0)
        return tf.sqrt(weights) * (jacobian - mean)


def likelihood_information(likelihood, outputs, log_noise_scale, row_noise):
    """Fisher information in the network outputs and in the learned noise scales.

    Args:
        likelihood: A likelihood settings object.
        outputs: Network outputs [num_outputs, n], float64.
        log_noise_scale: Learned log noise scales [number of them].
        row_noise: Known standard deviations [K, n], transformed, or None.

    Returns:
        (DiagonalInformation or CategoricalInformation in the outputs, information in the log noise
        scales [their number]).
    """
    if isinstance(likelihood, likelihoods.Categorical):
        probabilities = tf.nn.softmax(outputs, axis=0)
        return CategoricalInformation(probabilities), tf.zeros([0], outputs.dtype)
    weights, noise = _diagonal_information(likelihood, outputs, log_noise_scale, row_noise)
    return DiagonalInformation(weights), noise


def _diagonal_information(likelihood, outputs, log_noise_scale, row_noise):
    """(diagonal of Lambda [num_outputs, n], information in the log noise scales)."""
    if isinstance(likelihood, likelihoods.Bernoulli):
        # p (1 - p) without the cancellation in 1 - p.
        variance = tf.sigmoid(outputs) * tf.sigmoid(-outputs)
        return variance, tf.zeros([0], outputs.dtype)
    known = 0.0 if row_noise is None else row_noise**2
    if isinstance(likelihood, likelihoods.HeteroscedasticGaussian):
        raw = outputs[outputs.shape[0] // 2 :]
        learned = tf.nn.softplus(raw) ** 2
        variance = learned + known
        spread = 2.0 * learned * tf.sigmoid(raw) ** 2 / variance**2
        return tf.concat([1.0 / variance, spread], axis=0), tf.zeros([0], outputs.dtype)
    if likelihood.noise_scale == likelihoods.LEARNED:
        learned = tf.exp(2.0 * log_noise_scale)[:, None]
        variance = tf.broadcast_to(learned + known, outputs.shape)
    else:
        learned = tf.zeros([0, 1], outputs.dtype)
        fixed = tf.reshape(tf.constant(likelihood.noise_scale, outputs.dtype), [-1, 1])
        variance = tf.broadcast_to(fixed**2 if row_noise is None else known, outputs.shape)
    location, scale = 1.0, 2.0
    if isinstance(likelihood, likelihoods.StudentT):
        # Lange, Little and Taylor 1989, JASA 84, 881; noise_scale^2 is the variance.
        df = likelihood.df
        location, scale = (df + 1) / (df + 3) * df / (df - 2), 2.0 * df / (df + 3)
    if not log_noise_scale.shape[0]:
        return location / variance, tf.zeros([0], outputs.dtype)
    return location / variance, scale * tf.reduce_sum((learned / variance) ** 2, axis=1)


def prior_curvature(spec, theta):
    """Diagonal [P] of the prior's curvature at one theta [P], a float64 tensor.

    A sampled scale has the Fisher information 2 per weight that depends on it in the prior.
    """
    layout, theta = spec.layout, tf.cast(theta, tf.float64)
    weights, noise, scales = [], [], []
    for slot, layer in zip(layout.layers, spec.priors):
        for prior, place, scale_place in (
            (layer.kernel, slot.kernel, slot.kernel_scale),
            (layer.bias, slot.bias, slot.bias_scale),
        ):
            count, log_scale = place.stop - place.start, None
            if scale_place is not None:
                log_scale = theta[scale_place : scale_place + 1]
                depending = 0.0 if spec.is_ntk else 2.0 * count
                scales.append(_scale_curvature(prior.scale_prior, log_scale) + depending)
            precision = tf.cast(_weight_precision(spec, prior, log_scale), tf.float64)
            weights.append(tf.broadcast_to(precision, [count]))
    if layout.num_noise:
        log_noise_scale = theta[layout.log_noise_scale]
        noise.append(_scale_curvature(spec.likelihood.scale_prior, log_noise_scale))
    return tf.concat([*weights, *noise, *scales], axis=0)


def _weight_precision(spec, prior, log_scale):
    if isinstance(prior, priors.Uniform):
        return 12.0 / (prior.high - prior.low) ** 2
    if isinstance(prior, priors.HierarchicalNormal):
        return 1.0 if spec.is_ntk else tf.exp(-2.0 * log_scale)
    scale = 1.0 if spec.is_ntk else prior.scale
    return 0.5 / scale**2 if isinstance(prior, priors.Laplace) else 1.0 / scale**2


def _scale_curvature(prior, log_scale):
    """Minus the second derivatives of the log density of log(s), one per entry."""
    if isinstance(prior, priors.LogNormal):
        return tf.ones_like(log_scale) / prior.scale**2
    if isinstance(prior, priors.InverseGamma):
        return 4.0 * prior.scale * tf.exp(-2.0 * log_scale)
    ratio = tf.exp(2.0 * log_scale) / prior.scale**2
    return 2.0 * ratio if isinstance(prior, priors.HalfNormal) else 4.0 * ratio / (1 + ratio) ** 2
