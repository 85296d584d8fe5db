"""Every kernel proven right: deterministic checks (layer A) and invariance (layer B).

A kernel is tested by a line in `tests.support.kernels.cases.CASES`; what these tests must not let
through is in `tests.support.bugs`.
"""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from scipy import stats

from tests.support.kernels.cases import CASES, HIERARCHICAL, advance, build, record, target_of
from tests.support.kernels.checks import GRADIENT_FREE, checks_of, gradient
from tests.support.kernels.invariance import ALARM, NUM_DRAWS, WINDOW, joint_p, smallest_p
from tfbnn.engine.kernels import underdamped
from tfbnn.engine.kernels.mala import LangevinProposal
from tfbnn.engine.kernels.metropolis import Point
from tfbnn.engine.kernels.truncated_mala import TruncatedProposal
from tfbnn.kernels import HMC, MALA, UnderdampedLangevin

tf.get_logger().setLevel("ERROR")  # every case traces the same function of the helper anew

CHECKS = [(name, what) for name in CASES for what in checks_of(name)]


@pytest.mark.parametrize("name, what", CHECKS)
def test_layer_a(name, what):
    checks_of(name)[what](name)


@pytest.mark.parametrize("name", CASES)
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
@pytest.mark.parametrize("name", CASES)
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


def point_at(target, z):
    """The Point at z [C, 3]."""
    return Point(z, tf.constant(gradient(target, np.asarray(z))))


class TestIdentities:
    """A10: kernels that must coincide."""

    def test_mala_has_the_step_size_of_tfp(self):
        """Mean z + (h / 2) grad, variance h; the correction is TFP's on the same pair."""
        target, h = target_of(CASES["mala"]), CASES["mala"].settings.step_size
        step = record("mala")[0]
        theirs = tfp.mcmc.UncalibratedLangevin(target, step_size=tf.constant(h, tf.float64))
        z = tf.constant(step.start)
        there, results = theirs.one_step(z, theirs.bootstrap_results(z), seed=[1, 2])
        ours = LangevinProposal(target, tf.fill([len(z), 1], tf.constant(h, tf.float64)))
        here, end = point_at(target, z), point_at(target, there)
        correction = ours.log_ratio(here, end, ours.step_size)
        np.testing.assert_allclose(correction, results.log_acceptance_correction, atol=1e-10)
        noise = np.concatenate(
            [
                (s.after.proposed_state - s.start - 0.5 * h * gradient(target, s.start)) / h**0.5
                for s in record("mala")
            ]
        )
        assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-6

    def test_mala_is_hmc_of_one_step(self, monkeypatch):
        target, epsilon = target_of(CASES["hmc"]), 0.5
        hmc, _ = build(HMC(num_leapfrog_steps=1, trajectory_jitter=0.0), target, 50, epsilon)
        z = tf.constant(record("hmc")[0].start)
        _, expected = hmc.one_step(z, hmc.bootstrap_results(z), seed=[3, 4])
        (momentum,) = expected.proposed_results.initial_momentum
        noise = momentum.numpy()
        monkeypatch.setattr(tf.random, "stateless_normal", lambda *_, **__: tf.constant(noise))
        mala, _ = build(MALA(), target, 50, epsilon**2)
        _, found = mala.one_step(z, mala.bootstrap_results(z), seed=[3, 4])
        np.testing.assert_allclose(found.proposed_state, expected.proposed_state, atol=1e-12)
        np.testing.assert_allclose(found.log_accept_ratio, expected.log_accept_ratio, atol=1e-10)

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

    def test_truncated_mala_in_an_infinite_box_is_mala(self, monkeypatch):
        target, h = target_of(CASES["mala"]), CASES["mala"].settings.step_size
        step = record("mala")[0]
        z, size = tf.constant(step.start), tf.fill([50, 1], tf.constant(h, tf.float64))
        wide, plain = TruncatedProposal(target, size), LangevinProposal(target, size)
        here, there = point_at(target, z), point_at(target, step.after.proposed_state)
        np.testing.assert_allclose(
            wide.log_ratio(here, there, size), plain.log_ratio(here, there, size), atol=1e-12
        )
        noise = np.random.default_rng(6).normal(size=z.shape)
        monkeypatch.setattr(tf.random, "stateless_normal", lambda *_, **__: tf.constant(noise))
        shares = tf.constant(stats.norm.cdf(noise))
        monkeypatch.setattr(tf.random, "stateless_uniform", lambda *_, **__: shares)
        np.testing.assert_allclose(
            wide.draw(here, size, [0, 0]), plain.draw(here, size, [0, 0]), atol=1e-9
        )


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

    def test_overflow_never_enters_the_chain(self):
        settings = UnderdampedLangevin(step_size=50.0, adjusted=False)
        target = target_of(CASES["underdamped"])
        start = target.draw(np.random.default_rng(1), 100)
        acceptance, end = advance(settings, target, start)
        np.testing.assert_array_equal(start, end)
        assert acceptance < 1e-3
