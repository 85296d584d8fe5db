"""Diagnostics of draws as vectors: closed forms, invariances, what is undefined."""

import warnings

import numpy as np
import pytest
from scipy import linalg

from tfbnn.diagnostics.multivariate import multivariate_psrf, projected_ess, random_directions
from tfbnn.diagnostics.statistics import bulk_ess


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def by_definition(draws):
    """V_hat against W, both written out: the largest generalised eigenvalue, and its root."""
    num_chains, num_draws, _ = draws.shape
    within = np.mean([np.cov(chain, rowvar=False) for chain in draws], axis=0)
    between = np.cov(draws.mean(axis=1), rowvar=False)
    total = (num_draws - 1) / num_draws * within + (num_chains + 1) / num_chains * between
    return np.sqrt(linalg.eigh(total, within, eigvals_only=True)[-1])


class TestMultivariatePsrf:
    @pytest.mark.parametrize("shape", [(2, 20, 3), (4, 50, 12), (10, 4, 2)])
    def test_is_the_root_of_the_largest_eigenvalue(self, shape):
        draws = normal(*shape) @ normal(shape[2], shape[2], seed=1) + normal(shape[0], 1, shape[2])
        assert multivariate_psrf(draws) == pytest.approx(by_definition(draws), rel=1e-10)

    def test_two_chains_in_closed_form(self):
        """lambda = d W^-1 d / 2 for two means that differ by d, here with W = (4/3) diag(1, 4)."""
        pattern = np.array([[1.0, 2.0], [1.0, -2.0], [-1.0, 2.0], [-1.0, -2.0]])
        step = np.array([3.0, 2.0])
        expected = 3 / 4 + 3 / 2 * 0.5 * (3 / 4) * (9.0 / 1 + 4.0 / 4)
        found = multivariate_psrf(np.stack([pattern, pattern + step]))
        assert found == pytest.approx(np.sqrt(expected), rel=1e-13)

    def test_one_quantity_has_the_univariate_factor(self):
        draws = normal(3, 30) + np.arange(3)[:, None]
        ratio = np.var(draws.mean(axis=1), ddof=1) / np.mean(np.var(draws, axis=1, ddof=1))
        expected = np.sqrt(29 / 30 + 4 / 3 * ratio)
        assert multivariate_psrf(draws) == pytest.approx(expected, rel=1e-12)

    def test_linear_maps_do_not_matter(self):
        draws = normal(4, 60, 5) + 0.3 * normal(4, 1, 5, seed=2)
        expected = multivariate_psrf(draws)
        for seed in range(5):
            matrix = normal(5, 5, seed=seed) * np.array([1e-6, 1e-3, 1.0, 1e3, 1e6])
            moved = draws @ matrix + 10.0 * normal(5, seed=seed) * np.abs(matrix).max(axis=0)
            assert multivariate_psrf(moved) == pytest.approx(expected, rel=1e-7)

    def test_sees_a_difference_along_a_diagonal_that_no_quantity_shows(self):
        draws = normal(2, 400, 2)
        draws[..., 1] = draws[..., 0] + 0.01 * draws[..., 1]
        draws[1, :, 1] += 0.05
        one_by_one = [multivariate_psrf(draws[..., k]) for k in range(2)]
        assert max(one_by_one) < 1.01
        assert multivariate_psrf(draws) > 3.0

    def test_chains_that_agree_are_near_one(self):
        assert multivariate_psrf(normal(4, 2000, 10)) == pytest.approx(1.0, abs=0.01)

    def test_trailing_shapes_types_and_magnitudes_do_not_matter(self):
        draws = normal(3, 40, 6).astype(np.float32)
        expected = multivariate_psrf(draws)
        assert multivariate_psrf(draws.reshape(3, 40, 2, 3)) == expected
        assert multivariate_psrf(draws.tolist()) == expected
        scaled = draws * 2.0 ** np.array([0, -900, 600, 1020, -1000, 3])
        assert multivariate_psrf(scaled) == pytest.approx(expected, rel=1e-12)

    def test_standing_combination_is_infinite(self):
        draws = normal(3, 20, 4)
        draws[..., 3] = draws[..., 0] - 2.0 * draws[..., 1] + np.arange(3)[:, None]
        assert multivariate_psrf(draws) == np.inf
        assert multivariate_psrf(np.repeat(normal(3, 1, 2), 20, axis=1)) == np.inf

    def test_undefined_is_nan(self):
        draws = normal(3, 20, 4)
        dependent, constant, infinite = draws.copy(), draws.copy(), draws.copy()
        dependent[..., 3] = draws[..., 0] - 2.0 * draws[..., 1] + 5.0
        constant[..., 1] = 0.1
        infinite[1, 2, 3] = -np.inf
        for undefined in (dependent, constant, infinite, draws[:1], draws[:, :3], draws[..., :0]):
            assert np.isnan(multivariate_psrf(undefined))

    def test_more_quantities_than_draws_are_refused(self):
        assert np.isfinite(multivariate_psrf(normal(3, 5, 12)))
        with pytest.raises(
            ValueError, match=r"at most C \* \(S - 1\) = 12 .* received 13: .*fewer"
        ):
            multivariate_psrf(normal(3, 5, 13))
        with pytest.raises(ValueError, match=r"draws must have shape \[C, S, ...\]"):
            multivariate_psrf(np.zeros(10))


