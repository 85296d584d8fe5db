"""Rows of a fit as if they had been left out of it, by their leverage."""

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.linearised import linearised_ensemble
from tfbnn import BayesianMLP
from tfbnn.likelihoods import Gaussian, HeteroscedasticGaussian
from tfbnn.posterior.calibration.calibrating import calibration_of_moments, folds
from tfbnn.posterior.calibration.left_out import Tangents, left_out, left_out_moments
from tfbnn.posterior.prediction import target_tiles
from tfbnn.priors import Normal
from tfbnn.spec.rows import NetworkRows

# Weight and group of it.
ONE_CHAIN = np.ones(1), np.zeros(1)


def exact_linear(num_rows=40, num_weights=6, noise=0.3, num_draws=20_000, power=1.0):
    """(Target, draws of x theta under the exact posterior with a standard normal prior, its terms).

    Of the likelihood to a power all rows have, those that are not left out too.
    """
    generator = np.random.default_rng(5)
    x = generator.normal(size=(num_rows, num_weights))
    y = x @ generator.normal(size=num_weights) + noise * generator.normal(size=num_rows)

    def posterior(rows):
        precision = power * x[rows].T @ x[rows] / noise**2 + np.eye(num_weights)
        covariance = np.linalg.inv(precision)
        return power * covariance @ x[rows].T @ y[rows] / noise**2, covariance

    mean, covariance = posterior(np.arange(num_rows))
    theta = generator.multivariate_normal(mean, covariance, size=num_draws)
    others = [posterior(np.arange(num_rows) != row) for row in range(num_rows)]
    means = [one @ x[i] for i, (one, _) in enumerate(others)]
    stddevs = [np.sqrt(x[i] @ spread @ x[i] + noise**2) for i, (_, spread) in enumerate(others)]
    return y, theta @ x.T, (means, stddevs)


@pytest.mark.parametrize("power", [1.0, 0.2])
def test_rows_left_out_are_predicted_as_if_fitted_without_them(power):
    """Against the exact posterior of all other rows, of a linear model; coarsened too."""
    noise = 0.3
    y, location, (exact_mean, exact_stddev) = exact_linear(noise=noise, power=power)
    draws = location[..., None]
    mean, stddev, judged = left_out(y[:, None], draws, np.array(noise), *ONE_CHAIN, power)
    assert judged.all()
    np.testing.assert_allclose(stddev[:, 0], exact_stddev, rtol=0.02)
    np.testing.assert_allclose(mean[:, 0], exact_mean, atol=0.02)
    assert np.max(np.abs(location.mean(axis=0) - exact_mean)) > 0.1


def test_rows_left_out_have_the_noise_of_predictions():
    """Their leverage is that of the likelihood, whose noise may be another."""
    y, location, _ = exact_linear(num_draws=400)
    draws = location[..., None]
    mean, stddev, _ = left_out(y[:, None], draws, np.array(0.3), *ONE_CHAIN)
    wider = left_out(y[:, None], draws, np.array(0.3), *ONE_CHAIN, 1.0, np.array(0.5))
    np.testing.assert_array_equal(wider[0], mean)
    np.testing.assert_allclose(wider[1] ** 2 - stddev**2, 0.5**2 - 0.3**2, rtol=1e-9)


def test_groups_of_chains_that_rows_are_left_out_of_are_mixed_by_weight():
    y, location, _ = exact_linear(num_draws=400)
    apart = np.concatenate([location[:200], location[200:] + 1.0])[..., None]
    weights, noise = np.array([0.25, 0.75]), np.array(0.3)
    mean, stddev, _ = left_out(y[:, None], apart, noise, weights, np.arange(2))
    parts = [left_out(y[:, None], part, noise, *ONE_CHAIN) for part in np.split(apart, 2)]
    expected = sum(w * part[0] for w, part in zip(weights, parts))
    second = sum(w * (part[0] ** 2 + part[1] ** 2) for w, part in zip(weights, parts))
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(stddev, np.sqrt(second - expected**2), rtol=1e-9)


def test_chains_of_one_group_are_one_posterior():
    """Whatever its weights: parts of the draws of a chain have its leverage together."""
    y, location, _ = exact_linear(num_draws=400)
    # Sorted by one row, so that the parts disagree, and neither of them has the leverage.
    location = location[np.argsort(location[:, 0])][..., None]
    noise = np.array(0.3)
    whole = left_out(y[:, None], location, noise, *ONE_CHAIN)
    parts = left_out(y[:, None], location, noise, np.array([0.5, 0.5]), np.array([7, 7]))
    for one, other in zip(whole, parts):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_rows_that_decide_their_own_prediction_cannot_be_told():
    location = np.random.default_rng(0).normal(size=(100, 3, 1)) * [[[0.1], [0.5], [2.0]]]
    _, stddev, judged = left_out(np.zeros((3, 1)), location, np.array(1.0), *ONE_CHAIN)
    assert judged[:, 0].tolist() == [True, True, False] and np.isfinite(stddev).all()


