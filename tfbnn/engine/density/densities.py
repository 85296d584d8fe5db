"""Normalised log densities in TensorFlow, registered for every prior and every likelihood.

Terms are computed in the dtype of the parameters and summed in float64. The sums have magnitudes of
N times a few units, and float32 would round them at the size of an acceptance ratio's numerator.
The likelihood has one term per row; `tfbnn.engine.density.row_blocks` sums them.

A user's own priors and noise densities are checked before anything is compiled.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import isfinite, lgamma, log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf, tfp
from tfbnn.spec import counts, likelihoods, priors
from tfbnn.spec.layout import Layer
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.own_densities import CustomNoise, CustomPrior, centre_and_width_of, integrals
from tfbnn.spec.priors import entries
from tfbnn.spec.required import required_of
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited

# Shape of the values at which a user's density is checked before a fit.
_PROBED = (3, 4)


def check_tensor(expected: str, value: Any, shape: Sequence[int], advice: str) -> None:
    """Check that the result of a user's function is a tensor of this shape.

    Raises:
        TypeError: If it is not a tensor.
        ValueError: If it has another shape.
    """
    if not tf.is_tensor(value):
        raise TypeError(
            f"{expected}, received {type(value).__name__}. Compute with TensorFlow's operations, so "
            "that it has gradients."
        )
    if value.shape != shape:
        raise ValueError(f"{expected}, received shape {list(value.shape)}. {advice}")


def check_dependence(name: str, gradient: Tensor | None) -> None:
    """Check that a function has a gradient.

    Raises:
        TypeError: If the gradient is None.
    """
    if gradient is None:
        raise TypeError(
            f"{name} must depend on its argument by TensorFlow's operations, found no gradient. Were "
            "its values computed with NumPy?"
        )


def elementwise(own: CustomPrior | CustomNoise, values: Tensor) -> Tensor:
    """Compute `log_prob` of a user's class at values of any shape.

    Raises:
        TypeError: If the result is not a tensor of this dtype.
        ValueError: If it has another shape.
    """
    name, density = type(own).__name__, own.log_prob(values)
    expected = f"{name}.log_prob must return a tensor of {values.dtype.name}, {list(values.shape)}"
    check_tensor(expected, density, values.shape, "Compute elementwise, and sum nothing.")
    if density.dtype != values.dtype:
        raise TypeError(
            f"{expected}, received {density.dtype.name}. Make constants by tf.constant(.., z.dtype), "
            "or leave them Python numbers."
        )
    return density


def values_of(own: CustomPrior | CustomNoise, points: Array) -> Array:
    """Compute `log_prob` of a user's class at an array, float64; minus infinity is allowed."""
    return elementwise(own, tf.constant(points, tf.float64)).numpy()


def noise_information(noise: CustomNoise) -> tuple[float, float]:
    """Compute the Fisher information of noise in its location and log scale, at standard deviation 1.

    It is the mean square of the scores, by quadrature, with TensorFlow's derivative of `log_prob`.

    Raises:
        ValueError: If one is not finite.
    """
    return awaited(_information, noise)


@lru_cache(maxsize=256)
def _information(noise: CustomNoise) -> tuple[float, float]:
    (centre, width), (mean, stddev) = centre_and_width_of(noise), noise.moments

    def squares(z: Array) -> Array:
        points = tf.constant(z)
        with tf.GradientTape() as tape:
            tape.watch(points)
            log_density = elementwise(noise, points)
        density = np.exp(log_density)
        # Far out, the density is zero and its logarithm overflows.
        score = np.where(density > 0.0, tape.gradient(log_density, points), 0.0)
        return np.stack([score**2 * density, ((z - mean) * score + 1.0) ** 2 * density])

    try:
        location, log_scale = integrals(squares, centre, width).sum(axis=0).tolist()
    except ValueError as error:
        raise ValueError(
            f"{type(noise).__name__}.log_prob has no Fisher information: {error}."
        ) from error
    return location * stddev**2, log_scale


def check_own_densities(spec: NetworkSpec) -> None:
    """Check before compilation that densities of a user's classes can be sampled.

    Raises:
        TypeError, ValueError: For tensors of another shape or dtype, for values and gradients that are
            not finite at draws, and for noise without moments.
    """
    for own in spec.own_settings:
        generator = np.random.default_rng(0)
        if isinstance(own, CustomNoise):
            values = own.quantile(generator.uniform(size=_PROBED))
        else:
            values = own.sample(generator, _PROBED)
        check_gradient(own, np.asarray(values), spec.dtype)
        if isinstance(own, CustomNoise):
            information = noise_information(own)
            if not all(isfinite(value) and value > 0.0 for value in information):
                raise ValueError(
                    f"The Fisher information of {type(own).__name__} must be positive, received "
                    f"{information}. Does log_prob depend on z?"
                )


