"""The formulas of the log evidence, on draws whose moments are known."""

import numpy as np
import pytest
from scipy import optimize, special, stats

from tfbnn.run.evidence import Ladder, log_evidence

TEMPERATURES = np.linspace(0.0, 1.0, 5) ** 4


def conjugate_draws(seed, temperatures, num_draws=250, num_rows=200, num_weights=6):
    """(exact draws of the log likelihood at all rungs [4, num_draws, m], log evidence).

    Of a linear model with weights N(0, 1), known noise and columns that are orthogonal.
    """
    generator, noise = np.random.default_rng(seed), 0.1
    norm = np.sqrt(num_rows) / noise  # of a column, in units of the noise
    along = norm * generator.normal(size=num_weights) + generator.normal(size=num_weights)
    across = generator.chisquare(num_rows - num_weights)
    level = -0.5 * num_rows * np.log(2 * np.pi * noise**2) - 0.5 * across
    exact = level + np.sum(
        stats.norm.logpdf(along, 0.0, np.hypot(1.0, norm)) + 0.5 * np.log(2 * np.pi)
    )
    t = np.array(temperatures)[:, None]
    precision = 1.0 + t * norm**2
    weights = t * norm * along / precision + precision**-0.5 * generator.normal(
        size=(4, num_draws, len(t), num_weights)
    )
    return level - 0.5 * np.sum((along - norm * weights) ** 2, axis=-1), exact


def bennett_excess(log_ratio, up, down):
    return np.sum(special.expit(up - log_ratio) - special.expit(log_ratio - down))


def test_formulas():
    draws = np.random.default_rng(12).normal(-8, 3, size=(2, 50, 5)) * [5, 4, 3, 2, 1]
    t, columns = TEMPERATURES, draws.reshape(100, 5)
    mean, variance = columns.mean(axis=0), columns.var(axis=0)
    integral = stones = 0.0
    for i in range(4):
        step = t[i + 1] - t[i]
        integral += step * (mean[i] + mean[i + 1]) / 2
        integral -= step**2 / 12 * (variance[i + 1] - variance[i])
        pair = step * columns[:, i], step * columns[:, i + 1]
        stones += optimize.brentq(bennett_excess, -100.0, 100.0, args=pair, xtol=1e-13)
    found = log_evidence(t, draws)
    np.testing.assert_allclose(found.thermodynamic.value, integral, rtol=1e-12)
    np.testing.assert_allclose(found.stepping_stone.value, stones, rtol=1e-9)


def test_errors_are_those_of_exact_draws():
    """Twenty z-scores of an informative likelihood."""
    t = np.linspace(0.0, 1.0, 10) ** 4
    z = {"stepping_stone": [], "thermodynamic": []}
    for seed in range(20):
        draws, exact = conjugate_draws(seed, t)
        found = log_evidence(t, draws)
        for name, scores in z.items():
            estimate = getattr(found, name)
            scores.append((estimate.value - exact) / estimate.stderr)
    for name, scores in z.items():
        assert 0.4 < np.sqrt(np.mean(np.square(scores))) < 1.5, name
        assert np.max(np.abs(scores)) < 4, name


def test_the_error_knows_of_stones_that_disagree():
    """Two rungs that share no draw: forward and reverse stones are hundreds of nats apart."""
    draws = np.random.default_rng(3).normal([-2000.0, 10.0], [30.0, 3.0], size=(4, 500, 2))
    found = log_evidence((0.0, 1.0), draws).stepping_stone
    forward, reverse = draws[..., 0].max(), draws[..., 1].min()
    assert forward < found.value < reverse
    assert found.stderr > 0.2 * (reverse - forward)


def test_rungs_in_the_wrong_order_have_a_value_and_no_error():
    """Chains that have not mixed; s is 1 for all draws."""
    draws = np.random.default_rng(4).normal([1e4, -1e4], 1.0, size=(4, 50, 2))
    found = log_evidence((0.0, 1.0), draws).stepping_stone
    assert np.isfinite(found.value) and not found.stderr < 1e3


def test_errors_grow_with_autocorrelation():
    generator = np.random.default_rng(14)
    noise = generator.normal(size=(4, 1000, 3))
    slow = np.zeros_like(noise)
    for s in range(1, 1000):
        slow[:, s] = 0.9 * slow[:, s - 1] + np.sqrt(1 - 0.81) * noise[:, s]
    t = (0.0, 0.5, 1.0)
    for name in ("thermodynamic", "stepping_stone"):
        one, other = (getattr(log_evidence(t, 0.1 * ll), name).stderr for ll in (noise, slow))
        assert 2.5 < other / one < 7  # the square root of 19, but for what t does to the mean


def test_too_few_draws_and_infinite_ones_say_so():
    few = log_evidence((0.0, 1.0), np.full((1, 3, 2), -4.0))
    assert few.stepping_stone.value == -4.0 and np.isnan(few.stepping_stone.stderr)
    assert few.to_dict()["stepping_stone"] == {"value": -4.0, "stderr": None}
    draws = np.random.default_rng(15).normal(-4, 1, size=(1, 100, 2))
    draws[0, 7, 0] = -np.inf
    infinite = log_evidence((0.0, 1.0), draws)
    assert np.isfinite(infinite.stepping_stone.value)
    assert infinite.to_dict()["thermodynamic"]["value"] is None


@pytest.mark.parametrize("num_draws", [100, 1000])
def test_no_integral_where_the_prior_s_mean_is_infinite(num_draws):
    """A learned noise scale with density at zero: -log likelihood falls off as 1 / scale^2."""
    for seed in range(10):
        generator = np.random.default_rng(seed)
        scale = np.abs(generator.normal(size=(2, num_draws, 1)))
        prior = -200 * np.log(scale) - 100 * generator.chisquare(5, size=scale.shape) / scale**2
        draws = np.append(prior, generator.normal(-5, 1, size=scale.shape), axis=-1)
        found = log_evidence((0.0, 1.0), draws)
        assert np.isnan(found.thermodynamic.value) and np.isnan(found.thermodynamic.stderr)
        assert np.isfinite(found.stepping_stone.value)
        assert str(found.thermodynamic) == "undefined"
    assert "no mean under the prior" in list(Ladder.measure((0.0, 1.0), draws).notes())[-1]


def test_few_draws_do_not_tell_that_the_mean_is_missing():
    draws = np.random.default_rng(3).normal(size=(2, 1, 2))
    assert "no mean" not in " ".join(Ladder.measure((0.0, 1.0), draws).notes())


def test_equal_draws_do_not_tell_that_the_mean_is_missing():
    draws = np.random.default_rng(3).normal(-4, 1, size=(2, 100, 2))
    draws[0, :, 0] = draws[1, :70, 0] = -3.0
    assert np.isfinite(log_evidence((0.0, 1.0), draws).thermodynamic.value)


def test_notes_name_the_gap():
    draws = np.random.default_rng(16).normal([-1e4, -50, -5], [1e3, 9, 1], size=(2, 200, 3))
    notes = list(Ladder.measure((0.0, 0.1, 1.0), draws).notes())
    assert "t = 0 and 0.1" in notes[0] and "num_temperatures" in notes[0]
    assert "the evidence may be wrong by more than its error says" in notes[0]
    assert "stepping stones" in notes[1]
    assert not list(Ladder.measure((0.0, 1.0), draws[..., 2:] + [0.0, 0.1]).notes())
