"""The log density of infinite width, by SciPy, and its gradient, by differences."""

import numpy as np
import pytest
from scipy import stats

import tfbnn
from tests.support.infinite import FLOOR, arcsine, model, rows
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.density_of import density_of
from tfbnn.engine.density.infinite_width import log_marginal, maximum
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient

STEP = 1e-5


def thetas(spec, count=3):
    draws = 0.4 * np.random.default_rng(7).normal(size=(count, spec.num_parameters))
    draws[:, spec.layout.log_noise_scale] -= 1.0
    return draws


def test_the_density_is_that_of_a_normal_distribution_and_of_the_priors():
    network = model()
    x, y = rows()
    for theta in thetas(network.spec):
        matrix = arcsine(x, x, theta) + (np.exp(2 * theta[0]) + FLOOR**2) * np.eye(len(x))
        likelihood = stats.multivariate_normal.logpdf(y[:, 0], cov=matrix)
        # The noise has HalfNormal(1), the others HalfNormal(3), of logarithms.
        widths = np.where(np.arange(len(theta)) == 0, 1.0, 3.0)
        prior = np.sum(stats.halfnorm.logpdf(np.exp(theta), scale=widths) + theta)
        found = network.log_prob(theta, x, y, return_terms=True)
        assert found["log_likelihood"] == pytest.approx(likelihood, abs=1e-8)
        assert found["log_prior"] == pytest.approx(prior, abs=1e-8)


CASES = {
    "one target": ({}, None),
    "two layers": ({"hidden": 2, "activation": "relu"}, None),
    "two targets": ({"num_targets": 2}, None),
    "known noise": ({"likelihood": tfbnn.likelihoods.Gaussian(0.3)}, None),
    "rows' noise": ({}, 0.2),
    "one scale": ({"prior": tfbnn.priors.HierarchicalNormal(), "activation": "sin"}, None),
    "fixed scales": ({"prior": tfbnn.priors.Normal(0.7)}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_is_that_of_the_density(case):
    settings, noise = CASES[case]
    spec = model(**settings).spec
    x, y = rows(num_targets=spec.num_targets)
    row_noise = None if noise is None else np.full(y.shape, noise)
    points = thetas(spec)
    data = make_data(x, y, row_noise, "float64")
    function = make_value_and_gradient(density_of(spec), data)
    _, gradient = function(points)
    for index, step in enumerate(STEP * np.eye(spec.num_parameters)):
        expected = (function(points + step)[0] - function(points - step)[0]) / (2 * STEP)
        np.testing.assert_allclose(gradient[:, index], expected, rtol=1e-6, atol=1e-6)


def test_known_noise_of_rows_adds_to_the_learned():
    spec = model().spec
    x, y = rows()
    theta = thetas(spec)[0]
    louder = theta.copy()
    louder[0] = 0.5 * np.log(np.exp(2 * theta[0]) + 0.09)
    value, _ = log_marginal(spec, theta, x, y, np.full(y.shape, 0.3))
    assert value == pytest.approx(log_marginal(spec, louder, x, y, None)[0], abs=1e-8)


def test_the_maximum_is_one_and_its_curvature_is_what_gradients_say():
    spec, data = model().spec, make_data(*rows(), None, "float64")
    found = maximum(spec, data)
    function = make_value_and_gradient(density_of(spec), data)
    value, gradient = function(found.theta[None])
    assert value[0] == pytest.approx(found.log_prob) and np.abs(gradient).max() < 0.05
    assert max(found.others) <= found.log_prob
    assert np.linalg.eigvalsh(found.curvature).min() > 0.0
    steep = np.eye(len(found.theta))[np.argmax(np.diagonal(found.curvature))]
    values, _ = function(found.theta + 1e-4 * np.array([steep, -steep, 0 * steep]))
    second = (2 * values[2] - values[0] - values[1]) / 1e-8
    positions = np.linspace(-12.0, 8.0, 4001)
    weights = np.exp(function(found.theta + positions[:, None] * steep)[0] - values[2])
    weights /= weights.sum()
    variance = weights @ (positions - weights @ positions) ** 2
    width = np.sqrt(variance * second)  # of the slice, by that of the curvature
    assert steep @ found.curvature @ steep == pytest.approx(second / width**2, rel=0.02)
    assert maximum(spec, data) is found  # which every chain asks for


def test_nowhere_is_a_density_not_a_number():
    spec, (x, y) = model().spec, rows()
    value, gradient = log_marginal(spec, np.full(spec.num_parameters, 400.0), x, y, None)
    assert value == -np.inf and gradient.shape == (spec.num_parameters,)
