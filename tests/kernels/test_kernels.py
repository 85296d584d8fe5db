"""Every kernel proven right: deterministic checks (layer A) and invariance (layer B).

A kernel is tested by a line in `tests.support.kernels.cases.CASES`; what these tests must not let
through is in `tests.support.bugs`.
"""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tests.support.kernels.cases import CASES, HIERARCHICAL, advance, build, record, target_of
from tests.support.kernels.checks import GRADIENT_FREE, checks_of
from tests.support.kernels.invariance import ALARM, NUM_DRAWS, WINDOW, joint_p, smallest_p
from tests.support.marks import statistics_but
from tfbnn.engine.kernels import underdamped
from tfbnn.kernels import MALA, UnderdampedLangevin

tf.get_logger().setLevel("ERROR")  # every case traces the same function of the helper anew

# Of the others every transition is slow to trace.
QUICK = [name for name in CASES if name not in ("truncated mala", "smmala softabs")]
QUICK_CHECKS, CHECKS = (
    [(name, w) for name in some for w in checks_of(name)] for some in (QUICK, CASES)
)


@pytest.mark.parametrize("name, what", statistics_but(QUICK_CHECKS, CHECKS))
def test_layer_a(name, what):
    checks_of(name)[what](name)


@pytest.mark.parametrize("name", statistics_but(QUICK, CASES))
def test_statistics_are_complete(name):
    settings = CASES[name].settings
    found = settings.statistics(record(name)[3].after)
    assert np.all((found.acceptance_rate >= 0) & (found.acceptance_rate <= 1))
    steps = np.unique(found.n_steps)
    assert found.n_steps.dtype == tf.int32
    assert steps.max() <= settings.gradients_per_transition or name == "nuts"
    assert (steps.min() == 0) == (name in GRADIENT_FREE)
    assert found.diverging.dtype == tf.bool and np.mean(found.diverging) < 0.1
    assert found.energy.shape == found.acceptance_rate.shape


@pytest.mark.parametrize(
    "test",
    [
        pytest.param(smallest_p, id="skewed"),
        pytest.param(joint_p, id="joint", marks=pytest.mark.statistics),
    ],
)
@pytest.mark.parametrize("count", [NUM_DRAWS, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", statistics_but(["hmc", "mala"], CASES))
def test_layer_b(name, count, test):
    """Transitions from exact draws leave exact draws; false alarms at most once in 1e5 seeds."""
    smallest, acceptance = test(CASES[name], count)
    assert WINDOW[0] < acceptance < WINDOW[1], "outside this window the test has no power"
    assert smallest > ALARM


@pytest.mark.statistics
def test_learned_scales_of_noise_and_prior_are_kept():
    """B on the model whose density has Jacobians."""
    smallest, acceptance = joint_p(HIERARCHICAL)
    assert WINDOW[0] < acceptance < WINDOW[1]
    assert smallest > ALARM


class TestIdentities:
    """A10: kernels that must coincide."""

    def test_underdamped_without_persistence_is_mala(self, monkeypatch):
        target, epsilon = target_of(CASES["mala"]), 0.5
        z = tf.constant(record("mala")[0].start)
        noise = np.random.default_rng(5).normal(size=z.shape)
        monkeypatch.setattr(tf.random, "stateless_normal", lambda *_, **__: tf.constant(noise))
        mala, _ = build(MALA(), target, 50, epsilon**2)
        _, expected = mala.one_step(z, mala.bootstrap_results(z), seed=[3, 4])
        full, _ = build(UnderdampedLangevin(persistence=0.0), target, 50, epsilon)
        _, results = full.one_step(z, full.bootstrap_results(z), seed=[1, 2])
        ratio = results.log_accept_ratio.numpy()
        np.testing.assert_allclose(ratio, expected.log_accept_ratio, atol=1e-10)
        monkeypatch.setattr(underdamped, "accepts", lambda *_: tf.fill([50], True))
        end, results = full.one_step(z, full.bootstrap_results(z), seed=[1, 2])
        np.testing.assert_allclose(end, expected.proposed_state, atol=1e-12)
        # And what it keeps of the momentum for the next transition is nothing.
        once, _ = full.one_step(end, results, seed=[5, 6])
        again, _ = full.one_step(end, results._replace(momentum=7.0 * results.momentum), [5, 6])
        np.testing.assert_array_equal(once, again)


class TestUnadjusted:
    """The biased version has a known law on a normal density: leapfrog keeps a shadow energy."""

    def test_law_on_a_normal_density(self):
        """Position variance 1 / (1 - epsilon^2 / 4), as momenta keep variance 1."""

        class Normal:
            def __call__(self, z):
                return -0.5 * tf.reduce_sum(z**2, axis=-1)

        settings = UnderdampedLangevin(step_size=1.2, adjusted=False)
        start = 1.25 * np.random.default_rng(1).normal(size=(NUM_DRAWS, 3))
        _, end = advance(settings, Normal(), start, num_transitions=30)
        assert stats.kstest(end.ravel() / 1.25, "norm").pvalue > 1e-6
        assert stats.kstest(end.ravel(), "norm").pvalue < 1e-12
