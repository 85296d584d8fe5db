"""The prior of all parameters together against SciPy and against its own derivatives."""

import numpy as np
import pytest
from scipy import stats

from tests.support.mixtures import spec_under_mixture
from tests.support.specs import random_rows
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.gauss_newton import (
    gauss_newton_diagonal,
    gauss_newton_matrices,
    gauss_newton_matrix,
    gauss_newton_product,
)
from tfbnn.engine.density.hessian import hessian
from tfbnn.engine.density.joint_prior import prior_precision
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.starts.newton import polish

RANKS = [None, 4, 0]


def points(spec, count=5):
    return np.random.default_rng(8).normal(size=(count, spec.num_parameters))


@pytest.mark.parametrize("rank", RANKS)
def test_density_is_that_of_scipy(rank):
    spec, covariances = spec_under_mixture(rank)
    theta, prior = points(spec), spec.joint_prior
    expected = np.log(
        sum(
            w * stats.multivariate_normal(m, c).pdf(theta)
            for w, m, c in zip(prior.weights.values, prior.loc.values, covariances)
        )
    )
    found = Potential(spec).log_prior(tf.constant(theta)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("rank", RANKS)
def test_precision_of_one_component_is_minus_the_second_derivative(rank):
    spec, covariances = spec_under_mixture(rank, weights=(1.0,))
    theta = tf.constant(points(spec, 1))
    precision = prior_precision(spec, theta[0])
    expected = -hessian(Potential(spec).log_prior, theta)[0].numpy()
    np.testing.assert_allclose(precision.matrix(), expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(
        precision.matrix() @ covariances[0], np.eye(len(expected)), atol=1e-9
    )
    np.testing.assert_allclose(precision.diagonal(), np.diag(expected), rtol=1e-9)
    vector = tf.constant(points(spec, 2)[1])
    np.testing.assert_allclose(precision.times(vector), expected @ vector.numpy(), rtol=1e-8)


def test_of_several_components_the_nearest_has_the_curvature():
    spec, covariances = spec_under_mixture()
    for loc, covariance in zip(spec.joint_prior.loc.values, covariances):
        found = prior_precision(spec, tf.constant(loc)).matrix()
        np.testing.assert_allclose(found, np.linalg.inv(covariance), rtol=1e-6, atol=1e-9)


def test_draws_have_the_moments_of_the_mixture():
    spec, covariances = spec_under_mixture(4)
    prior, generator = spec.joint_prior, np.random.default_rng(2)
    draws = np.stack([prior.sample(generator) for _ in range(20_000)])
    weights, loc = prior.weights.values, prior.loc.values
    mean = weights @ loc
    covariance = np.einsum("b,bij->ij", weights, covariances) + np.einsum(
        "b,bi,bj->ij", weights, loc - mean, loc - mean
    )
    spread = np.sqrt(np.diag(covariance))
    # Five standard errors of 20 000 draws.
    assert np.abs((draws.mean(axis=0) - mean) / spread).max() < 5 / 20_000**0.5
    errors = (np.cov(draws, rowvar=False) - covariance) / (spread[:, None] * spread)
    assert np.abs(errors).max() < 8 / 20_000**0.5


def test_all_forms_of_the_gauss_newton_matrix_have_it():
    spec, _ = spec_under_mixture(4)
    x, y, _ = random_rows(spec, np.random.default_rng(5))
    data, theta = make_data(x, y, None, "float64"), points(spec, 1)
    matrix = gauss_newton_matrix(spec, theta[0], data)
    bare = gauss_newton_matrix(spec.without_joint_prior(), theta[0], data)
    added = prior_precision(spec, tf.constant(theta[0])).matrix().numpy()
    unit = prior_precision(spec.without_joint_prior(), tf.constant(theta[0])).matrix().numpy()
    np.testing.assert_allclose(matrix - bare, added - unit, atol=1e-9 * np.abs(matrix).max())
    inside = gauss_newton_matrices(spec, tf.constant(theta), data, tf.ones(1, tf.float64))[0]
    np.testing.assert_allclose(inside, matrix, rtol=1e-9, atol=1e-9 * np.abs(matrix).max())
    np.testing.assert_allclose(gauss_newton_diagonal(spec, theta[0], data), np.diag(matrix))
    vector = points(spec, 2)[1]
    np.testing.assert_allclose(
        gauss_newton_product(spec, theta[0], data, vector), matrix @ vector, rtol=1e-8
    )


def test_levenberg_marquardt_climbs_under_it():
    spec, _ = spec_under_mixture()
    x, y, _ = random_rows(spec, np.random.default_rng(5))
    data, states = make_data(x, y, None, "float64"), []
    polish(spec, points(spec, 1)[0], data, 30, "dense", states.append)
    sizes = [np.abs(state.gradient[: spec.layout.num_weights]).max() for state in states]
    assert states[-1].gain > 25 and sizes[-1] < 0.2 * sizes[0]
