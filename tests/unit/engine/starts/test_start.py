"""Starts: inside the box of the prior, or refused with what is wrong and where."""

from dataclasses import dataclass

import numpy as np
import pytest
import tensorflow as tf

import tfbnn
from tests.support.builders import plain_spec
from tests.support.specs import build
from tests.support.starts import search
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.starts.check import check_start
from tfbnn.likelihoods import HeteroscedasticGaussian
from tfbnn.priors import CustomPrior
from tfbnn.spec.rows import NetworkRows


@dataclass(frozen=True)
class Box(CustomPrior):
    """Uniform within three scales of zero."""

    scale: float = 1.0
    is_even = True

    @property
    def limits(self):
        return -3.0 * self.scale, 3.0 * self.scale

    def log_prob(self, weights):
        inside = tf.abs(weights) < 3.0 * self.scale
        return tf.where(inside, tf.zeros_like(weights), tf.constant(-np.inf, weights.dtype))

    def sample(self, generator, shape):
        return generator.uniform(-3.0 * self.scale, 3.0 * self.scale, size=shape)


def test_uniform_prior_starts_inside_its_box():
    spec = plain_spec([2, 4, 1], prior=tfbnn.priors.Uniform(-0.3, 0.3))
    x = np.random.default_rng(0).normal(size=(40, 2))
    steps = dict(epochs=200, batch_size=None, learning_rate=0.05, newton_iterations=5)
    theta = search(NetworkRows(x, 3 * x[:, :1], None), spec, share=0.0, **steps).theta
    # Where the rows pull it to, and no further.
    largest = np.abs(theta[:, : spec.layout.num_weights]).max()
    assert 0.29 < largest < 0.3


def test_starts_at_the_edge_of_a_box_have_the_noise_of_their_residuals():
    """ADAM leaves the box, so that its networks are others than those of the starts."""
    spec = plain_spec([1, 6, 1], prior=tfbnn.priors.Uniform(-0.8, 0.8))
    x = np.random.default_rng(0).uniform(-2.0, 2.0, size=(80, 1))
    rows = NetworkRows(x, np.sin(2.0 * x), None)
    steps = dict(epochs=300, batch_size=None, learning_rate=0.05)
    for iterations in (0, 20):
        found = search(rows, spec, share=0.0, newton_iterations=iterations, **steps)
        outputs = network_outputs(spec, tf.constant(found.theta), tf.constant(x.T)).numpy()[:, 0]
        misfit = np.sqrt(np.mean((rows.y[:, 0] - outputs) ** 2, axis=1))
        noise = np.exp(found.theta[:, spec.layout.log_noise_scale])[:, 0]
        np.testing.assert_allclose(noise, misfit, rtol=0.3)
    assert "found no step" not in found.text


def test_noise_by_the_inputs_starts_inside_the_box():
    model = tfbnn.BayesianMLP(
        [1, 4, 2], prior=tfbnn.priors.Uniform(-1.0, 1.0), likelihood=HeteroscedasticGaussian()
    )
    x = np.linspace(-1.0, 1.0, 60)[:, None]
    theta = search(
        NetworkRows(x, 0.5 * x, None),
        model.spec,
        share=0.0,
        epochs=100,
        batch_size=None,
        newton_iterations=0,
    ).theta
    low, high = Potential(model.spec).limits
    assert np.all((theta > low) & (theta < high))


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_in_ntk_the_box_is_in_units_of_the_scale(scale):
    standard, ntk = (
        Potential(plain_spec([1, 3, 1], prior=Box(scale), parameterization=name)).limits
        for name in ("standard", "ntk")
    )
    np.testing.assert_allclose(standard[1][:10], 3.0 * scale)
    np.testing.assert_allclose(ntk[1][:10], 3.0)


def test_nan_density_is_refused_with_its_row():
    x = np.full((10, 1), 1.0)
    x[7] = 3e38  # overflows in the first layer, whatever the weights
    model = tfbnn.BayesianMLP(
        [1, 4, 1], activation="identity", prior=tfbnn.priors.Normal(100.0), x_transform=None
    )
    with pytest.raises(tfbnn.StartError, match="row 7"):
        model.fit_posterior(x, np.arange(10.0), pretraining=None, num_chains=2, verbose=0)


@pytest.mark.parametrize(
    "name, weights, value, slope, match",
    [
        ("uniform", 6.0, -np.inf, 0.0, "prior"),
        ("gaussian_learned", 0.0, 0.0, np.nan, r"layer 1 bias\[1\]"),
    ],
    ids=["outside of the box of its prior", "a parameter without a gradient"],
)
def test_a_start_that_is_not_finite_is_refused(name, weights, value, slope, match):
    spec = build(name)
    data = make_data(np.zeros((3, 2)), np.zeros((3, 1)), None, spec.dtype)
    theta = np.full((1, spec.layout.num_parameters), weights)
    gradient = np.zeros_like(theta)
    gradient[0, 9] = slope
    with pytest.raises(tfbnn.StartError, match=match):
        check_start(Potential(spec), data, theta, np.array([value]), gradient)