def check_gradient(
    own: CustomPrior | CustomNoise, values: Array, dtype: str
) -> tuple[Array, Array]:
    """Compute log density and gradient at values, of the same shape, and check that they are finite.

    Raises:
        TypeError, ValueError: If they are not finite, or not tensors of this shape and dtype.
    """
    name, points = type(own).__name__, tf.constant(values, dtype)
    with tf.GradientTape() as tape:
        tape.watch(points)
        density = elementwise(own, points)
    gradient = tape.gradient(density, points)
    check_dependence(f"{name}.log_prob", gradient)
    for what, found in (("value", density), ("gradient", gradient)):
        bad = ~np.isfinite(found)
        if bad.any():
            raise ValueError(
                f"{name}.log_prob must have a finite {what} at draws, found {found.numpy()[bad][0]} at "
                f"{points.numpy()[bad][0]:.6g} in {dtype}. Both branches of tf.where are "
                "differentiated: keep the unused one finite, too."
            )
    return density.numpy(), gradient.numpy()


_HALF_LOG_2PI = 0.5 * log(2.0 * pi)


@required_of(priors.WeightPrior)
def weight_log_prior(prior: priors.WeightPrior, weights: Tensor, scale: Tensor = None) -> Tensor:
    """Compute the log density of weights [C, n] under a weight prior, float64 [C].

    Args:
        prior: A weight prior from tfbnn.priors.
        weights: Weights [C, n].
        scale: Prior scale, a number, or m sampled scales [C, m]; None uses the scale of the prior.
            The ntk parameterisation passes 1.
    """


@weight_log_prior.register(priors.Uniform)
def _uniform(prior: priors.Uniform, weights: Tensor, scale: Tensor | None = None) -> Tensor:
    inside = tf.reduce_all((weights >= prior.low) & (weights <= prior.high), axis=-1)
    density = tf.constant(-weights.shape[-1] * log(prior.high - prior.low), tf.float64)
    return tf.where(inside, density, tf.constant(-float("inf"), tf.float64))


@weight_log_prior.register(priors.Laplace)
def _laplace(prior: priors.Laplace, weights: Tensor, scale: Tensor | None = None) -> Tensor:
    scale, log_scale = _scale_of_weights(prior, weights, scale)
    return -_sum(tf.abs(weights / scale), -1) - weights.shape[-1] * (log_scale + log(2.0))


@weight_log_prior.register(priors.Normal)
def _normal(prior: priors.Normal, weights: Tensor, scale: Tensor | None = None) -> Tensor:
    if prior.has_scale:
        return _hierarchical(prior, weights, scale)
    loc, scales = (
        tf.constant(entries(setting), weights.dtype) for setting in (prior.loc, prior.scale)
    )
    return _hierarchical(prior, weights - loc, scales)


@weight_log_prior.register(priors.HierarchicalNormal)
def _hierarchical(
    prior: priors.WeightPrior, weights: Tensor, scale: Tensor | None = None
) -> Tensor:
    scale, log_scale = _scale_of_weights(prior, weights, scale)
    return -0.5 * _sum((weights / scale) ** 2, -1) - weights.shape[-1] * (log_scale + _HALF_LOG_2PI)


@weight_log_prior.register(CustomPrior)
def _own_prior(prior: CustomPrior, weights: Tensor, scale: Tensor | None = None) -> Tensor:
    if scale is None:
        return _sum(elementwise(prior, weights), -1)
    # In ntk, theta contains the weights divided by the scale of their prior.
    width = prior.scale or 1.0
    density = _sum(elementwise(prior, width * weights), -1)
    return density + weights.shape[-1] * log(width)


def _scale_of_weights(
    prior: priors.WeightPrior, weights: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor]:
    """Return (divisor of the weights [C, n], mean of its logarithm, float64 [C] or a number)."""
    scale = tf.convert_to_tensor(prior.scale if scale is None else scale, weights.dtype)
    log_scale = tf.cast(tf.math.log(scale), tf.float64)
    if not scale.shape.rank:
        return scale, log_scale
    return per_weight(scale, weights.shape[-1]), tf.reduce_mean(log_scale, axis=-1)


@required_of(priors.ScalePrior)
def scale_log_prior(prior: priors.ScalePrior, log_scale: Tensor) -> Tensor:
    """Compute the log density of log(s), Jacobian included, summed over the last axis: [C, n] -> [C]."""


