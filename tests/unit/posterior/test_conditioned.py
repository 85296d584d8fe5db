"""Predictions of infinite width are regression by a Gaussian process, draw by draw."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.infinite import FLOOR, arcsine, ensemble, model
from tfbnn.data.transforms import fit_pipeline
from tfbnn.posterior.calibration.left_out import left_out_moments
from tfbnn.posterior.conditioned import GivenRows, num_averaged
from tfbnn.posterior.gradient import gradient_of_model
from tfbnn.posterior.prediction import Summary, function_of_chains, predict
from tfbnn.posterior.process_predictions import exactly_left_out, sampled_outputs
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.triangular import triangular_inverse, triangular_product

NEW = np.random.default_rng(5).normal(size=(7, 2))


def noisy(x, theta):
    return arcsine(x, x, theta) + (np.exp(2 * theta[0]) + FLOOR**2) * np.eye(len(x))


def regression(theta, x, y, new):
    """(Mean [n], covariance [n, n]) of the function by textbook formulas."""
    across, matrix = arcsine(x, new, theta), noisy(x, theta)
    mean = across.T @ np.linalg.solve(matrix, y)
    return mean, arcsine(new, new, theta) - across.T @ np.linalg.solve(matrix, across)


def by_draw(found, new=NEW):
    thetas = found.draws.reshape(-1, found.draws.shape[-1])
    given = found.given
    return [regression(theta, given.x, given.y[:, 0], new) for theta in thetas], thetas


def test_predictions_average_over_the_draws_in_closed_form():
    found = ensemble()
    parts, thetas = by_draw(found)
    means = np.array([mean for mean, _ in parts])
    variances = np.array([np.diagonal(covariance) for _, covariance in parts])
    of_function = predict(found, NEW, Summary())
    np.testing.assert_allclose(of_function.mean[:, 0], means.mean(axis=0), rtol=1e-9)
    spread = variances.mean(axis=0) + means.var(axis=0)
    np.testing.assert_allclose(of_function.stddev[:, 0], np.sqrt(spread), rtol=1e-7)
    with_noise = predict(found, NEW, Summary(include_noise=True))
    noise = np.mean(np.exp(2 * thetas[:, 0]) + FLOOR**2)
    np.testing.assert_allclose(with_noise.stddev[:, 0], np.sqrt(spread + noise), rtol=1e-7)


def test_quantiles_are_of_the_mixture():
    found = ensemble()
    low, high = predict(found, NEW, Summary(quantiles=[0.1587, 0.8413])).quantiles[..., 0]
    parts, _ = by_draw(found)
    normals = np.random.default_rng(0).standard_normal((len(parts), 40_000, 1))
    drawn = [m + np.sqrt(np.diagonal(c)) * z for (m, c), z in zip(parts, normals)]
    expected = np.quantile(np.concatenate(drawn), [0.1587, 0.8413], axis=0)
    np.testing.assert_allclose([low, high], expected, atol=0.02)


def test_the_mean_of_a_logarithm_has_the_spread_in_it():
    found = ensemble()
    positive = np.exp(found.given.y)
    pipeline = fit_pipeline(("log10",), positive, "y", None)
    found = replace(found, y_pipeline=pipeline)
    parts, _ = by_draw(found)
    per_draw = [
        np.exp(np.log(10) * mean + 0.5 * np.log(10) ** 2 * np.diagonal(covariance))
        for mean, covariance in parts
    ]
    predicted = predict(found, NEW, Summary())
    np.testing.assert_allclose(predicted.mean[:, 0], np.mean(per_draw, axis=0), rtol=1e-9)
    variances = [np.log(10) ** 2 * np.diagonal(covariance) for _, covariance in parts]
    squares = [np.square(mean) * np.exp(one) for mean, one in zip(per_draw, variances)]
    variance = np.mean(squares, axis=0) - np.mean(per_draw, axis=0) ** 2
    np.testing.assert_allclose(predicted.stddev[:, 0], np.sqrt(variance), rtol=1e-6)


@pytest.mark.parametrize("num_together", [1, 5])
def test_rows_left_out_are_predicted_by_the_others(num_together):
    found = ensemble()
    x, y = found.given.x, found.given.y
    groups = None if num_together == 1 else np.arange(len(x)) // num_together
    mean, stddev = exactly_left_out(found, np.arange(len(x)), groups)
    thetas = found.draws.reshape(-1, found.draws.shape[-1])
    for first in (0, 10):
        out = np.arange(first, first + num_together)
        rest = np.setdiff1d(np.arange(len(x)), out)
        parts, densities = [], []
        for theta in thetas:
            at, covariance = regression(theta, x[rest], y[rest, 0], x[out])
            covariance += (np.exp(2 * theta[0]) + FLOOR**2) * np.eye(num_together)
            off = y[out, 0] - at
            parts.append((at, np.diagonal(covariance)))
            density = -0.5 * off @ np.linalg.solve(covariance, off)
            densities.append(density - 0.5 * np.linalg.slogdet(covariance)[1])
        weights = np.exp(-np.array(densities))
        weights /= weights.sum()
        expected = sum(w * at for w, (at, _) in zip(weights, parts))
        spread = sum(w * (v + (at - expected) ** 2) for w, (at, v) in zip(weights, parts))
        np.testing.assert_allclose(mean[out, 0], expected, rtol=1e-6)
        np.testing.assert_allclose(stddev[out, 0], np.sqrt(spread), rtol=1e-6)


def test_other_rows_are_not_left_out():
    found = ensemble()
    with pytest.raises(ValueError, match="rows of its fit"):
        found.given.indices_of(NEW, NEW[:, :1], None)


def test_equal_rows_are_left_out_each_at_its_place():
    """In one group together, and with noise of their own."""
    found = ensemble()
    x, y = found.given.x, found.given.y
    twice = replace(
        found, given=GivenRows(np.append(x, x[:1], axis=0), np.append(y, y[:1], axis=0))
    )
    indices = twice.given.indices_of(twice.given.x, twice.given.y, None)
    np.testing.assert_array_equal(indices, np.arange(len(x) + 1))
    groups = np.append(np.arange(len(x)), 0)
    both = left_out_moments(twice, NetworkRows(twice.given.x, twice.given.y, None), groups)[0]
    rest = replace(found, given=found.given.taken(np.arange(1, len(x))))
    expected = predict(rest, x[:1], Summary()).mean[0]
    np.testing.assert_allclose(both[[0, -1]], [expected] * 2, atol=0.1)
    noise = np.full(twice.given.y.shape, 0.05)
    noise[-1] = 3.0
    noisy = GivenRows(twice.given.x, twice.given.y, noise)
    order = noisy.indices_of(*(part[::-1] for part in (noisy.x, noisy.y, noisy.noise)))
    np.testing.assert_array_equal(order, np.arange(len(x) + 1)[::-1])


def test_functions_are_drawn_together():
    found = ensemble(num_draws=1)
    (mean, covariance), _ = by_draw(found)[0]
    drawn = np.array([sampled_outputs(found, NEW, seed)[0, 0] for seed in range(150)])
    error = np.sqrt(np.diagonal(covariance) / len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * error)
    scale = np.sqrt(np.outer(np.diagonal(covariance), np.diagonal(covariance)))
    assert np.all(np.abs(np.cov(drawn.T) - covariance) < 5 * scale * np.sqrt(2 / len(drawn)))


def test_gradients_are_those_of_predictions_and_of_functions():
    found = ensemble(num_draws=1)
    gradient, step = gradient_of_model(found, NEW), 1e-5
    parts, _ = by_draw(found, np.concatenate([NEW, NEW + [0, 1e-3], NEW - [0, 1e-3]]))
    for column, side in enumerate(step * np.eye(2)):
        above, below = (predict(found, one, Summary()).mean for one in (NEW + side, NEW - side))
        expected = (above - below) / (2 * step)
        np.testing.assert_allclose(gradient.mean[..., column], expected, rtol=1e-5, atol=1e-7)
    difference = np.concatenate([0 * np.eye(7), np.eye(7), -np.eye(7)]) / 2e-3
    means = np.array([difference.T @ mean for mean, _ in parts])
    variances = [np.diagonal(difference.T @ covariance @ difference) for _, covariance in parts]
    expected = np.sqrt(np.mean(variances, axis=0) + means.var(axis=0))
    np.testing.assert_allclose(gradient.stddev[:, 0, 1], expected, rtol=1e-3)


def test_averages_are_over_a_few_draws_that_memory_holds():
    found = ensemble(num_draws=200)
    assert found.for_averages.draws.shape[:2] == (2, 32)
    assert num_averaged(4000, 1) == 15
    assert function_of_chains(found).shape == (2, 200, 25, 1)


def test_chains_are_compared_by_means_given_the_rows_that_they_have_seen():
    found = ensemble()
    parts, _ = by_draw(found, found.x_reference)
    expected = np.array([mean for mean, _ in parts])
    np.testing.assert_allclose(function_of_chains(found).reshape(6, -1), expected, rtol=1e-9)


def test_without_rows_functions_are_of_the_prior():
    draws = model().sample_prior(NEW, num_results=3, seed=1)
    assert draws.f.shape == draws.y.shape == (3, 7, 1)
    theta = draws.theta[0]
    others = model().sample_prior(NEW, num_results=3, seed=2)
    assert not np.allclose(draws.f, others.f) and len(theta) == 6


def test_known_noise_of_rows_is_part_of_the_covariance():
    found = ensemble()
    noise = np.full(found.given.y.shape, 0.5)
    known = replace(found, given=GivenRows(found.given.x, found.given.y, noise))
    theta = known.draws[0, 0]
    matrix = noisy(known.given.x, theta) + 0.25 * np.eye(25)
    across = arcsine(known.given.x, NEW, theta)
    expected = across.T @ np.linalg.solve(matrix, known.given.y[:, 0])
    one = replace(known, draws=known.draws[:1, :1], chain_weights=np.ones(1))
    np.testing.assert_allclose(predict(one, NEW, Summary()).mean[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("size", [1, 64, 65, 300])
def test_triangular_matrices_are_inverted_and_multiplied(size):
    generator = np.random.default_rng(size)
    factor = np.tril(generator.normal(size=(size, size))) / size + 2.0 * np.eye(size)
    columns = generator.normal(size=(size, 3))
    inverse = triangular_inverse(factor)
    np.testing.assert_allclose(inverse @ factor, np.eye(size), atol=1e-12)
    assert np.array_equal(inverse, np.tril(inverse))
    np.testing.assert_allclose(triangular_product(factor, columns), factor @ columns, atol=1e-12)
