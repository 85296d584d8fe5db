"""The formulas of the log evidence, on draws whose moments are known."""

import numpy as np
from scipy import stats

from tfbnn.run.evidence import Ladder, log_evidence

TEMPERATURES = np.linspace(0.0, 1.0, 5) ** 4


def test_formulas():
    draws = np.random.default_rng(12).normal(-8, 3, size=(2, 50, 5)) * [5, 4, 3, 2, 1]
    t, columns = TEMPERATURES, draws.reshape(100, 5)
    mean, variance = columns.mean(axis=0), columns.var(axis=0)
    integral = stones = 0.0
    for i in range(4):
        step = t[i + 1] - t[i]
        integral += step * (mean[i] + mean[i + 1]) / 2
        integral -= step**2 / 12 * (variance[i + 1] - variance[i])
        stones += np.log(np.mean(np.exp(step * columns[:, i])))
    found = log_evidence(t, draws)
    np.testing.assert_allclose(found.thermodynamic.value, integral, rtol=1e-12)
    np.testing.assert_allclose(found.stepping_stone.value, stones, rtol=1e-12)


def test_the_correction_of_the_trapezoid_rule_and_its_share_of_the_error():
    """Two values per rung give any mean and variance, here those of a conjugate model."""
    prior, noise, seen = 2.0, 0.5, np.array([1.5, -1.0])
    exact = stats.norm.logpdf(seen, 0.0, np.hypot(prior, noise)).sum()
    t = np.linspace(0.0, 1.0, 10) ** 4
    precision = (prior**-2 + t * noise**-2)[:, None]
    mean, spread = t[:, None] * noise**-2 * seen / precision, precision**-0.5
    # |theta - seen|^2 is noncentral chi-square at every rung.
    shift = ((mean - seen) ** 2).sum(axis=1, keepdims=True) / spread**2
    squares = spread**2 * (2 + shift), spread**4 * 2 * (2 + 2 * shift)
    level = -2 * np.log(noise * np.sqrt(2 * np.pi))
    means = level - 0.5 * squares[0].ravel() / noise**2
    spreads = 0.5 * np.sqrt(squares[1].ravel()) / noise**2
    signs = np.random.default_rng(13).permutation(np.repeat([-1.0, 1.0], 500))
    estimate = log_evidence(t, (means + spreads * signs[:, None])[None]).thermodynamic
    plain = np.sum(np.diff(t) * (means[1:] + means[:-1]) / 2)
    assert abs(estimate.value - exact) < 0.2 * abs(plain - exact)
    assert estimate.stderr > abs(estimate.value - plain)


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


def test_notes_name_the_gap():
    draws = np.random.default_rng(16).normal([-1e4, -50, -5], [1e3, 9, 1], size=(2, 200, 3))
    notes = list(Ladder.measure((0.0, 0.1, 1.0), draws).notes())
    assert "t = 0 and 0.1" in notes[0] and "num_temperatures" in notes[0]
    assert "stepping stones" in notes[1]
    assert not list(Ladder.measure((0.0, 1.0), draws[..., 2:] + [0.0, 0.1]).notes())
