"""Starts: inside the box of the prior, or refused with what is wrong and where."""

import numpy as np
import pytest

import tfbnn
from tests.support.builders import plain_spec
from tests.support.specs import build
from tests.support.starts import search
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.starts.check import check_start
from tfbnn.spec.rows import NetworkRows


def test_uniform_prior_starts_inside_its_box():
    spec = plain_spec([2, 4, 1], prior=tfbnn.priors.Uniform(-0.3, 0.3))
    x = np.random.default_rng(0).normal(size=(40, 2))
    steps = dict(epochs=200, batch_size=None, learning_rate=0.05, newton_iterations=5)
    theta = search(NetworkRows(x, 3 * x[:, :1], None), spec, share=0.0, **steps).theta
    # Where the rows pull it to, and no further.
    largest = np.abs(theta[:, : spec.layout.num_weights]).max()
    assert 0.29 < largest < 0.3


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
