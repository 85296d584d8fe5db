"""Rows condensed to normal distributions of outputs: what they must keep of the likelihood."""

import numpy as np
import pytest

from tests.support.builders import plain_spec
from tfbnn import likelihoods, priors
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.earlier import earlier_log_prob
from tfbnn.engine.density.fisher import prior_curvature
from tfbnn.engine.density.gauss_newton import earlier_matrix, gauss_newton_matrix
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import taped
from tfbnn.engine.starts import condensing
from tfbnn.engine.starts.condensing import condense
from tfbnn.spec.rows import NetworkRows

KNOWN = {"likelihood": likelihoods.Gaussian([0.3, 0.05]), "prior": priors.Normal(2.0)}


def make_rows(count, seed=1):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, 3))
    y = np.stack([np.sin(x[:, 0]) - x[:, 1], x @ [1, 0.5, -1]], axis=1)
    return NetworkRows(x, y + 0.1 * generator.normal(size=y.shape), None)


def draws_near(spec, num_chains=2, num_draws=5, spread=0.1, seed=4):
    """As if they were of chains: it is the last one and the mean noise that count."""
    generator = np.random.default_rng(seed)
    return spread * generator.normal(size=(num_chains, num_draws, spec.num_parameters))


def data_of(rows):
    return make_data(*rows, "float64")


def condensed(spec, rows, draws=None):
    draws = draws_near(spec) if draws is None else draws
    weights = np.full(len(draws), 1 / len(draws))
    return spec.after(condense(spec, rows, draws, weights))


@pytest.mark.parametrize("num_rows", [30, 4])
@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
def test_for_a_linear_network_they_are_the_likelihood(num_rows, parameterization):
    """Batch after batch, with more inputs than are kept, and with fewer rows than parameters."""
    spec = plain_spec([3, 2], dtype="float64", parameterization=parameterization, **KNOWN)
    batches = [make_rows(num_rows, seed) for seed in (1, 2, 3)]
    after = spec
    for rows in batches:
        after = condensed(after, rows)
    theta = tf.constant(np.random.default_rng(9).normal(size=(4, spec.num_parameters)))
    found = earlier_log_prob(after, theta).numpy()
    exact = sum(Potential(spec).log_likelihood(theta, data_of(rows)).numpy() for rows in batches)
    np.testing.assert_allclose(found - found[0], exact - exact[0], rtol=1e-6)
    assert after.earlier.num_rows == 3 * num_rows and after.earlier.num_components == 1


def test_noise_that_is_known_row_by_row_is_kept():
    """Over two orders of magnitude, so that few rows say most."""
    spec, rows = plain_spec([3, 2], dtype="float64", **KNOWN), make_rows(60)
    noise = 10.0 ** np.random.default_rng(2).uniform(-2, 0, size=rows.y.shape)
    rows = rows._replace(noise=noise)
    theta = tf.constant(np.random.default_rng(9).normal(size=(4, spec.num_parameters)))
    found = earlier_log_prob(condensed(spec, rows), theta).numpy()
    exact = Potential(spec).log_likelihood(theta, data_of(rows)).numpy()
    np.testing.assert_allclose(found - found[0], exact - exact[0], rtol=1e-6)


@pytest.mark.parametrize("likelihood", [likelihoods.Gaussian("learned"), likelihoods.StudentT(5.0)])
def test_there_they_have_gradient_and_matrix_of_the_likelihood(likelihood):
    spec = plain_spec([3, 3, 2], dtype="float64", likelihood=likelihood, prior=priors.Normal(1.0))
    rows = make_rows(20)  # all of which are kept
    after = condensed(spec, rows, draws_near(spec, 1, spread=0.5))
    top, data = after.earlier.networks.values[0], data_of(rows)
    matrix = gauss_newton_matrix(spec, top, data) - np.diag(prior_curvature(spec, top))
    weights = slice(0, spec.layout.num_weights)
    found = earlier_matrix(after, tf.constant(top)).numpy()[weights, weights]
    np.testing.assert_allclose(
        found, matrix[weights, weights], atol=1e-6 * np.abs(matrix[weights, weights]).max()
    )
    at_top = tf.constant(top[None])
    gradient = taped(lambda theta: earlier_log_prob(after, theta), at_top)[1][0, weights]
    _, exact = Potential(spec).log_likelihood_and_gradient(at_top, data)
    np.testing.assert_allclose(gradient, exact[0, weights], atol=1e-4)


