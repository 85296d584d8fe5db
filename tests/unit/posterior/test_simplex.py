"""Stacking weights against closed forms and the conditions of optimality."""

import numpy as np
import pytest

from tfbnn.posterior.averages import log_mean_exp
from tfbnn.posterior.stacking import optimality_gap, stacking_weights


@pytest.mark.parametrize("scale", [0.0, 1.0, -5000.0])
def test_chains_that_explain_rows_of_their_own_get_the_shares_of_these_rows(scale):
    owner = np.repeat([0, 1, 2], [7, 2, 1])
    densities = np.where(owner == np.arange(3)[:, None], scale, -np.inf)
    np.testing.assert_allclose(stacking_weights(densities), [0.7, 0.2, 0.1], atol=1e-6)


@pytest.mark.parametrize("first", [12, 20, 29, 30])
def test_two_overlapping_chains_have_the_weights_of_the_closed_form(first):
    """Densities (1, q) in `first` of 40 rows and (q, 1) in the others."""
    q = 1 / 3
    densities = np.log(np.where(np.arange(40) < first, [[1.0], [q]], [[q], [1.0]]))
    expected = np.clip((first - (40 - first) * q) / ((1 - q) * 40), 0, 1)
    np.testing.assert_allclose(stacking_weights(densities)[0], expected, atol=1e-4)


@pytest.mark.parametrize("spread", [1e-3, 1.0, 30.0, 4000.0])
def test_the_optimality_conditions_hold(spread):
    for seed in range(12):
        generator = np.random.default_rng(seed)
        num_chains, num_rows = generator.integers(1, 12), generator.integers(1, 300)
        densities = spread * generator.normal(size=(num_chains, num_rows)) - 1e5
        if seed % 3 == 0:
            densities += spread * np.sqrt(num_rows) * generator.normal(size=(num_chains, 1))
        if seed % 4 == 1:
            densities[1:][generator.uniform(size=densities[1:].shape) < 0.5] = -np.inf
        weights = stacking_weights(densities)
        assert np.all(weights >= 0) and weights.sum() == pytest.approx(1.0, abs=1e-12)
        gap = optimality_gap(weights, np.exp(densities - densities.max(axis=0)))
        assert gap <= 1e-8, seed


def test_the_gap_is_that_of_the_log_score():
    densities = np.log([[0.9, 0.2, 0.5], [0.3, 0.7, 0.1]])
    best = np.mean(log_mean_exp(densities, stacking_weights(densities)))
    for share in np.linspace(0.0, 1.0, 21):
        weights = np.array([share, 1.0 - share])
        score = np.mean(log_mean_exp(densities, weights))
        assert score <= best + 1e-8 <= score + optimality_gap(weights, np.exp(densities)) + 2e-8


def test_densities_that_differ_by_thousands_do_not_underflow():
    densities = np.array([[-5.0, -9000.0, -2.0], [-7000.0, -4.0, -3000.0], [-1e5] * 3])
    with np.errstate(all="raise", under="ignore"):
        weights = stacking_weights(densities)
    np.testing.assert_allclose(weights, [2 / 3, 1 / 3, 0.0], atol=1e-6)
    assert weights[2] == 0.0


def test_chains_that_are_alike_share_evenly():
    densities = np.random.default_rng(0).normal(size=(2, 50))
    single = stacking_weights(densities)
    twins = stacking_weights(densities[[0, 0, 0, 1]])
    np.testing.assert_allclose(twins, single[[0, 0, 0, 1]] / [3, 3, 3, 1], atol=1e-6)
    np.testing.assert_array_equal(stacking_weights(densities[:1]), [1.0])


@pytest.mark.parametrize(
    ("densities", "words"),
    [
        ([[0.0, 0.0], [0.0, np.nan]], "nan from chain 1 in row 1"),
        ([[np.inf], [0.0]], "inf from chain 0 in row 0"),
        ([[0.0, -np.inf], [0.0, -np.inf]], "Every chain gives row 1 the density zero"),
    ],
    ids=["NaN", "infinite", "impossible row"],
)
def test_bad_densities_are_refused(densities, words):
    with pytest.raises(ValueError, match=words):
        stacking_weights(densities)