class TestProjectedEss:
    def test_is_the_bulk_ess_of_each_projection(self):
        draws = np.cumsum(normal(4, 100, 30), axis=1)
        directions = random_directions(30, 7, seed=3)
        expected = [bulk_ess(np.einsum("csp,p->cs", draws, column)) for column in directions.T]
        found = projected_ess(draws, 7, seed=3)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_allclose(projected_ess(draws.reshape(4, 100, 5, 6), 7, 3), found)
        assert projected_ess(draws).shape == (100,)

    def test_an_equal_mixing_of_all_directions_is_found(self):
        """Autocorrelation 0.8 in 50 quantities: (1 - 0.8) / (1 + 0.8) of the draws count."""
        noise = normal(2, 4000, 50)
        draws = noise.copy()
        for s in range(1, 4000):
            draws[:, s] = 0.8 * draws[:, s - 1] + 0.6 * noise[:, s]
        assert np.mean(projected_ess(draws, 20)) == pytest.approx(8000 / 9, rel=0.1)

    def test_sees_chains_that_disagree_in_one_quantity(self):
        draws = normal(4, 500, 20)
        assert np.min(projected_ess(draws, 50)) > 1000
        draws[0, :, 7] += 100.0
        assert np.median(projected_ess(draws, 50)) < 50

    def test_undefined_is_nan(self):
        draws = np.full((2, 50, 9), 0.1) + np.arange(9)
        assert np.all(np.isnan(projected_ess(draws, 5)))
        draws = normal(2, 50, 9)
        draws[1, 3, 2] = np.inf
        assert np.all(np.isnan(projected_ess(draws, 5)))
        assert np.all(np.isnan(projected_ess(normal(2, 3, 9), 5)))

    def test_directions_are_uniform_unit_vectors_of_the_seed(self):
        directions = random_directions(40, 500, seed=1)
        np.testing.assert_allclose(np.linalg.norm(directions, axis=0), 1.0, rtol=1e-6)
        np.testing.assert_array_equal(directions, random_directions(40, 500, seed=1))
        assert np.all(directions != random_directions(40, 500, seed=2))
        # Mean zero and covariance I / 40, to five standard errors.
        assert np.abs(directions.mean(axis=1)).max() < 5 / np.sqrt(40 * 500)
        covariance = 40 * directions @ directions.T / 500
        assert np.abs(covariance - np.eye(40)).max() < 5 * np.sqrt(2 / 500)

    def test_bad_arguments_are_refused(self):
        draws = normal(2, 10, 3)
        with pytest.raises(ValueError, match="num_projections must be at least 1"):
            projected_ess(draws, 0)
        with pytest.raises(TypeError, match="num_projections must be an integer"):
            projected_ess(draws, 2.5)
        with pytest.raises(ValueError, match="seed must be at least 0"):
            projected_ess(draws, seed=-1)
        with pytest.raises(ValueError, match=r"draws must have shape \[C, S, ...\]"):
            projected_ess(np.zeros(10))
