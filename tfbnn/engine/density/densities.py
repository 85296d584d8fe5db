"""Normalised log densities in TensorFlow: one function per prior and per likelihood.

Terms are computed in the dtype of the parameters and summed in float64: the sums have magnitudes of
N times a few units, and float32 would round them at the size of an acceptance ratio's numerator.
"""

from math import lgamma, log, pi, sqrt

from tfbnn.engine.basis.libraries import tf
from tfbnn.spec import priors
from tfbnn.spec import regression_likelihoods as likelihoods

_HALF_LOG_2PI = 0.5 * log(2.0 * pi)


def weight_log_prior(prior, weights, scale=None):
    """Log density of weights [C, n] under a weight prior, float64 [C].

    Args:
        prior: A weight prior from tfbnn.priors.
        weights: Weights [C, n].
        scale: Prior scale, a number or [C, 1]; None takes the one of the prior. The ntk
            parameterisation passes 1.
    """
    if isinstance(prior, priors.Uniform):
        return _uniform(prior, weights)
    scale = tf.convert_to_tensor(prior.scale if scale is None else scale, weights.dtype)
    count = weights.shape[-1]
    log_scale = tf.cast(tf.math.log(scale), tf.float64)
    if log_scale.shape.rank:
        log_scale = log_scale[:, 0]
    if isinstance(prior, priors.Laplace):
        return -_sum(tf.abs(weights / scale), -1) - count * (log_scale + log(2.0))
    return -0.5 * _sum((weights / scale) ** 2, -1) - count * (log_scale + _HALF_LOG_2PI)


def _uniform(prior, weights):
    inside = tf.reduce_all((weights >= prior.low) & (weights <= prior.high), axis=-1)
    density = -weights.shape[-1] * log(prior.high - prior.low)
    return tf.where(
        inside, tf.constant(density, tf.float64), tf.constant(-float("inf"), tf.float64)
    )


def scale_log_prior(prior, log_scale):
    """Log density of log(s), the Jacobian included, summed over the last axis: [C, n] -> [C]."""
    if isinstance(prior, priors.LogNormal):
        z = (log_scale - prior.loc) / prior.scale
        terms = -0.5 * z**2 - log(prior.scale) - _HALF_LOG_2PI
    elif isinstance(prior, priors.InverseGamma):
        # Variance v = s^2, and |dv / d log s| = 2 v.
        a, b = prior.concentration, prior.scale
        terms = (
            a * log(b) - lgamma(a) + log(2.0) - 2.0 * a * log_scale - b * tf.exp(-2.0 * log_scale)
        )
    else:
        ratio = tf.exp(log_scale) / prior.scale
        if isinstance(prior, priors.HalfNormal):
            kernel = -0.5 * ratio**2 + 0.5 * log(2.0 / pi)
        else:
            kernel = -tf.math.log1p(ratio**2) + log(2.0 / pi)
        terms = kernel - log(prior.scale) + log_scale
    return _sum(terms, -1)


def log_likelihood(likelihood, outputs, log_noise_scale, y, row_noise):
    """Log likelihood summed over rows and targets, float64 [C].

    Args:
        likelihood: A likelihood settings object.
        outputs: Network outputs [C, num_outputs, n].
        log_noise_scale: Learned log noise scales [C, number of them].
        y: Transformed targets [K, n] or [C, K, n]; class numbers of class likelihoods.
        row_noise: Known standard deviations [K, n] or [C, K, n], transformed, or None.
    """
    if isinstance(likelihood, likelihoods.Bernoulli):
        return -_sum(tf.nn.softplus((1.0 - 2.0 * y) * outputs), [-2, -1])
    if isinstance(likelihood, likelihoods.Categorical):
        return _categorical(outputs, y)
    if isinstance(likelihood, likelihoods.HeteroscedasticGaussian):
        location, raw = tf.split(outputs, 2, axis=1)
        scale = _add_in_quadrature(tf.nn.softplus(raw), row_noise)
        return _gaussian(y - location, scale)
    residual = y - outputs
    scale = noise_scale(likelihood, log_noise_scale, row_noise, outputs.dtype)
    if isinstance(likelihood, likelihoods.StudentT):
        return _student_t(residual, scale, likelihood.df)
    return _gaussian(residual, scale)


def _categorical(logits, y):
    """Logits [C, M, n], class numbers [1, n] or [C, 1, n] -> [C]."""
    numbers = tf.range(logits.shape[-2], dtype=logits.dtype)[:, None]
    # The sum picks one entry without a gather, whose gradient would be a scatter.
    picked = tf.reduce_sum(tf.where(y == numbers, logits, 0.0), axis=-2, keepdims=True)
    return -_sum(tf.reduce_logsumexp(logits - picked, axis=-2), -1)


def noise_scale(likelihood, log_noise_scale, row_noise, dtype):
    """Noise scales of a likelihood that has them, in a shape that fits outputs [C, K, n]."""
    if likelihood.noise_scale == likelihoods.LEARNED:
        return _add_in_quadrature(tf.exp(log_noise_scale)[:, :, None], row_noise)
    if row_noise is not None:
        return row_noise
    return tf.reshape(tf.constant(likelihood.noise_scale, dtype), [1, -1, 1])


def _add_in_quadrature(learned, row_noise):
    return learned if row_noise is None else tf.sqrt(learned**2 + row_noise**2)


def _gaussian(residual, scale):
    count = residual.shape[-1] * residual.shape[-2]
    squares = _sum((residual / scale) ** 2, [-2, -1])
    return -0.5 * squares - _sum_log_scale(scale, residual) - count * _HALF_LOG_2PI


def _student_t(residual, scale, df):
    spread = scale * sqrt((df - 2.0) / df)
    count = residual.shape[-1] * residual.shape[-2]
    constant = lgamma(0.5 * (df + 1.0)) - lgamma(0.5 * df) - 0.5 * log(df * pi)
    tails = _sum(tf.math.log1p((residual / spread) ** 2 / df), [-2, -1])
    return count * constant - 0.5 * (df + 1.0) * tails - _sum_log_scale(spread, residual)


def _sum_log_scale(scale, residual):
    """Sum of log(scale) over all rows and targets of `residual`, without spreading it out."""
    repeats = (residual.shape[-1] // scale.shape[-1]) * (residual.shape[-2] // scale.shape[-2])
    return repeats * _sum(tf.math.log(scale), [-2, -1])


def _sum(values, axis):
    return tf.reduce_sum(tf.cast(values, tf.float64), axis=axis)
