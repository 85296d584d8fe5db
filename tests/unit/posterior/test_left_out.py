"""Rows of a fit as if they had been left out of it, by their leverage."""

import numpy as np
import pytest

from tfbnn.posterior.calibration.left_out import left_out


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
    exact = np.array(
        [
            (one @ x[i], np.sqrt(x[i] @ spread @ x[i] + noise**2))
            for i, (one, spread) in enumerate(others)
        ]
    )
    return y, theta @ x.T, exact.T


@pytest.mark.parametrize("power", [1.0, 0.2])
def test_rows_left_out_are_predicted_as_if_fitted_without_them(power):
    """Against the exact posterior of all other rows, of a linear model; coarsened too."""
    noise = 0.3
    y, location, (exact_mean, exact_stddev) = exact_linear(noise=noise, power=power)
    draws, one_chain = location[..., None], (np.ones(1), np.zeros(1))
    mean, stddev, judged = left_out(y[:, None], draws, np.array(noise), *one_chain, power)
    assert judged.all()
    np.testing.assert_allclose(stddev[:, 0], exact_stddev, rtol=0.02)
    np.testing.assert_allclose(mean[:, 0], exact_mean, atol=0.02)
    assert np.max(np.abs(location.mean(axis=0) - exact_mean)) > 0.1


def test_rows_left_out_have_the_noise_of_predictions():
    """Their leverage is that of the likelihood, whose noise may be another."""
    y, location, _ = exact_linear(num_draws=400)
    draws, one_chain = location[..., None], (np.ones(1), np.zeros(1))
    mean, stddev, _ = left_out(y[:, None], draws, np.array(0.3), *one_chain)
    wider = left_out(y[:, None], draws, np.array(0.3), *one_chain, 1.0, np.array(0.5))
    np.testing.assert_array_equal(wider[0], mean)
    np.testing.assert_allclose(wider[1] ** 2 - stddev**2, 0.5**2 - 0.3**2, rtol=1e-9)


def test_groups_of_chains_that_rows_are_left_out_of_are_mixed_by_weight():
    y, location, _ = exact_linear(num_draws=400)
    halves = np.concatenate([location[:200], location[200:] + 1.0])[..., None]
    weights, noise = np.array([0.25, 0.75]), np.array(0.3)
    mean, stddev, _ = left_out(y[:, None], halves, noise, weights, np.arange(2))
    one_chain = np.ones(1), np.zeros(1)
    parts = [left_out(y[:, None], part, noise, *one_chain) for part in np.split(halves, 2)]
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
    whole = left_out(y[:, None], location, noise, np.ones(1), np.zeros(1))
    parts = left_out(y[:, None], location, noise, np.array([0.5, 0.5]), np.array([7, 7]))
    for one, other in zip(whole, parts):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_rows_that_decide_their_own_prediction_cannot_be_told():
    location = np.random.default_rng(0).normal(size=(100, 3, 1)) * [[[0.1], [0.5], [2.0]]]
    one_chain = np.ones(1), np.zeros(1)
    _, stddev, judged = left_out(np.zeros((3, 1)), location, np.array(1.0), *one_chain)
    assert judged[:, 0].tolist() == [True, True, False] and np.isfinite(stddev).all()
