"""Check what earlier rows add to the prior against NumPy, and against its own derivatives."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import keras_models, reference
from tests.support.builders import plain_spec
from tests.support.marks import statistics_but
from tests.support.specs import random_rows
from tfbnn import likelihoods
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.gauss_newton import (
    gauss_newton_diagonal,
    gauss_newton_matrices,
    gauss_newton_matrix,
    scaled_jacobian,
)
from tfbnn.engine.density.potential import Potential, hessian
from tfbnn.spec.priors import EarlierRows

WEIGHTS = np.array([0.5, 1.0, 1.0, 3.0, 2.5])


def earlier_rows(spec, noise=None, **change):
    generator, count = np.random.default_rng(3), len(WEIGHTS)
    y = generator.normal(size=(count, spec.num_targets))
    if spec.likelihood.has_classes:
        y = generator.integers(0, max(spec.num_outputs, 2), size=(count, 1)).astype(float)
    arrays = {
        "x": generator.normal(size=(count, spec.num_inputs)),
        "y": y,
        "noise": noise,
        "weights": WEIGHTS,
        "networks": generator.normal(size=(2, spec.num_parameters)),
    }
    return EarlierRows.of(**{"num_rows": 20} | arrays | change)


def spec_after(layer_sizes, noise=None, **settings):
    spec = plain_spec(layer_sizes, dtype="float64", **settings)
    return spec.after(earlier_rows(spec, noise))


def points(spec, count=3):
    return 0.7 * np.random.default_rng(8).normal(size=(count, spec.num_parameters))


def as_often_as_they_count(spec):
    """The Data in which each earlier row is there twice its weight times."""
    kept, times = spec.earlier, (2 * WEIGHTS).astype(int)
    noise = None if kept.noise is None else np.repeat(kept.noise.values, times, axis=0)
    x, y = (np.repeat(array.values, times, axis=0) for array in (kept.x, kept.y))
    return make_data(x, y, noise, "float64")


LIKELIHOODS = {
    "learned": likelihoods.Gaussian("learned"),
    "known": likelihoods.Gaussian(0.3),
    "heavy tails": likelihoods.StudentT(5.0),
    "classes": likelihoods.Categorical(),
    "two classes": likelihoods.Bernoulli(),
}


def test_density_equals_numpy():
    spec = spec_after([2, 3, 2], noise=np.full([5, 2], 0.1))
    kept, theta = spec.earlier, points(spec)
    expected = []
    for line in theta:
        scale = np.sqrt(np.exp(2 * line[spec.layout.log_noise_scale]) + 0.1**2)
        z = (kept.y.values - reference.outputs(spec, line, kept.x.values)) / scale
        terms = -0.5 * z**2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
        expected.append(WEIGHTS @ terms.sum(axis=1))
    np.testing.assert_allclose(
        Potential(spec).earlier_log_prob(tf.constant(theta)), expected, rtol=1e-10
    )
    bare = Potential(replace(spec, earlier=None)).log_prior(tf.constant(theta))
    found = Potential(spec).log_prior(tf.constant(theta)) - bare
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("name", statistics_but(["learned", "heavy tails", "classes"], LIKELIHOODS))
def test_a_weight_is_how_often_a_row_is_there(name):
    likelihood = LIKELIHOODS[name]
    spec = spec_after(
        [2, 3, 1 if likelihood == LIKELIHOODS["two classes"] else 3], likelihood=likelihood
    )
    theta, twice = points(spec), as_often_as_they_count(spec)
    expected = Potential(spec.of_earlier()).log_likelihood(tf.constant(theta), twice)
    np.testing.assert_allclose(
        2 * Potential(spec).earlier_log_prob(tf.constant(theta)), expected, rtol=1e-12
    )
    prior = gauss_newton_matrix(replace(spec, earlier=None), theta[0], none_of(spec))
    added = gauss_newton_matrix(spec, theta[0], none_of(spec)) - prior
    np.testing.assert_allclose(
        2 * added, gauss_newton_matrix(spec.of_earlier(), theta[0], twice) - prior, atol=1e-9
    )


def data_of(spec):
    x, y, _ = random_rows(spec, np.random.default_rng(5))
    return make_data(x, y, None, "float64")


def none_of(spec):
    """Data of rows of which none counts."""
    return data_of(spec)._replace(last=tf.constant(0))


def test_of_a_linear_network_the_matrix_is_minus_the_second_derivative():
    spec = spec_after([3, 2], likelihood=LIKELIHOODS["known"])
    theta, data = tf.constant(points(spec, 1)), none_of(spec)
    expected = -hessian(Potential(spec).log_prior, theta)[0].numpy()
    np.testing.assert_allclose(gauss_newton_matrix(spec, theta[0], data), expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_all_forms_of_the_gauss_newton_matrix_have_them():
    """Also under a likelihood of the power 0, which leaves them as they are."""
    spec = spec_after([2, 3, 1])
    data, theta, nothing = data_of(spec), points(spec, 1), none_of(spec)
    prior = gauss_newton_matrix(replace(spec, earlier=None), theta[0], nothing)
    added = gauss_newton_matrix(spec, theta[0], nothing) - prior
    matrix = gauss_newton_matrix(spec, theta[0], data)
    bare = gauss_newton_matrix(replace(spec, earlier=None), theta[0], data)
    np.testing.assert_allclose(matrix, bare + added, rtol=1e-10)
    whole, cold = gauss_newton_matrices(
        spec, tf.constant(np.repeat(theta, 2, axis=0)), data, tf.constant([1.0, 0.0], tf.float64)
    )
    np.testing.assert_allclose(whole, matrix, rtol=1e-9)
    np.testing.assert_allclose(cold, prior + added)
    np.testing.assert_allclose(gauss_newton_diagonal(spec, theta[0], data), np.diag(matrix))
    lines = scaled_jacobian(spec, theta[0], data)
    weights = slice(0, spec.layout.num_weights)
    expected = (matrix - prior)[weights, weights]
    np.testing.assert_allclose((lines.T @ lines)[weights, weights], expected, rtol=1e-8)


@pytest.mark.statistics
def test_keras_models_have_them_in_compiled_programs():
    kind = keras_models.KINDS["subclassed"]
    spec = kind.model(dtype="float64").spec
    spec = spec.after(earlier_rows(spec))
    x, y = kind.rows()
    data, theta = make_data(x, y[:, None], None, "float64"), points(spec, 1)
    inside = gauss_newton_matrices(spec, tf.constant(theta), data, tf.ones(1, tf.float64))[0]
    np.testing.assert_allclose(inside, gauss_newton_matrix(spec, theta[0], data), rtol=1e-8)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"weights": WEIGHTS - 0.5}, "weights of EarlierRows must be positive"),
        ({"weights": np.ones(4)}, r"weights of EarlierRows must be an array \[M\]"),
        ({"y": np.zeros((4, 1))}, r"y of EarlierRows must be an array \[M, K\]"),
        ({"x": np.zeros(5)}, r"x of EarlierRows must be an array \[M, D\]"),
        ({"noise": np.ones((5, 2))}, r"noise of EarlierRows must be an array \[M, K\]"),
        ({"digests": np.array([0.5])}, "digests of EarlierRows must be integers of 32 bits"),
        ({"digests": np.array([-1.0])}, "digests of EarlierRows must be integers of 32 bits"),
        ({"num_rows": 4}, "num_rows"),
        ({"x": np.zeros((5, 3))}, "earlier must be of networks with"),
        ({"networks": np.zeros((2, 3))}, "earlier must be of networks with"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    spec = plain_spec([2, 3, 1], dtype="float64")
    with pytest.raises(ValueError, match=message):
        spec.after(earlier_rows(spec, **change))


def test_what_is_no_earlier_rows_is_refused():
    with pytest.raises(TypeError, match="earlier must be EarlierRows"):
        plain_spec([2, 3, 1]).after(3)
