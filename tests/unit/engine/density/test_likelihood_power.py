"""The likelihood to a power: alone, in every density, gradient and curvature there is.

Gaussian noise of a known scale s to the power t is Gaussian noise of scale s / sqrt(t), up to a factor
that no parameter enters: all that a sampler sees of the two must be equal.
"""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from tests.support import readouts
from tests.support.marks import statistics_but
from tests.support.specs import setting
from tfbnn.engine.density.fisher import prior_curvature
from tfbnn.engine.density.gauss_newton import (
    gauss_newton_diagonal,
    gauss_newton_matrices,
    gauss_newton_matrix,
    scaled_jacobian,
)
from tfbnn.engine.density.linear_map import as_tensors, scaling_map
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.reparametrisation import Collapsed, RepriorisedPotential
from tfbnn.engine.density.value_and_gradient import Target, log_prob_terms
from tfbnn.kernels import PowerPosterior
from tfbnn.likelihoods import Gaussian

POWER, NOISE = 0.04, 0.3


def wider(spec):
    """The spec whose noise is as much larger as the power of the likelihood makes it."""
    return replace(spec, likelihood=Gaussian(NOISE / POWER**0.5))


def coarsened(spec):
    return replace(spec, likelihood_power=POWER)


@pytest.mark.parametrize("potential", [Potential, RepriorisedPotential, Collapsed])
@pytest.mark.parametrize("num_rows", [4, 15], ids=["data space", "feature space"])
def test_known_noise_to_a_power_is_wider_noise(potential, num_rows):
    made, data, theta = readouts.build(num_rows, likelihood=Gaussian(NOISE))
    one, other = (potential(change(made.spec)) for change in (coarsened, wider))
    z, expected_z = (p.coordinates(theta, data) for p in (one, other))
    np.testing.assert_allclose(z, expected_z, rtol=1e-9, atol=1e-9)
    (value, gradient), (expected, expected_gradient) = (
        p.value_and_gradient(tf.constant(z), data) for p in (one, other)
    )
    shift = value - expected
    np.testing.assert_allclose(shift, shift[0], rtol=1e-10)
    # The constant of the normalised density: log N(y; f, s)^t - log N(y; f, s / sqrt(t)) per row.
    constant = 0.5 * (1.0 - POWER) * np.log(2 * np.pi * NOISE**2) - 0.5 * np.log(POWER)
    np.testing.assert_allclose(shift[0], num_rows * constant, rtol=1e-9)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(value, one.log_prob(tf.constant(z), data), rtol=1e-12)
    curvature, expected_curvature = (p.curvature(z[0], data) for p in (one, other))
    np.testing.assert_allclose(curvature, expected_curvature, rtol=1e-9, atol=1e-9)
    normals = tf.constant(np.random.default_rng(0).normal(size=(3, one.num_normals)))
    (networks, _), (expected_networks, _) = (
        p.complete(tf.constant(z), normals, data) for p in (one, other)
    )
    np.testing.assert_allclose(networks, expected_networks, rtol=1e-9, atol=1e-9)


@pytest.mark.statistics
def test_a_target_knows_the_same_of_both():
    """Hessian and Gauss-Newton matrices of SMMALA too, at rungs between the prior and the power."""
    made, data, theta = readouts.build(9, likelihood=Gaussian(NOISE), hidden=[2])
    rungs = (0.0, 0.3, 1.0)
    linear_map = as_tensors(scaling_map(1.0, theta))
    one, other = (
        Target(Potential(change(made.spec)), data, linear_map, tf.zeros(3, tf.float64), rungs)
        for change in (coarsened, wider)
    )
    z = tf.constant(theta)
    np.testing.assert_allclose(one.hessian(z), other.hessian(z), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.gauss_newton(z), other.gauss_newton(z), rtol=1e-9, atol=1e-9)
    gained, expected = (target.log_likelihood(z).numpy() for target in (one, other))
    np.testing.assert_allclose(gained - gained[0], expected - expected[0], rtol=1e-9)


