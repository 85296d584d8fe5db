"""The Gauss-Newton matrix against autodiff and simulation, and the whitening it gives."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.support.marks import statistics_but
from tests.support.specs import CONTRASTING, setting
from tfbnn.engine.density import gauss_newton
from tfbnn.engine.density.fisher import prior_curvature
from tfbnn.engine.density.gauss_newton import (
    gauss_newton_diagonal,
    gauss_newton_matrices,
    gauss_newton_matrix,
    output_jacobian,
    outputs_bend,
    scaled_jacobian,
)
from tfbnn.engine.density.linear_map import as_tensors, low_rank_map, whitening_map
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.potential import Potential, hessian
from tfbnn.engine.density.row_blocks import taped
from tfbnn.likelihoods import Gaussian

# A few of the likelihoods, for the default run.
CONTRASTING_ONCE = [(name, name == "student_t") for name in CONTRASTING]
# Whose noise, links and priors have branches of their own.
MORE = [("gaussian_two_learned", True), ("heteroscedastic", True), ("bernoulli_two", False)]
MORE += [("categorical_ntk", False), ("hierarchical_ntk", False), ("located", False)]
FEW = [("gaussian_learned", False), ("student_t", True), ("categorical", False)]


def test_linear_network_has_the_exact_hessian():
    """With a fixed scale the potential is quadratic: Gauss-Newton is its Hessian."""
    spec, data, theta = setting("linear")
    spec = dataclasses.replace(spec, likelihood=Gaussian(0.3))
    theta = theta[: spec.layout.num_parameters]
    exact = -hessian(lambda t: Potential(spec).log_prob(t, data), tf.constant(theta[None]))[0]
    np.testing.assert_allclose(gauss_newton_matrix(spec, theta, data), exact, rtol=1e-10)


@pytest.mark.parametrize("name, with_row_noise", statistics_but(FEW, [*FEW, *MORE]))
def test_weights_block_is_the_fisher_information(name, with_row_noise):
    """Average the outer products of scores over targets simulated from the network."""
    spec, data, theta = setting(name, with_row_noise, rows=3)
    found = gauss_newton_matrix(spec, theta, data)
    outputs = network_outputs(spec, tf.constant(theta[None]), data.x).numpy()
    draws = 6000  # errors of the entries are about .013
    y = simulate(spec, theta, np.moveaxis(outputs, 1, 2), data.row_noise, draws)
    rows = data._replace(y=tf.constant(np.moveaxis(y, 1, 2)))
    repeated = tf.constant(np.repeat(theta[None], draws, axis=0))
    _, score = taped(lambda points: Potential(spec).log_likelihood(points, rows), repeated)
    fisher = score.numpy().T @ score.numpy() / draws
    found -= np.diag(prior_curvature(spec, theta))
    spread = np.sqrt(np.diag(found)[:, None] * np.diag(found)[None]) + 1e-12
    # Scores of sampled prior scales vanish in the likelihood (standard) or follow the weights (ntk).
    assert np.abs((found - fisher) / spread).max() < 0.08


def simulate(spec, theta, outputs, row_noise, draws):
    """Targets [draws, n, K] that the likelihood gives for network outputs [1, n, num_outputs]."""
    likelihood, generator = spec.likelihood, np.random.default_rng(22)
    level = generator.uniform(size=(draws, outputs.shape[1], spec.num_targets))
    location = likelihood.location(outputs)
    if spec.has_classes:
        chances = likelihood.class_probabilities(likelihood.inverse_link(location)[0])
        return np.sum(level[..., None] > np.cumsum(chances, axis=-1), axis=-1).astype(float)
    noise = None if row_noise is None else row_noise.numpy().T
    scale = likelihood.scale(outputs, theta[None, spec.layout.log_noise_scale], noise)
    return location + np.broadcast_to(scale, location.shape) * likelihood.noise_quantile(level)


@pytest.mark.parametrize(
    "name, with_row_noise", statistics_but(CONTRASTING_ONCE[1:], [*CONTRASTING_ONCE, *MORE])
)
def test_matrix_free_forms_agree_with_the_matrix(name, with_row_noise):
    """Which is positive definite."""
    spec, data, theta = setting(name, with_row_noise)
    matrix = gauss_newton_matrix(spec, theta, data)
    assert np.linalg.eigvalsh(matrix).min() > 0
    diagonal = gauss_newton_diagonal(spec, theta, data)
    np.testing.assert_allclose(diagonal, np.diag(matrix), rtol=1e-12)
    weights = slice(0, spec.layout.num_weights)
    lines = scaled_jacobian(spec, theta, data)[:, weights]
    without_prior = (matrix - np.diag(prior_curvature(spec, theta)))[weights, weights]
    np.testing.assert_allclose(lines.T @ lines, without_prior, atol=1e-10 * np.abs(matrix).max())


@pytest.mark.parametrize(
    "name, with_row_noise", statistics_but(FEW[1:2], [*FEW, ("hierarchical_ntk", False), *MORE[:2]])
)
def test_the_bend_is_that_of_the_outputs_along_the_step(name, with_row_noise):
    """Against autodiff; and a step twice as long has four times the bend."""
    spec, data, theta = setting(name, with_row_noise)
    step = 0.01 * np.random.default_rng(31).normal(size=len(theta))
    length = tf.constant(0.0, tf.float64)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        outer.watch(length)
        inner.watch(length)
        outputs = network_outputs(spec, (theta + length * step)[None], data.x)[0]
        slope = inner.jacobian(outputs, length)
    second = outer.jacobian(slope, length)
    jacobian, outputs = output_jacobian(spec, tf.constant(theta), data.x)
    information, _ = gauss_newton._information(spec, tf.constant(theta), data, outputs)
    expected = np.einsum("kpn,kn->p", jacobian, information.times(second))
    bend = outputs_bend(spec, theta, step, data)
    np.testing.assert_allclose(bend, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    twice = outputs_bend(spec, theta, 2.0 * step, data)
    np.testing.assert_allclose(twice, 4.0 * bend, rtol=1e-2, atol=1e-3 * np.abs(bend).max())


@pytest.mark.parametrize(
    "name", statistics_but(["ard_ntk"], ["hierarchical", "ard_ntk", "categorical_ntk"])
)
def test_matrices_inside_programs_are_the_same(name):
    spec, data, theta = setting(name)
    networks = np.stack([theta, 0.5 * theta])
    found = gauss_newton_matrices(spec, tf.constant(networks), data, tf.ones([2], tf.float64))
    for matrix, network in zip(found, networks):
        expected = gauss_newton_matrix(spec, network, data)
        np.testing.assert_allclose(matrix, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["ard", "ard_ntk"])
def test_every_input_has_the_curvature_of_its_own_scale(name):
    """The diagonal of the prior's curvature: per weight 1 / s^2, per scale 2 per weight it rules."""
    spec, _, theta = setting(name)
    layout, standard = spec.layout, not spec.is_ntk
    slot, curvature = layout.layers[0].kernel, prior_curvature(spec, theta).numpy()
    scales = np.exp(theta[slot.scales]) if standard else np.ones(3)
    np.testing.assert_allclose(
        curvature[slot.weights].reshape(slot.shape), np.tile(scales[:, None] ** -2, slot.shape[1])
    )
    # HalfNormal(1.5) of s: minus the second derivative in log s is 2 s^2 / 1.5^2.
    own = 2.0 * np.exp(2.0 * theta[slot.scales]) / 1.5**2
    of_weights = 2.0 * slot.shape[1] if standard else 0.0
    np.testing.assert_allclose(curvature[slot.scales], own + of_weights)


