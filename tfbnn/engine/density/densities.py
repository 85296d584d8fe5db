"""Normalised log densities in TensorFlow, registered for every prior and every likelihood.

Terms are computed in the dtype of the parameters and summed in float64: the sums have magnitudes of
N times a few units, and float32 would round them at the size of an acceptance ratio's numerator.
Those of the likelihood are of one row each; `tfbnn.engine.density.row_blocks` sums them.
"""

from __future__ import annotations

from math import lgamma, log, pi, sqrt
from typing import Any

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.own_classes import elementwise, moments_of
from tfbnn.engine.density.prior_scales import per_weight
from tfbnn.spec import likelihoods, priors
from tfbnn.spec.own_densities import CustomNoise, CustomPrior
from tfbnn.spec.priors import entries
from tfbnn.spec.required import required_of

_HALF_LOG_2PI = 0.5 * log(2.0 * pi)


@required_of(priors.WeightPrior)
def weight_log_prior(prior: priors.WeightPrior, weights: Tensor, scale: Tensor = None) -> Tensor:
    """Log density of weights [C, n] under a weight prior, float64 [C].

    Args:
        prior: A weight prior from tfbnn.priors.
        weights: Weights [C, n].
        scale: Prior scale, a number, or [C, m] of m that are sampled; None takes the one of the
            prior. The ntk parameterisation passes 1.
    """


@weight_log_prior.register(priors.Uniform)
def _uniform(prior, weights, scale=None):
    del scale  # there is none
    inside = tf.reduce_all((weights >= prior.low) & (weights <= prior.high), axis=-1)
    density = tf.constant(-weights.shape[-1] * log(prior.high - prior.low), tf.float64)
    return tf.where(inside, density, tf.constant(-float("inf"), tf.float64))


@weight_log_prior.register(priors.Laplace)
def _laplace(prior, weights, scale=None):
    scale, log_scale = _scale_of_weights(prior, weights, scale)
    return -_sum(tf.abs(weights / scale), -1) - weights.shape[-1] * (log_scale + log(2.0))


@weight_log_prior.register(priors.Normal)
def _normal(prior, weights, scale=None):
    if prior.has_scale:
        return _hierarchical(prior, weights, scale)
    loc, scales = (
        tf.constant(entries(setting), weights.dtype) for setting in (prior.loc, prior.scale)
    )
    return _hierarchical(prior, weights - loc, scales)


@weight_log_prior.register(priors.HierarchicalNormal)
def _hierarchical(prior, weights, scale=None):
    scale, log_scale = _scale_of_weights(prior, weights, scale)
    return -0.5 * _sum((weights / scale) ** 2, -1) - weights.shape[-1] * (log_scale + _HALF_LOG_2PI)


@weight_log_prior.register(CustomPrior)
def _own_prior(prior, weights, scale=None):
    if scale is None:
        return _sum(elementwise(prior, weights), -1)
    # In ntk theta has the weights over the scale of their prior.
    density = _sum(elementwise(prior, prior.scale * weights), -1)
    return density + weights.shape[-1] * log(prior.scale)


def _scale_of_weights(prior, weights, scale):
    """(what divides weights [C, n], the mean of its logarithm, float64 [C] or a number)."""
    scale = tf.convert_to_tensor(prior.scale if scale is None else scale, weights.dtype)
    log_scale = tf.cast(tf.math.log(scale), tf.float64)
    if not scale.shape.rank:
        return scale, log_scale
    return per_weight(scale, weights.shape[-1]), tf.reduce_mean(log_scale, axis=-1)


@required_of(priors.ScalePrior)
def scale_log_prior(prior: priors.ScalePrior, log_scale: Tensor) -> Tensor:
    """Log density of log(s), the Jacobian included, summed over the last axis: [C, n] -> [C]."""


@scale_log_prior.register(priors.LogNormal)
def _log_normal(prior, log_scale):
    z = (log_scale - prior.loc) / prior.scale
    return _sum(-0.5 * z**2 - log(prior.scale) - _HALF_LOG_2PI, -1)


@scale_log_prior.register(priors.InverseGamma)
def _inverse_gamma(prior, log_scale):
    # Variance v = s^2, and |dv / d log s| = 2 v.
    a, b = prior.concentration, prior.scale
    constant = a * log(b) - lgamma(a) + log(2.0)
    return _sum(constant - 2.0 * a * log_scale - b * tf.exp(-2.0 * log_scale), -1)


@scale_log_prior.register(priors.HalfNormal)
def _half_normal(prior, log_scale):
    ratio = tf.exp(log_scale) / prior.scale
    kernel = -0.5 * ratio**2 + 0.5 * log(2.0 / pi)
    return _sum(kernel - log(prior.scale) + log_scale, -1)