@scale_log_prior.register(priors.LogNormal)
def _log_normal(prior: priors.LogNormal, log_scale: Tensor) -> Tensor:
    z = (log_scale - prior.loc) / prior.scale
    return _sum(-0.5 * z**2 - log(prior.scale) - _HALF_LOG_2PI, -1)


@scale_log_prior.register(priors.InverseGamma)
def _inverse_gamma(prior: priors.InverseGamma, log_scale: Tensor) -> Tensor:
    # Variance v = s^2, and |dv / d log s| = 2 v.
    a, b = prior.concentration, prior.scale
    constant = a * log(b) - lgamma(a) + log(2.0)
    return _sum(constant - 2.0 * a * log_scale - b * tf.exp(-2.0 * log_scale), -1)


@scale_log_prior.register(priors.HalfNormal)
def _half_normal(prior: priors.HalfNormal, log_scale: Tensor) -> Tensor:
    ratio = tf.exp(log_scale) / prior.scale
    kernel = -0.5 * ratio**2 + 0.5 * log(2.0 / pi)
    return _sum(kernel - log(prior.scale) + log_scale, -1)


@scale_log_prior.register(priors.HalfCauchy)
def _half_cauchy(prior: priors.HalfCauchy, log_scale: Tensor) -> Tensor:
    ratio = tf.exp(log_scale) / prior.scale
    kernel = -tf.math.log1p(ratio**2) + log(2.0 / pi)
    return _sum(kernel - log(prior.scale) + log_scale, -1)


class Noise(NamedTuple):
    """Learned and known noise of C networks, or of one network without the axis C.

    Attributes:
        log_scale: Learned log noise scales [C, number of them].
        of_rows: Known transformed standard deviations [K, n] or [C, K, n], or offsets of counts, or
            None.
    """

    log_scale: Tensor
    of_rows: Tensor | None

    def beside(self, learned: Tensor) -> Tensor:
        """Add the known standard deviations to learned scales in quadrature."""
        return learned if self.of_rows is None else tf.sqrt(learned**2 + self.of_rows**2)


@required_of(likelihoods.Likelihood)
def row_log_likelihood(
    likelihood: likelihoods.Likelihood, outputs: Tensor, y: Tensor, noise: Noise
) -> Tensor:
    """Compute the log likelihood of every row, summed over targets: [C, n], preferably float64.

    Args:
        likelihood: A likelihood settings object.
        outputs: Network outputs [C, num_outputs, n].
        y: Transformed targets [K, n] or [C, K, n]; class numbers for class likelihoods.
        noise: Noise.
    """


@row_log_likelihood.register(likelihoods.Gaussian)
def _gaussian(likelihood: likelihoods.Gaussian, outputs: Tensor, y: Tensor, noise: Noise) -> Tensor:
    return _normal_noise(y - outputs, noise_scale(likelihood, noise, outputs.dtype))


@row_log_likelihood.register(likelihoods.StudentT)
def _student_t(
    likelihood: likelihoods.StudentT, outputs: Tensor, y: Tensor, noise: Noise
) -> Tensor:
    residual, df = y - outputs, likelihood.df
    scale = noise_scale(likelihood, noise, outputs.dtype)
    spread = scale * sqrt((df - 2.0) / df)
    constant = lgamma(0.5 * (df + 1.0)) - lgamma(0.5 * df) - 0.5 * log(df * pi)
    tails = _float64(tf.math.log1p((residual / spread) ** 2 / df))
    return _sum(constant - 0.5 * (df + 1.0) * tails - _float64(tf.math.log(spread)), -2)


@row_log_likelihood.register(CustomNoise)
def _own_noise(likelihood: CustomNoise, outputs: Tensor, y: Tensor, noise: Noise) -> Tensor:
    scale = noise_scale(likelihood, noise, outputs.dtype)
    # In a separate thread, because tensors have no values inside the current graph or tape.
    mean, stddev = awaited(lambda: likelihood.moments)
    density = elementwise(likelihood, (y - outputs) / scale * stddev + mean)
    return _sum(_float64(density) - _float64(tf.math.log(scale)) + log(stddev), -2)


@row_log_likelihood.register(likelihoods.HeteroscedasticGaussian)
def _heteroscedastic(
    likelihood: likelihoods.HeteroscedasticGaussian, outputs: Tensor, y: Tensor, noise: Noise
) -> Tensor:
    location, raw = tf.split(outputs, 2, axis=1)
    return _normal_noise(y - location, noise.beside(tf.nn.softplus(raw)))