def test_whitening_makes_the_curvature_the_identity():
    spec, data, theta = setting("ntk")
    curvature = gauss_newton_matrix(spec, theta, data)
    linear_map = whitening_map(theta[None], curvature[None])
    matrix = linear_map.matrix[0]
    np.testing.assert_allclose(matrix.T @ curvature @ matrix, np.eye(len(theta)), atol=1e-8)
    np.testing.assert_array_equal(linear_map.transposed[0], matrix.T)
    z = np.random.default_rng(23).normal(size=(1, len(theta)))
    np.testing.assert_allclose(linear_map.inverse(linear_map.forward(z)), z, atol=1e-8)


def test_a_map_of_low_rank_whitens_few_rows_and_many_parameters():
    generator = np.random.default_rng(31)
    lines, prior = 30.0 * generator.normal(size=(2, 4, 9)), generator.uniform(0.1, 4.0, (2, 9))
    lines[1, 3] = lines[1, 2]  # linearly dependent
    centre = generator.normal(size=(2, 9))
    linear_map = as_tensors(low_rank_map(centre, lines, prior))
    units = tf.eye(9, dtype=tf.float64)
    columns = [linear_map.forward(tf.stack([one, one])) - centre for one in units]
    matrix = np.stack(columns, axis=-1)  # [2, 9, 9]
    curvature = lines.swapaxes(1, 2) @ lines + prior[:, None] * np.eye(9)
    found = matrix.swapaxes(1, 2) @ curvature @ matrix
    np.testing.assert_allclose(found, np.tile(np.eye(9), (2, 1, 1)), atol=1e-9)
    slope = generator.normal(size=(2, 9))
    expected = np.einsum("cij,ci->cj", matrix, slope)
    np.testing.assert_allclose(linear_map.pull_back(slope), expected, rtol=1e-10)


def test_whitened_gradient_is_pulled_back():
    """The map brings its own derivative, for the sake of speed: it must be the derivative."""
    generator = np.random.default_rng(29)
    curvature = np.eye(3) + generator.normal(size=(2, 3, 1)) * generator.normal(size=(2, 1, 3)) ** 2
    curvature = curvature @ np.swapaxes(curvature, 1, 2)
    linear_map = whitening_map(generator.normal(size=(2, 3)), curvature)
    z, slope = tf.constant(generator.normal(size=(2, 3))), generator.normal(size=(2, 3))
    with tf.GradientTape() as tape:
        tape.watch(z)
        value = tf.reduce_sum(slope * linear_map.forward(z))
    np.testing.assert_allclose(tape.gradient(value, z), linear_map.pull_back(slope), rtol=1e-12)
    expected = np.einsum("cij,ci->cj", linear_map.matrix, slope)
    np.testing.assert_allclose(linear_map.pull_back(slope), expected, rtol=1e-10)


def test_whitening_copes_with_directions_nothing_determines():
    linear_map = whitening_map(np.zeros((1, 2)), np.diag([0.0, 4.0])[None])
    assert np.all(np.isfinite(linear_map.matrix)) and np.all(np.isfinite(linear_map.transposed))