def test_outputs_are_not_known_better_than_by_the_rows_that_there_are():
    spec = plain_spec([3, 3, 2], dtype="float64", **KNOWN)
    prior = condensed(spec, make_rows(400)).earlier
    noise = np.tile([0.3, 0.05], prior.num_inputs)
    largest = np.linalg.norm(prior.lines.values[0] * noise, 2)
    assert 1.0 < largest < 2.01 * (400 / prior.num_inputs) ** 0.5


def test_they_are_made_where_the_posterior_is_largest_given_the_noise():
    spec = plain_spec([3, 3, 2], dtype="float64", prior=priors.Normal(1.0))
    rows, draws = make_rows(60), draws_near(spec, 1, spread=0.5)
    top = condensed(spec, rows, draws).earlier.networks.values
    place = spec.layout.log_noise_scale
    assert top[0, place] == pytest.approx(draws[0, :, place].mean(axis=0))
    _, gradient = Potential(spec).value_and_gradient(tf.constant(top), data_of(rows))
    assert np.abs(gradient[0, : spec.layout.num_weights]).max() < 0.5


def test_chains_with_one_top_make_one_component_and_others_their_own():
    spec = plain_spec([3, 3, 2], dtype="float64", **KNOWN)
    draws = draws_near(spec, 2, spread=1.0)
    draws[1, -1] = draws[0, -1]
    assert condensed(spec, make_rows(40), draws).earlier.num_components == 1
    draws[1, -1] = draws_near(spec, 2, spread=2.0, seed=7)[1, -1]
    found = condensed(spec, make_rows(40), draws).earlier
    assert found.num_components == 2 and found.weights.values.tolist() == [0.5, 0.5]


def test_noise_is_that_of_the_draws_without_its_prior():
    """A log-normal prior is a normal one of the logarithm, so that the quotient is exact."""
    noise_prior = priors.LogNormal(-1.0, 0.8)
    spec = plain_spec(
        [3, 1], dtype="float64", likelihood=likelihoods.Gaussian("learned", scale_prior=noise_prior)
    )
    draws = draws_near(spec, 1, 400)
    draws[..., spec.layout.log_noise_scale] = np.random.default_rng(5).normal(-2, 0.4, (1, 400, 1))
    rows = make_rows(40)
    prior = condensed(spec, NetworkRows(rows.x, rows.y[:, :1], None), draws).earlier
    place = draws[0, :, spec.layout.log_noise_scale]
    mean, variance = place.mean(), place.var()
    precision = 1 / variance - 1 / 0.8**2
    expected = (mean / variance + 1.0 / 0.8**2) / precision
    np.testing.assert_allclose(prior.log_noise.values, [[expected]])
    np.testing.assert_allclose(prior.log_noise_scale.values, [[precision**-0.5]])


def test_the_rows_that_determine_most_are_kept():
    spec, rows = plain_spec([3, 2], dtype="float64", **KNOWN), make_rows(50)
    far = np.argsort(-np.square(rows.x).sum(axis=1))[:2]
    inputs = condensed(spec, rows).earlier.inputs.values
    assert len(inputs) == 8  # twice the parameters over the outputs
    for row in far:
        assert (inputs == rows.x[row]).all(axis=1).any()


def test_chains_without_weight_say_nothing():
    spec, rows = plain_spec([3, 3, 2], dtype="float64", **KNOWN), make_rows(40)
    draws = draws_near(spec, 3, spread=2.0)
    prior = condense(spec, rows, draws, np.array([0.25, 0.0, 0.75]))
    assert prior.weights.values.tolist() == [0.25, 0.75]
    assert prior.networks == condense(spec, rows, draws[[0, 2]], np.array([0.25, 0.75])).networks


def test_where_there_is_no_room_the_most_telling_directions_are_kept_with_a_warning(monkeypatch):
    spec, rows = plain_spec([3, 2], dtype="float64", **KNOWN), make_rows(40)
    whole = condensed(spec, rows)
    monkeypatch.setattr(condensing, "_MOST_NUMBERS", 5 * 16)
    with pytest.warns(UserWarning, match="has room for 5 of 8 directions .* leaves out 3"):
        part = condensed(spec, rows)
    assert np.array_equal(part.earlier.lines.values, whole.earlier.lines.values[:, 3:])