@row_log_likelihood.register(counts.Poisson)
def _poisson(likelihood: counts.Poisson, outputs: Tensor, y: Tensor, noise: Noise) -> Tensor:
    log_rate, y = log_rates(outputs, noise), _float64(y)
    return _sum(y * log_rate - tf.exp(log_rate) - tf.math.lgamma(y + 1.0), -2)


@row_log_likelihood.register(counts.NegativeBinomial)
def _negative_binomial(
    likelihood: counts.NegativeBinomial, outputs: Tensor, y: Tensor, noise: Noise
) -> Tensor:
    log_rate, y = log_rates(outputs, noise), _float64(y)
    scale = _float64(noise_scale(likelihood, noise._replace(of_rows=None), outputs.dtype))
    number, growth = scale**-2, tf.math.log1p(scale**2 * tf.exp(log_rate))
    # The difference of lgamma(y + number) and lgamma(number) would lose its digits for large numbers.
    log_choices = -tfp.math.log_gamma_difference(y, number) - tf.math.lgamma(y + 1.0)
    return _sum(
        log_choices - number * growth + y * (log_rate + 2.0 * tf.math.log(scale) - growth), -2
    )


@row_log_likelihood.register(likelihoods.Bernoulli)
def _bernoulli(
    likelihood: likelihoods.Bernoulli, outputs: Tensor, y: Tensor, noise: Noise
) -> Tensor:
    return -_sum(tf.nn.softplus((1.0 - 2.0 * y) * outputs), -2)


@row_log_likelihood.register(likelihoods.Categorical)
def _categorical(
    likelihood: likelihoods.Categorical, outputs: Tensor, y: Tensor, noise: Noise
) -> Tensor:
    numbers = tf.range(outputs.shape[-2], dtype=outputs.dtype)[:, None]
    # The sum selects one entry; the gradient of a gather would be a scatter.
    picked = tf.reduce_sum(tf.where(y == numbers, outputs, 0.0), axis=-2, keepdims=True)
    return -_float64(tf.reduce_logsumexp(outputs - picked, axis=-2))


def log_rates(outputs: Tensor, noise: Noise) -> Tensor:
    """Compute the log rates of counts, float64: outputs [C, K, n] plus the offsets of the rows."""
    logs = _float64(outputs)
    return logs if noise.of_rows is None else logs + _float64(noise.of_rows)


def noise_scale(likelihood: likelihoods.Likelihood, noise: Noise, dtype: Any) -> Tensor:
    """Return the noise scales of a likelihood, in a shape that broadcasts to outputs [C, K, n]."""
    if likelihood.noise_scale == likelihoods.LEARNED:
        return noise.beside(tf.exp(noise.log_scale)[:, :, None])
    if noise.of_rows is not None:
        return noise.of_rows
    return tf.reshape(tf.constant(likelihood.noise_scale, dtype), [1, -1, 1])


def _normal_noise(residual: Tensor, scale: Tensor) -> Tensor:
    squares, log_scale = _float64((residual / scale) ** 2), _float64(tf.math.log(scale))
    return _sum(-0.5 * squares - log_scale - _HALF_LOG_2PI, -2)


def _sum(values: Tensor, axis: int) -> Tensor:
    return tf.reduce_sum(_float64(values), axis=axis)


def _float64(values: Tensor) -> Tensor:
    return tf.cast(values, tf.float64)


def layer_scales(layer: Layer, prior: priors.LayerPrior, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the prior scales of one layer: kernel [C or 1, inputs or 1], bias [C or 1, 1]."""
    kernel_scales = group_scales(prior.kernel, layer.kernel.scales, theta)
    return kernel_scales, group_scales(prior.bias, layer.bias.scales, theta)


def group_scales(prior: priors.WeightPrior, span: slice, theta: Tensor) -> Tensor:
    """Return the prior scales of weights that share a prior: [C or 1, number of scales]."""
    if prior.scale_prior is None:
        return tf.constant(prior.scale, theta.dtype, shape=[1, 1])
    return tf.exp(theta[:, span])


def per_weight(values: Tensor, count: int) -> Tensor:
    """Repeat one number per scale [..., m] for its weights [..., count], see `tfbnn.spec.layout`.

    A single number stays [..., 1]: it broadcasts, and XLA sums its gradient in one pass.
    """
    *batch, num_scales = values.shape
    if num_scales == 1:
        return values
    wide = tf.broadcast_to(values[..., None], [*batch, num_scales, count // num_scales])
    return tf.reshape(wide, [*batch, count])
