"""Rows that are chosen to stand for all: what they must keep of the likelihood."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.builders import plain_spec
from tfbnn import likelihoods, priors
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix
from tfbnn.engine.density.laplace import row_leverages, row_scores_and_information
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import taped
from tfbnn.fit import condensing
from tfbnn.fit.condensing import condense
from tfbnn.spec.rows import NetworkRows

pytestmark = pytest.mark.tensorflow

KNOWN = {"likelihood": likelihoods.Gaussian([0.3, 0.05]), "prior": priors.Normal(2.0)}
LEARNED = {"likelihood": likelihoods.Gaussian("learned"), "prior": priors.Normal(2.0)}


@pytest.fixture(autouse=True)
def few_are_kept(monkeypatch):
    monkeypatch.setattr(condensing, "_FEWEST", 300)


DIGESTS = np.array([3, 2**32 - 1], np.uint32)


def make_rows(count, seed=1, noise=False):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, 3))
    y = np.stack([np.sin(x[:, 0]) - x[:, 1], x @ [1, 0.5, -1]], axis=1)
    known = 10.0 ** generator.uniform(-2, 0, size=y.shape) if noise else None
    return NetworkRows(x, y + 0.1 * generator.normal(size=y.shape), known)


def draws_near(spec, num_chains=2, num_draws=2, spread=0.1, seed=4):
    """Return normal numbers near 0, shaped as if they were draws of chains."""
    generator = np.random.default_rng(seed)
    return spread * generator.normal(size=(num_chains, num_draws, spec.num_parameters))


def data_of(rows):
    return make_data(*rows, "float64")


def condensed(spec, rows, draws=None):
    draws = draws_near(spec) if draws is None else draws
    weights = np.full(len(draws), 1 / len(draws))
    return spec.after(condense(spec, rows, draws, weights, DIGESTS))


def log_likelihood(spec, theta, *batches):
    bare = Potential(spec.of_earlier())
    return sum(bare.log_likelihood(tf.constant(theta), data_of(rows)).numpy() for rows in batches)


def after_all(spec, *batches):
    for rows in batches:
        spec = condensed(spec, rows)
    return spec


def assert_the_likelihood(after, spec, *batches, power=1.0, rtol=1e-9):
    """The kept rows say as much as these rows, wherever the network is."""
    theta = np.random.default_rng(9).normal(size=(4, spec.num_parameters))
    found = Potential(after).earlier_log_prob(tf.constant(theta)).numpy()
    np.testing.assert_allclose(found, power * log_likelihood(spec, theta, *batches), rtol=rtol)


@pytest.mark.parametrize(
    ("parameterization", "settings"),
    [("standard", LEARNED), ("ntk", KNOWN)],
    ids=["standard, learned noise", "ntk, known noise"],
)
def test_for_a_linear_network_they_are_the_likelihood(settings, parameterization):
    """Batch after batch, three rows for each that is kept."""
    spec = plain_spec([3, 2], dtype="float64", parameterization=parameterization, **settings)
    batches = [make_rows(300, seed) for seed in (1, 2, 3)]
    after = after_all(spec, *batches)
    assert after.earlier.num_rows == 900 and after.earlier.num_kept == 300
    assert_the_likelihood(after, spec, *batches)


def test_all_rows_are_kept_where_there_is_room():
    spec = plain_spec([3, 4, 2], dtype="float64", **LEARNED)
    batches = [make_rows(100, seed) for seed in (1, 2)]
    after = after_all(spec, *batches)
    assert after.earlier.num_kept == 200 and (after.earlier.weights.values == 1.0).all()
    assert_the_likelihood(after, spec, *batches, rtol=1e-12)


@pytest.mark.statistics
@pytest.mark.parametrize(
    "likelihood", [likelihoods.Gaussian("learned"), likelihoods.StudentT(5.0)], ids=type
)
def test_other_networks_are_told_apart_as_by_all_rows(likelihood):
    """Networks that no weight was chosen by: differences of hundreds of nats within a few percent."""
    settings = {"likelihood": likelihood, "prior": priors.Normal(1.0)}
    spec = plain_spec([3, 8, 2], dtype="float64", **settings)
    rows = make_rows(3000)
    after = condensed(spec, rows, draws_near(spec, spread=0.5))
    assert after.earlier.num_kept == 300
    theta = draws_near(spec, 1, 20, spread=0.5, seed=11)[0]
    theta[:, spec.layout.log_noise_scale] = 0.0
    found = Potential(after).earlier_log_prob(tf.constant(theta)).numpy()
    exact = log_likelihood(spec, theta, rows)
    assert np.ptp(exact) > 1000
    assert np.std(found - exact) < 0.1 * np.std(exact)


@pytest.mark.statistics
@pytest.mark.parametrize("power", [1.0, 0.25])
def test_noise_that_is_known_row_by_row_and_a_power_are_kept(power):
    """Over two orders of magnitude, so that few rows say most; beside rows without it."""
    spec = replace(plain_spec([3, 2], dtype="float64", **KNOWN), likelihood_power=power)
    batches = make_rows(400, noise=True), make_rows(400, seed=2)
    assert_the_likelihood(after_all(spec, *batches), spec, *batches, power=power)


def test_rows_that_alone_determine_something_are_kept_as_they_are():
    spec, rows = plain_spec([3, 2], dtype="float64", **KNOWN), make_rows(900)
    x = rows.x.copy()
    x[:, 2] = 0.0
    x[[7, 500], 2] = 5.0
    kept = condensed(spec, rows._replace(x=x)).earlier
    far = kept.x.values[:, 2] == 5.0
    assert far.sum() == 2 and np.all(np.abs(kept.weights.values[far] - 1.0) < 0.1)


def test_weights_are_positive_and_as_many_as_there_are_rows():
    spec = plain_spec([3, 8, 2], dtype="float64", **LEARNED)
    kept = condensed(spec, make_rows(2000)).earlier
    assert kept.weights.values.sum() == pytest.approx(2000)
    assert 0 < kept.weights.values.min() and kept.weights.values.max() < 12 * 2000 / 300


def test_chains_without_weight_say_nothing():
    spec, rows = plain_spec([3, 3, 2], dtype="float64", **KNOWN), make_rows(400)
    draws = draws_near(spec, 3, spread=2.0)
    found = condense(spec, rows, draws, np.array([0.25, 0.0, 0.75]), DIGESTS)
    assert found == condense(spec, rows, draws[[0, 2]], np.array([0.5, 0.5]), DIGESTS)
    assert found.digests.values.tolist() == DIGESTS.tolist()
    assert np.array_equal(found.networks.values, draws[[0, 2], -1])


def test_where_there_is_no_room_fewer_are_kept_with_a_warning(monkeypatch):
    monkeypatch.setattr(condensing, "_MOST_NUMBERS", 100 * (3 + 2 * 2 + 1))
    spec = plain_spec([3, 2], dtype="float64", **KNOWN)
    with pytest.warns(UserWarning, match="can keep 100 of 400 rows, .* need 300"):
        assert condensed(spec, make_rows(400)).earlier.num_kept == 100


def test_what_single_rows_say_adds_up_to_what_all_say():
    spec = plain_spec([3, 3, 2], dtype="float64", **KNOWN)
    rows, theta = make_rows(40), draws_near(spec)[0, 0]
    terms = row_scores_and_information(spec, theta, data_of(rows)).sum(axis=1)
    size = spec.num_parameters
    _, gradient = taped(
        lambda point: Potential(spec).log_likelihood(point, data_of(rows)), tf.constant(theta[None])
    )
    np.testing.assert_allclose(terms[:size], gradient[0], atol=1e-8)
    none = data_of(rows)._replace(last=tf.constant(0))
    matrix = gauss_newton_matrix(spec, theta, data_of(rows))
    prior = gauss_newton_matrix(spec, theta, none)
    np.testing.assert_allclose(terms[size:], (matrix - prior)[np.triu_indices(size)], atol=1e-8)
    leverages = row_leverages(spec, theta, data_of(rows), np.linalg.cholesky(matrix))
    known = size - np.trace(np.linalg.solve(matrix, prior))
    assert leverages.sum() == pytest.approx(known) and leverages.max() < 2


def test_a_matrix_that_has_no_factor_is_named():
    spec = plain_spec([3, 3, 2], dtype="float64", **KNOWN)
    draws = np.full([1, 1, spec.num_parameters], np.inf)
    with pytest.raises(ValueError, match="finite and positive definite at the last draw of every"):
        condensed(spec, make_rows(400), draws)
