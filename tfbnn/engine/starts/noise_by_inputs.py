"""Starts of networks that also predict the noise, from networks with one noise scale for all rows.

A network that learns mean and noise together from the prior explains rows that it does not fit yet
as noise, and stays there (Seitzer et al. 2022, arXiv:2203.09168). On airfoil it missed new rows by
1.46, and by 1.11 when it started with one noise scale.
"""

from dataclasses import replace

import numpy as np

from tfbnn.spec.likelihoods import Gaussian, HeteroscedasticGaussian
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import HalfNormal
from tfbnn.system.arrays import Array


def one_noise(spec: NetworkSpec) -> ModelSpec | None:
    """Replace the noise outputs of a network by one learned noise scale per target.

    Return None for other likelihoods, for Keras models, and for earlier posteriors or priors whose
    shape is tied to the last layer.
    """
    if not isinstance(spec, ModelSpec) or not isinstance(spec.likelihood, HeteroscedasticGaussian):
        return None
    if spec.earlier is not None or any(prior.shape for _, _, prior in spec.variables[-2:]):
        return None
    sizes = (*spec.layer_sizes[:-1], spec.num_targets)
    noise = Gaussian(scale_prior=HalfNormal(1.0))
    return replace(spec, layer_sizes=sizes, likelihood=noise)


def with_noise_by_inputs(spec: ModelSpec, there: ModelSpec, theta: Array) -> Array:
    """Return networks [..., P] of `spec` equivalent to the networks [..., P'] of `one_noise`.

    The weights of the noise outputs are 0 except for the bias, so the noise is the same for all
    rows.
    """
    layout, count = there.layout, there.num_targets
    found = np.zeros((*theta.shape[:-1], spec.num_parameters), theta.dtype)
    for old, new in zip(layout.slots, spec.layout.slots):
        weights = theta[..., old.weights].reshape(*theta.shape[:-1], *old.shape)
        added = [(0, 0)] * (weights.ndim - 1) + [(0, new.shape[-1] - old.shape[-1])]
        found[..., new.weights] = np.pad(weights, added).reshape(*theta.shape[:-1], -1)
        found[..., new.scales] = theta[..., old.scales]
    bias, (_, _, prior) = spec.layout.slots[-1], spec.variables[-1]
    noise = np.exp(theta[..., layout.log_noise_scale].astype(np.float64))
    in_theta = np.log(np.expm1(np.maximum(noise, np.finfo(theta.dtype).tiny)))
    if spec.is_ntk:
        in_theta /= prior.scale or np.exp(theta[..., layout.slots[-1].scales])
    found[..., bias.weights.stop - count : bias.weights.stop] = in_theta
    return found
