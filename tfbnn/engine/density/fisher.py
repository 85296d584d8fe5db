"""Curvature of likelihoods and priors: Fisher information in the outputs and in the scales.

The information Lambda in the outputs of one row is a diagonal matrix, or that of a categorical
distribution. Both provide the two operations that the Gauss-Newton matrix needs.

All values are float64. Laplace and Uniform priors contribute the precision of the normal with equal
variance. A user's own priors contribute the precision of the normal whose central 68.27 % interval
is equally wide.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple, Self, TypeAlias

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.densities import (
    Noise,
    log_rates,
    noise_information,
    per_weight,
)
from tfbnn.spec import counts, likelihoods, priors
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.own_densities import CustomNoise, CustomPrior
from tfbnn.spec.priors import entries
from tfbnn.spec.required import required_of


class DiagonalInformation(NamedTuple):
    """Information of independent outputs: Lambda = diag(weights), weights [num_outputs, n]."""

    weights: Tensor

    def of_rows(self, counts: Tensor) -> Self:
        """Return the information with the rows weighted by `counts`, [n] or [1, n]."""
        return self._replace(weights=self.weights * counts)

    def times(self, vectors: Tensor) -> Tensor:
        """Multiply vectors [num_outputs, n] by Lambda."""
        return self.weights * vectors

    def root_times(self, jacobian: Tensor) -> Tensor:
        """Compute L^T J with Lambda = L L^T for a Jacobian J [num_outputs, P, n], in its shape."""
        return jacobian * tf.sqrt(self.weights)[:, None, :]


class CategoricalInformation(NamedTuple):
    """Information of the logits of M classes: Lambda = diag(p) - p p^T, probabilities p [M, n].

    The factor is L^T = diag(sqrt(p)) (I - 1 p^T). Then L L^T = diag(p) - p p^T, because the
    probabilities add up to one. No matrix M x M is formed. `counts` is the weight of a row, a
    number or [1, n].
    """

    probabilities: Tensor
    counts: Tensor | float = 1.0

    def of_rows(self, counts: Tensor) -> Self:
        """Return the information with the rows weighted by `counts`, [n] or [1, n]."""
        return self._replace(counts=tf.reshape(counts, [1, -1]))

    def times(self, vectors: Tensor) -> Tensor:
        """Multiply vectors [M, n] by Lambda."""
        mean = tf.reduce_sum(self.probabilities * vectors, axis=0)
        return self.counts * self.probabilities * (vectors - mean)

    def root_times(self, jacobian: Tensor) -> Tensor:
        """Compute L^T J for a Jacobian J [M, P, n], in its shape."""
        weights = self.probabilities[:, None, :]
        mean = tf.reduce_sum(weights * jacobian, axis=0)
        return tf.sqrt(self.counts * weights) * (jacobian - mean)


Fisher: TypeAlias = tuple[DiagonalInformation | CategoricalInformation, Tensor]


@required_of(likelihoods.Likelihood)
def likelihood_information(  # type: ignore[empty-body]  # others are registered for each class
    likelihood: likelihoods.Likelihood, outputs: Tensor, noise: Noise
) -> Fisher:
    """Compute the Fisher information in the network outputs and in the learned noise scales.

    Args:
        likelihood: A likelihood settings object.
        outputs: Outputs of one network [num_outputs, n], float64.
        noise: Noise.

    Returns:
        (DiagonalInformation or CategoricalInformation in the outputs, information of every row in
        the log noise scales [number of scales, n]).
    """


@likelihood_information.register(likelihoods.Categorical)
def _categorical(likelihood: likelihoods.Categorical, outputs: Tensor, noise: Noise) -> Fisher:
    return CategoricalInformation(tf.nn.softmax(outputs, axis=0)), tf.zeros_like(outputs[:0])


@likelihood_information.register(likelihoods.Bernoulli)
def _bernoulli(likelihood: likelihoods.Bernoulli, outputs: Tensor, noise: Noise) -> Fisher:
    # p (1 - p) without the cancellation in 1 - p.
    variance = tf.sigmoid(outputs) * tf.sigmoid(-outputs)
    return DiagonalInformation(variance), tf.zeros_like(outputs[:0])


@likelihood_information.register(counts.Poisson)
def _poisson(likelihood: counts.Poisson, outputs: Tensor, noise: Noise) -> Fisher:
    return DiagonalInformation(tf.exp(log_rates(outputs, noise))), tf.zeros_like(outputs[:0])


@likelihood_information.register(counts.NegativeBinomial)
def _negative_binomial(
    likelihood: counts.NegativeBinomial, outputs: Tensor, noise: Noise
) -> Fisher:
    mean = tf.exp(log_rates(outputs, noise))
    if likelihood.noise_scale != likelihoods.LEARNED:
        scatter = tf.reshape(tf.constant(likelihood.noise_scale, mean.dtype), [-1, 1]) ** 2 * mean
        return DiagonalInformation(mean / (1.0 + scatter)), tf.zeros_like(outputs[:0])
    scatter = tf.exp(2.0 * noise.log_scale)[:, None] * mean
    # The information in the log scale is that of a normal distribution with this variance.
    return DiagonalInformation(mean / (1.0 + scatter)), 2.0 * (scatter / (1.0 + scatter)) ** 2


@likelihood_information.register(likelihoods.HeteroscedasticGaussian)
def _heteroscedastic(
    likelihood: likelihoods.HeteroscedasticGaussian, outputs: Tensor, noise: Noise
) -> Fisher:
    raw = outputs[outputs.shape[0] // 2 :]
    learned = tf.nn.softplus(raw) ** 2
    variance = learned + (0.0 if noise.of_rows is None else noise.of_rows**2)
    spread = 2.0 * learned * tf.sigmoid(raw) ** 2 / variance**2
    weights = tf.concat([1.0 / variance, spread], axis=0)
    return DiagonalInformation(weights), tf.zeros_like(outputs[:0])


@likelihood_information.register(likelihoods.Gaussian)
def _gaussian(likelihood: likelihoods.Gaussian, outputs: Tensor, noise: Noise) -> Fisher:
    return _location_scale(likelihood, outputs, noise, (1.0, 2.0))


@likelihood_information.register(likelihoods.StudentT)
def _student_t(likelihood: likelihoods.StudentT, outputs: Tensor, noise: Noise) -> Fisher:
    # Lange, Little and Taylor 1989, JASA 84, 881; noise_scale^2 is the variance.
    df = likelihood.df
    information = (df + 1) / (df + 3) * df / (df - 2), 2.0 * df / (df + 3)
    return _location_scale(likelihood, outputs, noise, information)


@likelihood_information.register(CustomNoise)
def _own_noise(likelihood: CustomNoise, outputs: Tensor, noise: Noise) -> Fisher:
    return _location_scale(likelihood, outputs, noise, noise_information(likelihood))


def _location_scale(
    likelihood: likelihoods.Likelihood, outputs: Tensor, noise: Noise, unit: tuple[float, float]
) -> Fisher:
    """Compute the information of noise with information `unit` in location and log scale at variance 1."""
    location, scale = unit
    known = 0.0 if noise.of_rows is None else noise.of_rows**2
    if likelihood.noise_scale == likelihoods.LEARNED:
        learned = tf.exp(2.0 * noise.log_scale)[:, None]
        variance = tf.broadcast_to(learned + known, outputs.shape)
        return DiagonalInformation(location / variance), scale * (learned / variance) ** 2
    fixed = tf.reshape(tf.constant(likelihood.noise_scale, outputs.dtype), [-1, 1])
    variance = tf.broadcast_to(fixed**2 if noise.of_rows is None else known, outputs.shape)
    return DiagonalInformation(location / variance), tf.zeros_like(outputs[:0])


def prior_curvature(spec: NetworkSpec, theta: Tensor) -> Tensor:
    """Compute the diagonal [P] of the prior's curvature at one theta [P], a float64 tensor.

    A sampled scale has the Fisher information 2 for each weight whose prior depends on it.
    """
    layout, theta = spec.layout, tf.cast(theta, tf.float64)
    weights, noise, scales = [], [], []
    for prior, span, scale_span in spec.weight_groups():
        count, log_scales = span.stop - span.start, None
        if prior.scale_prior is not None:
            log_scales = theta[scale_span]
            depending = 0.0 if spec.is_ntk else 2.0 * count / log_scales.shape[0]
            scales.append(scale_curvature(prior.scale_prior, log_scales) + depending)
        precision = tf.cast(weight_precision(prior, log_scales, spec.is_ntk), tf.float64)
        precision = per_weight(tf.reshape(precision, [-1]), count)
        weights.append(tf.broadcast_to(precision, [count]))
    if layout.num_noise:
        log_noise_scale = theta[layout.log_noise_scale]
        noise.append(scale_curvature(spec.likelihood.scale_prior, log_noise_scale))
    return tf.concat([*weights, *noise, *scales], axis=0)


@lru_cache(maxsize=32)
def compiled_prior_curvature(spec: NetworkSpec) -> Callable[[Tensor], Tensor]:
    """Compile `prior_curvature` of one model, because uncompiled it takes milliseconds."""
    return compiled(partial(prior_curvature, spec), jit_compile=False)


@required_of(priors.WeightPrior)
def weight_precision(prior: priors.WeightPrior, log_scales: Tensor, is_ntk: bool) -> Tensor:
    """Return the inverse prior variance of the sampled weights: a number, or several [m].

    Several numbers are one per scale or one per weight.

    Args:
        prior: A weight prior.
        log_scales: Its sampled log scales [m], or None.
        is_ntk: Whether the network contains the scale, so that the weights have prior scale 1.
    """


@weight_precision.register(priors.Uniform)
def _uniform(prior: priors.Uniform, log_scales: Tensor, is_ntk: bool) -> Tensor:
    return 12.0 / (prior.high - prior.low) ** 2


@weight_precision.register(priors.HierarchicalNormal)
def _hierarchical(prior: priors.HierarchicalNormal, log_scales: Tensor, is_ntk: bool) -> Tensor:
    return 1.0 if is_ntk else tf.exp(-2.0 * log_scales)


@weight_precision.register(priors.Laplace)
def _laplace(prior: priors.Laplace, log_scales: Tensor, is_ntk: bool) -> Tensor:
    return 0.5 / (1.0 if is_ntk else prior.scale) ** 2


@weight_precision.register(priors.Normal)
def _normal(prior: priors.Normal, log_scales: Tensor, is_ntk: bool) -> Tensor:
    return 1.0 / (1.0 if is_ntk else entries(prior.scale)) ** 2


@weight_precision.register(CustomPrior)
def _own_prior(prior: CustomPrior, log_scales: Tensor, is_ntk: bool) -> Tensor:
    return 1.0 / (prior.spread / (prior.scale or 1.0) if is_ntk else prior.spread) ** 2


@required_of(priors.ScalePrior)
def scale_curvature(prior: priors.ScalePrior, log_scale: Tensor) -> Tensor:
    """Compute minus the second derivatives of the log density of log(s), one per entry."""


@scale_curvature.register(priors.LogNormal)
def _log_normal(prior: priors.LogNormal, log_scale: Tensor) -> Tensor:
    return tf.ones_like(log_scale) / prior.scale**2


@scale_curvature.register(priors.InverseGamma)
def _inverse_gamma(prior: priors.InverseGamma, log_scale: Tensor) -> Tensor:
    return 4.0 * prior.scale * tf.exp(-2.0 * log_scale)


@scale_curvature.register(priors.HalfNormal)
def _half_normal(prior: priors.HalfNormal, log_scale: Tensor) -> Tensor:
    return 2.0 * (tf.exp(2.0 * log_scale) / prior.scale**2)


@scale_curvature.register(priors.HalfCauchy)
def _half_cauchy(prior: priors.HalfCauchy, log_scale: Tensor) -> Tensor:
    ratio = tf.exp(2.0 * log_scale) / prior.scale**2
    return 4.0 * ratio / (1 + ratio) ** 2