@scale_log_prior.register(priors.HalfCauchy)
def _half_cauchy(prior, log_scale):
    ratio = tf.exp(log_scale) / prior.scale
    kernel = -tf.math.log1p(ratio**2) + log(2.0 / pi)
    return _sum(kernel - log(prior.scale) + log_scale, -1)


@required_of(likelihoods.Likelihood)
def row_log_likelihood(
    likelihood: likelihoods.Likelihood,
    outputs: Tensor,
    log_noise_scale: Tensor,
    y: Tensor,
    row_noise: Tensor | None,
) -> Tensor:
    """Log likelihood of every row, summed over targets: [C, n], better in float64.

    Args:
        likelihood: A likelihood settings object.
        outputs: Network outputs [C, num_outputs, n].
        log_noise_scale: Learned log noise scales [C, number of them].
        y: Transformed targets [K, n] or [C, K, n]; class numbers of class likelihoods.
        row_noise: Known standard deviations [K, n] or [C, K, n], transformed, or None.
    """


@row_log_likelihood.register(likelihoods.Gaussian)
def _gaussian(likelihood, outputs, log_noise_scale, y, row_noise):
    residual = y - outputs
    scale = noise_scale(likelihood, log_noise_scale, row_noise, outputs.dtype)
    return _normal_noise(residual, scale)


@row_log_likelihood.register(likelihoods.StudentT)
def _student_t(likelihood, outputs, log_noise_scale, y, row_noise):
    residual, df = y - outputs, likelihood.df
    scale = noise_scale(likelihood, log_noise_scale, row_noise, outputs.dtype)
    spread = scale * sqrt((df - 2.0) / df)
    constant = lgamma(0.5 * (df + 1.0)) - lgamma(0.5 * df) - 0.5 * log(df * pi)
    tails = _float64(tf.math.log1p((residual / spread) ** 2 / df))
    return _sum(constant - 0.5 * (df + 1.0) * tails - _float64(tf.math.log(spread)), -2)


@row_log_likelihood.register(CustomNoise)
def _own_noise(likelihood, outputs, log_noise_scale, y, row_noise):
    scale = noise_scale(likelihood, log_noise_scale, row_noise, outputs.dtype)
    mean, stddev = moments_of(likelihood)
    density = elementwise(likelihood, (y - outputs) / scale * stddev + mean)
    return _sum(_float64(density) - _float64(tf.math.log(scale)) + log(stddev), -2)


@row_log_likelihood.register(likelihoods.HeteroscedasticGaussian)
def _heteroscedastic(likelihood, outputs, log_noise_scale, y, row_noise):
    location, raw = tf.split(outputs, 2, axis=1)
    scale = _add_in_quadrature(tf.nn.softplus(raw), row_noise)
    return _normal_noise(y - location, scale)


@row_log_likelihood.register(likelihoods.Bernoulli)
def _bernoulli(likelihood, outputs, log_noise_scale, y, row_noise):
    return -_sum(tf.nn.softplus((1.0 - 2.0 * y) * outputs), -2)


@row_log_likelihood.register(likelihoods.Categorical)
def _categorical(likelihood, outputs, log_noise_scale, y, row_noise):
    numbers = tf.range(outputs.shape[-2], dtype=outputs.dtype)[:, None]
    # The sum picks one entry without a gather, whose gradient would be a scatter.
    picked = tf.reduce_sum(tf.where(y == numbers, outputs, 0.0), axis=-2, keepdims=True)
    return -_float64(tf.reduce_logsumexp(outputs - picked, axis=-2))


def noise_scale(
    likelihood: likelihoods.Likelihood,
    log_noise_scale: Tensor,
    row_noise: Tensor | None,
    dtype: Any,
) -> Tensor:
    """Noise scales of a likelihood that has them, in a shape that fits outputs [C, K, n]."""
    if likelihood.noise_scale == likelihoods.LEARNED:
        return _add_in_quadrature(tf.exp(log_noise_scale)[:, :, None], row_noise)
    if row_noise is not None:
        return row_noise
    return tf.reshape(tf.constant(likelihood.noise_scale, dtype), [1, -1, 1])


def _add_in_quadrature(learned, row_noise):
    return learned if row_noise is None else tf.sqrt(learned**2 + row_noise**2)


def _normal_noise(residual, scale):
    squares, log_scale = _float64((residual / scale) ** 2), _float64(tf.math.log(scale))
    return _sum(-0.5 * squares - log_scale - _HALF_LOG_2PI, -2)


def _sum(values, axis):
    return tf.reduce_sum(_float64(values), axis=axis)


def _float64(values):
    return tf.cast(values, tf.float64)