def test_rows_of_a_group_left_out_together_are_predicted_as_if_fitted_without_them():
    """Against the exact posterior of all other rows; a group of one row is as that row."""
    noise, together = 0.3, np.arange(12)
    y, location, (mean_of_rows, _) = exact_linear(noise=noise)
    generator = np.random.default_rng(5)
    x = generator.normal(size=(40, 6))
    others = np.setdiff1d(np.arange(40), together)
    covariance = np.linalg.inv(x[others].T @ x[others] / noise**2 + np.eye(6))
    exact = x[together] @ (covariance @ x[others].T @ y[others] / noise**2)
    exact_stddev = np.sqrt(np.diag(x[together] @ covariance @ x[together].T) + noise**2)
    draws, rest = location[..., None], (np.array(noise), *ONE_CHAIN)
    found = left_out(y[together, None], draws[:, together], *rest, together=True)
    assert found[2].all()
    np.testing.assert_allclose(found[0][:, 0], exact, atol=0.02)
    np.testing.assert_allclose(found[1][:, 0], exact_stddev, rtol=0.02)
    assert np.max(np.abs(exact - mean_of_rows[:12])) > 0.05
    of_one = left_out(y[3:4, None], draws[:, 3:4], *rest)
    alone = left_out(y[3:4, None], draws[:, 3:4], *rest, together=True)
    for one, other in zip(of_one, alone):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_rows_that_are_alone_in_their_groups_are_left_out_as_without_groups():
    ensemble, (x, y) = synthetic_ensemble(num_results=20), make_rows(9, 2, 1)
    rows = NetworkRows(ensemble.x_pipeline.forward(x), ensemble.y_pipeline.forward(y), None)
    pairs = np.array([0, 1, 2, 1, 3, 4, 5, 4, 6])
    alone = np.bincount(pairs)[pairs] == 1
    plain, grouped, all_alone = (
        left_out_moments(ensemble, rows, labels) for labels in (None, pairs, np.arange(9))
    )
    for one, other, same in zip(plain, grouped, all_alone):
        np.testing.assert_array_equal(same, one)
        np.testing.assert_allclose(other[alone], one[alone], rtol=1e-12)
    of_pairs = left_out_moments(
        ensemble, rows.taken(np.flatnonzero(~alone)), np.array([0, 0, 1, 1])
    )
    for one, other in zip(of_pairs, grouped):
        np.testing.assert_allclose(one, other[[1, 3, 5, 7]], rtol=1e-12)
    assert grouped[0][1] != plain[0][1]


def test_a_group_that_decides_its_own_predictions_is_not_judged():
    """Each of its rows by itself would be: its twins tell what it is."""
    generator = np.random.default_rng(0)
    location = np.repeat(generator.normal(size=(4000, 1)) * 0.3, 10, axis=1)[..., None]
    rest = (np.array(1.0), *ONE_CHAIN)
    target = generator.normal(size=(10, 1))
    assert left_out(target, location, *rest)[2].all()
    assert not left_out(target, location * 1.1, *rest, together=True)[2].any()
    assert left_out(target, location * 0.5, *rest, together=True)[2].all()
    assert not left_out(target, location, np.array(0.0), *rest[1:], together=True)[2].any()


