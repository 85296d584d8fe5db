"""Networks that also give the noise begin as networks with one noise scale."""

import numpy as np
import pytest

import tfbnn
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.starts.noise_by_inputs import one_noise, with_noise_by_inputs
from tfbnn.likelihoods import Gaussian, HeteroscedasticGaussian
from tfbnn.priors import HalfNormal, Normal
from tfbnn.spec.network_spec import draw_parameters

pytestmark = pytest.mark.tensorflow


def outputs_of(spec, theta, x):
    """Outputs [M, n, num_outputs] of networks [M, P] at inputs [n, D]."""
    return np.moveaxis(network_outputs(spec, tf.constant(theta), tf.constant(x.T)).numpy(), 1, 2)


@pytest.mark.parametrize(
    "prior, parameterization", [("auto", "auto"), (Normal(0.5), "standard"), (Normal(0.5), "ntk")]
)
def test_they_compute_the_same_mean_and_noise(prior, parameterization):
    settings = dict(prior=prior, parameterization=parameterization, dtype="float64")
    spec = tfbnn.BayesianMLP([3, 5, 4, 4], likelihood=HeteroscedasticGaussian(), **settings).spec
    there, generator = one_noise(spec), np.random.default_rng(0)
    assert there.layer_sizes == (3, 5, 4, 2)
    assert there.likelihood == Gaussian(scale_prior=HalfNormal(1.0))
    theta = np.stack([draw_parameters(there, generator) for _ in range(6)]).reshape(2, 3, -1)
    theta[0, 0, there.layout.log_noise_scale] = np.log(1e-4)
    found = with_noise_by_inputs(spec, there, theta).reshape(6, -1)
    x = generator.normal(size=(7, 3))
    mean, outputs = outputs_of(there, theta.reshape(6, -1), x), outputs_of(spec, found, x)
    np.testing.assert_allclose(outputs[..., :2], mean, rtol=1e-12)
    log_scales = theta.reshape(6, -1)[:, there.layout.log_noise_scale]
    noise = spec.likelihood.scale(outputs, np.empty((6, 0)), None)
    expected = np.broadcast_to(np.exp(log_scales)[:, None], noise.shape)
    np.testing.assert_allclose(noise, expected, rtol=1e-10)


def test_other_networks_have_none():
    assert one_noise(tfbnn.BayesianMLP([3, 5, 1]).spec) is None
    values = np.zeros((5, 2))
    prior = [Normal(), {"kernel": Normal(loc=values), "bias": Normal()}]
    fixed = tfbnn.BayesianMLP([3, 5, 2], likelihood=HeteroscedasticGaussian(), prior=prior)
    assert one_noise(fixed.spec) is None