@pytest.mark.parametrize(
    "name", statistics_but(["gaussian_learned"], ["gaussian_learned", "categorical"])
)
def test_the_power_is_that_of_the_likelihood_alone(name):
    """Log density and curvature less those of the prior are t times as large for any likelihood."""
    spec, data, theta = setting(name)
    rows = [array if array is None else array.numpy().T for array in data.rows()[:3]]
    plain, powered = (log_prob_terms(s, theta[None], *rows) for s in (spec, coarsened(spec)))
    np.testing.assert_array_equal(powered["log_prior"], plain["log_prior"])
    np.testing.assert_allclose(powered["log_likelihood"], POWER * plain["log_likelihood"])
    value, gradient = Potential(coarsened(spec)).value_and_gradient(tf.constant(theta[None]), data)
    np.testing.assert_allclose(value, sum(powered.values()), rtol=1e-12)
    weight = tf.constant([POWER], tf.float64)
    expected = Potential(spec).value_and_gradient(tf.constant(theta[None]), data, weight)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)

    prior = prior_curvature(spec, theta).numpy()
    matrix = POWER * (gauss_newton_matrix(spec, theta, data) - np.diag(prior)) + np.diag(prior)
    spec, close = coarsened(spec), dict(rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gauss_newton_matrix(spec, theta, data), matrix, **close)
    np.testing.assert_allclose(gauss_newton_diagonal(spec, theta, data), np.diag(matrix), **close)
    points, ones = tf.constant(theta[None]), tf.ones(1, tf.float64)
    (inside,) = gauss_newton_matrices(spec, points, data, ones).numpy()
    np.testing.assert_allclose(inside, matrix, **close)
    lines, span = scaled_jacobian(spec, theta, data), slice(0, spec.layout.num_weights)
    found = (lines.T @ lines)[span, span] + np.diag(prior)[span, span]
    np.testing.assert_allclose(found, matrix[span, span], **close)


@pytest.mark.parametrize("num_rows", [4, 15], ids=["data space", "feature space"])
def test_a_learned_scale_keeps_its_power_where_the_readout_is_collapsed(num_rows):
    """log p(rest) = log p(all) - log p(readout | rest), as phi of the readout is standard normal."""
    made, data, theta = readouts.build(num_rows, num_outputs=2, likelihood=Gaussian("learned"))
    spec = coarsened(made.spec)
    repriorised, collapsed = RepriorisedPotential(spec), Collapsed(spec)
    phi = repriorised.coordinates(theta, data)
    shift = 1e-6 * np.eye(phi.shape[1])
    ends = [repriorised.complete(tf.constant(phi[:1] + s), None, data)[0] for s in (shift, -shift)]
    determinant = np.linalg.slogdet((ends[0] - ends[1]).numpy() / 2e-6)[1]
    found = repriorised.log_prob(tf.constant(phi[:1]), data)
    expected = Potential(spec).log_prob(tf.constant(theta[:1]), data) + determinant
    np.testing.assert_allclose(found, expected, atol=1e-6)
    coordinates = tf.constant(collapsed.coordinates(theta, data))
    value, gradient = collapsed.value_and_gradient(coordinates, data)
    numbers = repriorised._log_density_of_numbers(tf.constant(phi))
    np.testing.assert_allclose(
        value + numbers, repriorised.log_prob(tf.constant(phi), data), rtol=1e-10
    )
    steps = 1e-6 * np.eye(coordinates.shape[1])
    up, down = (
        collapsed.log_prob(tf.constant(coordinates.numpy()[:1] + s), data) for s in (steps, -steps)
    )
    np.testing.assert_allclose(gradient[0], (up - down) / 2e-6, rtol=1e-5, atol=1e-6)


def test_rungs_crowd_where_the_rows_outweigh_the_weights():
    """17 weights and 340 rows that count for .25 each."""
    spec = replace(setting("gaussian_learned")[0], likelihood_power=0.25)
    settings, _ = PowerPosterior().resolve(spec, 340)
    assert settings.crowded_at == pytest.approx(0.2)