def test_a_chain_that_stands_still_leaves_rows_out_by_its_tangents():
    """A linear network at its posterior mean has no variance, and residuals of rows without themselves."""
    noise, (num_rows, num_inputs) = 0.3, (40, 4)
    generator = np.random.default_rng(3)
    x = generator.normal(size=(num_rows, num_inputs))
    ones = np.c_[x, np.ones(num_rows)]
    y = ones @ generator.normal(size=5) + noise * generator.normal(size=num_rows)

    def mean_of(rows):
        precision = ones[rows].T @ ones[rows] / noise**2 + np.eye(5)
        return np.linalg.solve(precision, ones[rows].T @ y[rows] / noise**2)

    exact = [ones[i] @ mean_of(np.arange(num_rows) != i) for i in range(num_rows)]
    ensemble = linear_ensemble(mean_of(slice(None)), noise)
    rows = NetworkRows(x, y[:, None], None)
    tangents = Tangents.of(ensemble, rows)
    assert tangents.has_all_weights
    mean, stddev, judged = left_out_moments(ensemble, rows)
    assert judged.all()
    np.testing.assert_allclose(mean[:, 0], exact, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(stddev, noise, rtol=1e-6)  # as it predicts new rows
    half = np.arange(num_rows) // 4
    mean, _, judged = left_out_moments(ensemble, rows, half)
    exact = [ones[i] @ mean_of(half != half[i]) for i in range(num_rows)]
    assert judged.sum() > 30
    np.testing.assert_allclose(mean[judged], np.array(exact)[:, None][judged], rtol=1e-4, atol=1e-4)


def linear_ensemble(theta, noise):
    """An Ensemble of one chain of two draws at theta, that is kernel and bias, prior N(0, 1)."""
    ensemble = synthetic_ensemble(
        (len(theta) - 1, 1),
        num_chains=1,
        num_results=2,
        prior=Normal(1.0),
        likelihood=Gaussian(noise),
        x_transform=None,
        dtype="float64",
    )
    return ensemble.with_draws(np.tile(theta, (1, 2, 1)))


@pytest.mark.parametrize("likelihood", [Gaussian("learned"), HeteroscedasticGaussian()])
def test_tangents_are_derivatives_in_all_weights(likelihood):
    """Against finite differences, of two targets of one network with noise of their own."""
    ensemble = synthetic_ensemble(
        (2, 4, 2 * likelihood.num_outputs(1)), likelihood=likelihood, num_chains=1, num_results=1
    )
    generator = np.random.default_rng(1)
    rows = NetworkRows(generator.normal(size=(30, 2)), generator.normal(size=(30, 2)), None)
    (tile,) = target_tiles(ensemble, rows)
    theta, step = ensemble.draws[0, 0], 1e-6

    def means(theta):
        (tile,) = target_tiles(ensemble.with_draws(theta[None, None]), rows)
        return tile.location[0].T

    size = ensemble.spec.layout.num_weights
    moved = np.eye(len(theta))[:size] * step
    slopes = [(means(theta + one) - means(theta - one)) / (2 * step) for one in moved]
    scaled = np.moveaxis(slopes, 0, 1) / np.broadcast_to(tile.fitted, (1, 30, 2))[0].T[:, None]
    precision = np.eye(size) + sum(one @ one.T for one in scaled)
    expected = [one.T @ np.linalg.solve(precision, one) for one in scaled]
    tangents = Tangents.of(ensemble, rows)
    assert tangents.has_all_weights
    np.testing.assert_allclose(tangents.covariance(rows), expected, rtol=1e-6, atol=1e-9)
    diagonal = np.diagonal(expected, axis1=1, axis2=2)
    np.testing.assert_allclose(tangents.leverage(rows), diagonal.T, rtol=1e-6)


def test_tangents_are_finite_next_to_no_noise():
    """Directions that rounding does not resolve are left out."""
    ensemble = linear_ensemble(np.zeros(5), 1e-12)
    x = np.random.default_rng(0).normal(size=(40, 4))
    x[:, 3] = x[:, 2]
    rows = NetworkRows(x, np.zeros((40, 1)), None)
    leverage = Tangents.of(ensemble, rows).leverage(rows)
    np.testing.assert_allclose(leverage.sum(), 4.0, rtol=1e-3)


def test_tangents_are_those_of_the_last_layers_where_weights_are_many():
    rows = NetworkRows(*make_rows(30, 2, 1), None)
    ensemble = synthetic_ensemble((2, 30, 30, 1))
    assert not Tangents.of(ensemble, rows).has_all_weights
    many = NetworkRows(*(np.repeat(values, 400, axis=0) for values in (rows.x, rows.y)), None)
    assert Tangents.of(synthetic_ensemble((2, 20, 1)), many) is None
    assert Tangents.of(linearised_ensemble(), rows) is None


def test_rows_of_a_group_are_one_where_rows_are_counted(tmp_path):
    """A calibration by 60 rows of 12 subjects is none; one of 30 says so, in its file too."""
    x, y = make_rows(60, 2, 1)
    ensemble = synthetic_ensemble()
    model = BayesianMLP.from_ensemble(ensemble)
    with pytest.raises(ValueError, match="at least 20 groups of rows .* received 12"):
        model.calibrate(x, y, groups=np.repeat(np.arange(12), 5))
    turned = pd.Series(range(60))[::-1]
    with pytest.raises(ValueError, match="groups has the index of x_calibration in another order"):
        model.calibrate(pd.DataFrame(x, columns=["a", "b"]), y, groups=turned)
    record = model.calibrate(x, y, groups=np.repeat(np.arange(30), 2))
    assert (record.num_groups, record.by, record.num_rows) == (30, None, 60)
    model.save(tmp_path / "model.h5")
    assert tfbnn.load(tmp_path / "model.h5").calibration.to_json() == record.to_json()


# Rows that calibrate judge by halves, each by the calibration of the other.


def test_rows_of_one_label_stay_in_one_half():
    labels = np.repeat(np.arange(30), [1, 2, 3] * 10)
    found = folds(labels, 2)
    assert set(found) == {0, 1} and len(set(zip(labels, found))) == 30
    np.testing.assert_array_equal(found, folds(labels, 2))
    assert abs(folds(np.arange(101), 2).sum() - 50) <= 1


def test_each_half_is_judged_by_the_calibration_of_the_other():
    """Bars of both halves together would hold where the halves need different ones."""
    ensemble = synthetic_ensemble()
    spread = np.ones((400, 1))
    scores = np.random.default_rng(5).normal(size=(400, 1))

    def checked(scores):
        rows = NetworkRows(np.zeros((400, 2)), scores, None)
        return calibration_of_moments(
            ensemble, rows, np.zeros_like(spread), spread, None, "loo"
        ).checked

    found = checked(scores)
    assert found.ok and found.is_calibrated and found.num_rows == 400
    assert found.source == "rows of the fit, each left out"
    scores[:, 0] += 6.0 * folds(np.arange(400), 2)
    assert checked(scores).ok is False
