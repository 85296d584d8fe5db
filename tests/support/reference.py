"""The model once more, in plain NumPy float64 and SciPy, written apart from the library."""

import numpy as np
from scipy import stats

from tfbnn import likelihoods, priors
from tfbnn.spec.priors import FrozenArray

ACTIVATIONS = {
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: x * (x > 0),
    "gelu": lambda x: x * stats.norm.cdf(x),
}


def split_theta(spec, theta):
    """theta [P] -> (list of (kernel, bias), noise log scales, dict of arrays of log prior scales)."""
    layers, position = [], 0
    for a, b in zip(spec.layer_sizes[:-1], spec.layer_sizes[1:]):
        kernel = theta[position : position + a * b].reshape(a, b)
        bias = theta[position + a * b : position + a * b + b]
        layers.append((kernel, bias))
        position += a * b + b
    num_noise = spec.likelihood.num_noise_parameters(spec.layer_sizes[-1])
    noise, position = theta[position : position + num_noise], position + num_noise
    scales = {}
    for index, prior in enumerate(spec.priors):
        for kind in ("kernel", "bias"):
            if isinstance(getattr(prior, kind), priors.HierarchicalNormal):
                per_input = isinstance(getattr(prior, kind), priors.ARD)
                count = spec.layer_sizes[index] if per_input else 1
                # In the shape of the weights: a line of the kernel has the scale of its input.
                scales[index, kind] = theta[position : position + count].reshape(
                    (count, 1) if kind == "kernel" else count
                )
                position += count
    assert position == len(theta)
    return layers, noise, scales


def _scale(prior, index, kind, scales):
    entry = getattr(prior, kind)
    return np.exp(scales[index, kind]) if (index, kind) in scales else entry.scale


def outputs(spec, theta, x):
    """Network outputs [n, num_outputs] of one network at x [n, D]."""
    layers, _, scales = split_theta(spec, theta)
    hidden = x
    for index, (kernel, bias) in enumerate(layers):
        if spec.parameterization == "ntk":
            prior = spec.priors[index]
            kernel = kernel * _scale(prior, index, "kernel", scales) / np.sqrt(len(kernel))
            bias = bias * _scale(prior, index, "bias", scales)
        hidden = hidden @ kernel + bias
        if index < len(layers) - 1:
            hidden = ACTIVATIONS[spec.activations[index]](hidden)
    return hidden


def log_likelihood(spec, theta, x, y, row_noise=None):
    """Log likelihood of one network."""
    f, (_, noise, _) = outputs(spec, theta, x), split_theta(spec, theta)
    likelihood = spec.likelihood
    if isinstance(likelihood, likelihoods.Bernoulli):
        return stats.bernoulli.logpmf(y, 1 / (1 + np.exp(-f))).sum()
    if isinstance(likelihood, likelihoods.Categorical):
        odds = np.exp(f)
        return sum(np.log(o[int(label)] / o.sum()) for o, label in zip(odds, y[:, 0]))
    if isinstance(likelihood, likelihoods.HeteroscedasticGaussian):
        f, raw = np.split(f, 2, axis=1)
        scale = np.log1p(np.exp(raw))
        scale = scale if row_noise is None else np.sqrt(scale**2 + row_noise**2)
        return stats.norm.logpdf(y, f, scale).sum()
    if likelihood.noise_scale == "learned":
        scale = np.exp(noise)
        scale = scale if row_noise is None else np.sqrt(scale**2 + row_noise**2)
    else:
        scale = np.asarray(likelihood.noise_scale) if row_noise is None else row_noise
    if isinstance(likelihood, likelihoods.StudentT):
        spread = scale / np.sqrt(stats.t.var(likelihood.df))
        return stats.t.logpdf(y, likelihood.df, f, spread).sum()
    return stats.norm.logpdf(y, f, scale).sum()


def _log_scale_density(prior, log_scale):
    """Density of log(s): that of s, times s."""
    s = np.exp(log_scale)
    if isinstance(prior, priors.HalfNormal):
        return stats.halfnorm.logpdf(s, scale=prior.scale) + log_scale
    if isinstance(prior, priors.HalfCauchy):
        return stats.halfcauchy.logpdf(s, scale=prior.scale) + log_scale
    if isinstance(prior, priors.LogNormal):
        return stats.lognorm.logpdf(s, prior.scale, scale=np.exp(prior.loc)) + log_scale
    density = stats.invgamma.logpdf(s**2, prior.concentration, scale=prior.scale)
    return density + np.log(2 * s) + log_scale


def log_prior(spec, theta):
    """Log prior of one network in the sampled coordinates."""
    layers, noise, scales = split_theta(spec, theta)
    total = 0.0
    for index, (kernel, bias) in enumerate(layers):
        for kind, weights in (("kernel", kernel), ("bias", bias)):
            prior = getattr(spec.priors[index], kind)
            if isinstance(prior, priors.Uniform):
                total += stats.uniform.logpdf(weights, prior.low, prior.high - prior.low).sum()
                continue
            if getattr(prior, "loc", 0.0) != 0 or getattr(prior, "shape", None):
                loc, scale = (
                    one.values if isinstance(one, FrozenArray) else one
                    for one in (prior.loc, prior.scale)
                )
                total += stats.norm.logpdf(weights, loc, scale).sum()
                continue
            scale = _scale(spec.priors[index], index, kind, scales)
            scale = 1.0 if spec.parameterization == "ntk" else scale
            family = stats.laplace if isinstance(prior, priors.Laplace) else stats.norm
            total += family.logpdf(weights, scale=scale).sum()
            if isinstance(prior, priors.HierarchicalNormal):
                total += _log_scale_density(prior.scale_prior, scales[index, kind]).sum()
    for log_scale in noise:
        total += _log_scale_density(spec.likelihood.scale_prior, log_scale)
    return total
