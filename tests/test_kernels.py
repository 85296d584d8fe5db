"""Every kernel proven right: deterministic checks (layer A), invariance (layer B), seeded bugs.

A kernel is tested by a line in `kernel_cases.CASES`.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from kernel_cases import BOX, CASES, NUM_DRAWS, acceptance_and_end, build, record, target_of
from scipy import stats

from tfbnn.engine.kernels import underdamped
from tfbnn.engine.kernels.mala import LangevinProposal
from tfbnn.engine.kernels.metropolis import Point, Proposal
from tfbnn.engine.kernels.random_walk import RandomWalkProposal
from tfbnn.engine.kernels.truncated_mala import TruncatedProposal
from tfbnn.engine.kernels.underdamped import UnderdampedKernel
from tfbnn.kernels import HMC, MALA, UnderdampedLangevin

tf.get_logger().setLevel("ERROR")  # every case traces the same function of the helper anew

METROPOLIS = ["random walk", "mala", "truncated mala"]
OWN_ACCEPT_STEP = ["underdamped", "microcanonical"]
# Their ratios have a formula of their own, in test_smmala.
MANIFOLD = ["smmala softabs", "smmala gauss_newton"]


def gradient(target, z):
    """Gradient of a target, computed anew: [..., 3]."""
    return tfp.math.value_and_gradient(target, tf.constant(z))[1].numpy()


def log_density(target, z):
    return target(tf.constant(z)).numpy()


def log_proposal(name, target, there, here):
    """log q(there | here) by SciPy [C]."""
    h = CASES[name].settings.step_size
    if name == "random walk":
        return stats.norm.logpdf(there, here, h).sum(axis=-1)
    mean, spread = here + 0.5 * h * gradient(target, here), np.sqrt(h)
    if name == "mala":
        return stats.norm.logpdf(there, mean, spread).sum(axis=-1)
    low, high = ((limit - mean) / spread for limit in BOX)
    return stats.truncnorm.logpdf(there, low, high, loc=mean, scale=spread).sum(axis=-1)


def inner(results):
    """The results that hold the cache of the current state."""
    return getattr(results, "accepted_results", results)


def hmc_results(results):
    """TFP's results of an HMC step, where they are inside others."""
    return getattr(results, "hmc", results)


def check_cache(name):
    """A9: after every transition the cached density and gradient are those of the state."""
    target = target_of(CASES[name])
    for step in record(name):
        np.testing.assert_allclose(
            CASES[name].settings.target_log_prob(step.after),
            log_density(target, step.end),
            rtol=1e-12,
            atol=1e-12,
        )
        cached = getattr(inner(step.after), "gradient", ())
        if not isinstance(cached, tuple):
            np.testing.assert_allclose(cached, gradient(target, step.end), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
class TestEveryKernel:
    def test_cached_density_is_the_state_s(self, name):
        check_cache(name)

    def test_rejected_states_keep_their_bits(self, name):
        rejected = moved = 0
        for step in record(name):
            stays = ~step.after.is_accepted.numpy()
            np.testing.assert_array_equal(step.end[stays], step.start[stays])
            rejected += stays.sum()
            moved += np.any(step.end != step.start, axis=-1).sum()
        assert moved > 500 and (rejected > 100 or name == "nuts")

    def test_statistics_are_complete(self, name):
        settings = CASES[name].settings
        found = settings.statistics(record(name)[3].after)
        assert np.all((found.acceptance_rate >= 0) & (found.acceptance_rate <= 1))
        steps = np.unique(found.n_steps)
        assert found.n_steps.dtype == tf.int32
        assert steps.max() <= settings.gradients_per_transition or name == "nuts"
        assert (steps.min() == 0) == (name == "random walk")
        assert found.diverging.dtype == tf.bool and np.mean(found.diverging) < 0.1
        assert found.energy.shape == found.acceptance_rate.shape

    def test_invariance(self, name):
        """B: transitions from exact draws leave exact draws; N = 4000, false alarms < 1e-6."""
        smallest, acceptance = smallest_p(CASES[name])
        assert 0.60 < acceptance < 0.85, "outside this window the test has no power"
        assert smallest > 1e-6


def smallest_p(case):
    """(p of the strongest evidence, Bonferroni-corrected, against the exact law; acceptance)."""
    target = target_of(case)
    acceptance, start, end = acceptance_and_end(case)
    assert np.mean(np.all(start == end, axis=-1)) < 0.1, "most chains have to move"
    fresh = target.draw(np.random.default_rng(99), 10 * NUM_DRAWS)
    uniforms = np.clip(target.uniforms(end), 0.0, 1.0)
    p = [stats.kstest(column, "uniform").pvalue for column in uniforms.T]
    p.append(stats.ks_2samp(log_density(target, end), log_density(target, fresh)).pvalue)
    # Products of normal scores see wrong correlations, which no margin shows.
    scores = stats.norm.ppf(np.clip(uniforms, 1e-12, 1 - 1e-12))
    exact = np.random.default_rng(98).normal(size=(10 * NUM_DRAWS, 2)).prod(axis=-1)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        p.append(stats.ks_2samp(scores[:, a] * scores[:, b], exact).pvalue)
    return len(p) * min(p), acceptance


class TestAcceptance:
    """A7 and A8: ratios by independent formulas, their antisymmetry, and flags replayed."""

    @pytest.mark.parametrize("name", METROPOLIS)
    def test_ratio_of_metropolis_kernels(self, name):
        target = target_of(CASES[name])
        for step in record(name)[::8]:
            here, there = step.start, step.after.proposed_state.numpy()
            expected = log_density(target, there) - log_density(target, here)
            expected += log_proposal(name, target, here, there)
            expected -= log_proposal(name, target, there, here)
            np.testing.assert_allclose(step.after.log_accept_ratio, expected, atol=1e-9)

    @pytest.mark.parametrize("name", [*METROPOLIS, *MANIFOLD])
    def test_antisymmetry_of_metropolis_kernels(self, name, monkeypatch):
        case = CASES[name]
        target, steps = target_of(case), record(name)
        start = np.concatenate([step.start for step in steps])
        proposed = np.concatenate([step.after.proposed_state for step in steps])
        ratio = np.concatenate([step.after.log_accept_ratio for step in steps])
        kernel, _ = build(case.settings, target, len(start))
        # The same kernel, made to propose the way back.
        monkeypatch.setattr(case.settings.proposal, "draw", lambda *_: tf.constant(start))
        there = tf.constant(proposed)
        _, back = kernel.one_step(there, kernel.bootstrap_results(there), seed=[0, 0])
        np.testing.assert_allclose(back.log_accept_ratio, -ratio, atol=1e-9)

    def test_underdamped_goes_back_when_the_momentum_is_reversed(self):
        case, steps = CASES["underdamped"], record("underdamped")
        moved = np.concatenate([step.after.is_accepted for step in steps])
        start, end, momentum, ratio = (
            np.concatenate(parts)[moved]
            for parts in zip(
                *((s.start, s.end, s.after.momentum, s.after.log_accept_ratio) for s in steps)
            )
        )
        kernel, _ = build(case.settings, target_of(case), len(end))
        z = tf.constant(end)
        results = kernel.bootstrap_results(z)._replace(
            momentum=tf.constant(-momentum), persistence=tf.ones([], tf.float64)
        )
        back, results = kernel.one_step(z, results, seed=[0, 0])
        returned = results.is_accepted.numpy()
        np.testing.assert_allclose(back[returned], start[returned], atol=1e-12)
        np.testing.assert_allclose(results.log_accept_ratio, -ratio, atol=1e-11)
        assert returned.mean() > 0.6

    @pytest.mark.parametrize("name", ["hmc", "chees"])
    def test_hmc_ratio_is_the_energy_error_and_its_trajectory_is_reversible(self, name):
        target = target_of(CASES[name])
        for step in record(name)[::8]:
            before, after = hmc_results(step.before), hmc_results(step.after)
            num_steps = int(before.accepted_results.num_leapfrog_steps)
            proposed = after.proposed_results
            (first,), (last,) = proposed.initial_momentum, proposed.final_momentum
            # A divergent trajectory overflows, or multiplies rounding errors.
            usable = after.log_accept_ratio.numpy() > -20
            assert usable.mean() > 0.8
            start, there, first, last, size, ratio = (
                np.asarray(array)[usable]
                for array in (
                    step.start,
                    after.proposed_state,
                    first,
                    last,
                    before.accepted_results.step_size,
                    after.log_accept_ratio,
                )
            )
            end, momentum = leapfrog(target, start, first, size, num_steps)
            np.testing.assert_allclose(end, there, atol=1e-9)
            np.testing.assert_allclose(momentum, last, atol=1e-9)
            back, _ = leapfrog(target, there, -last, size, num_steps)
            np.testing.assert_allclose(back, start, atol=1e-9)
            kinetic = 0.5 * (first**2 - last**2).sum(axis=-1)
            expected = log_density(target, there) - log_density(target, start) + kinetic
            np.testing.assert_allclose(ratio, expected, atol=1e-9)

    @pytest.mark.parametrize("name", [*METROPOLIS, *MANIFOLD, "hmc", "chees", *OWN_ACCEPT_STEP])
    def test_flags_follow_from_the_ratio_and_the_uniform_number(self, name):
        for step in record(name):
            uniform = accept_uniform(name, step)
            expected = np.log(uniform) < hmc_results(step.after).log_accept_ratio.numpy()
            np.testing.assert_array_equal(step.after.is_accepted, expected)


def leapfrog(target, z, momentum, step, num_steps):
    """An independent integrator: (end, momentum)."""
    momentum = momentum + 0.5 * step * gradient(target, z)
    for index in range(num_steps):
        z = z + step * momentum
        last = index == num_steps - 1
        momentum = momentum + (0.5 if last else 1.0) * step * gradient(target, z)
    return z, momentum


def accept_uniform(name, step):
    """The uniform numbers [C] that a transition compared with its ratios, drawn again."""
    if name in OWN_ACCEPT_STEP:
        seed = tf.random.split(tf.constant(step.seed), 2)[1]
        return tf.random.stateless_uniform(step.end.shape[:1], seed, dtype=tf.float64).numpy()
    from tensorflow_probability.python.internal import samplers

    seed = samplers.split_seed(hmc_results(step.after).seed)[1]
    return samplers.uniform(step.end.shape[:1], dtype=tf.float64, seed=seed).numpy()


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

            def draw(self, generator, count):
                return 1.25 * generator.normal(size=(count, 3))

        settings = UnderdampedLangevin(step_size=1.2, adjusted=False)
        case = dataclasses.replace(CASES["underdamped"], settings=settings, target=Normal)
        _, _, end = acceptance_and_end(case, num_transitions=30)
        assert stats.kstest(end.ravel() / 1.25, "norm").pvalue > 1e-6
        assert stats.kstest(end.ravel(), "norm").pvalue < 1e-12

    def test_overflow_never_enters_the_chain(self):
        settings = UnderdampedLangevin(step_size=50.0, adjusted=False)
        case = dataclasses.replace(CASES["underdamped"], settings=settings)
        acceptance, start, end = acceptance_and_end(case)
        np.testing.assert_array_equal(start, end)
        assert acceptance < 1e-3


def without(owner, name, value):
    """A patch that replaces a method of the kernels' classes, or a function of their modules."""
    return lambda patch: patch.setattr(owner, name, value)


def altered(cls, change):
    """A patch that changes what `one_step` returns: change(results before, after)."""

    def patch(monkeypatch):
        original = cls.one_step

        def one_step(self, state, results, seed=None):
            new, after = original(self, state, results, seed=seed)
            return new, change(results, after)

        monkeypatch.setattr(cls, "one_step", one_step)

    return patch


def momentum_not_reversed(before, after):
    del before
    sign = tf.where(after.is_accepted, 1.0, -1.0)[:, None]
    return after._replace(momentum=tf.cast(sign, tf.float64) * after.momentum)


def density_of_rejected_proposal(before, after):
    del before
    stale = after.accepted_results._replace(target_log_prob=after.proposed_results.target_log_prob)
    return after._replace(accepted_results=stale)


def no_kinetic_energy(momentums, *_, **__):
    return tf.zeros_like(tf.reduce_sum(momentums[0], axis=-1))


def drift_forgotten(self, here, there, step_size):
    return tf.zeros_like(tf.reduce_sum(here.z, axis=-1))


def accept_all(self, here, there, step_size):
    return tf.fill(here.z.shape[:1], tf.constant(1e9, here.z.dtype))


def lopsided(self, here, step_size, seed):
    noise = tf.random.stateless_normal(here.z.shape, seed, dtype=here.z.dtype)
    return here.z + step_size * (noise + 0.2)


BUGS = {
    "random walk with a drift": ("random walk", without(RandomWalkProposal, "draw", lopsided)),
    "no accept step": ("mala", without(LangevinProposal, "log_ratio", accept_all)),
    "MALA without proposal ratio": (
        "mala",
        without(LangevinProposal, "log_ratio", drift_forgotten),
    ),
    "truncation without its mass": (
        "truncated mala",
        without(TruncatedProposal, "log_ratio", LangevinProposal.log_ratio),
    ),
    "truncation with the mass upside down": (
        "truncated mala",
        lambda patch: patch.setattr(
            TruncatedProposal,
            "_log_mass",
            lambda self, point, step, right=TruncatedProposal._log_mass: -right(self, point, step),
        ),
    ),
    "momentum not reversed by a rejection": (
        "underdamped",
        altered(UnderdampedKernel, momentum_not_reversed),
    ),
    "underdamped without accept step": (
        "underdamped",
        without(underdamped, "accepts", lambda ratio, seed, adjusted: ratio > -1e9),
    ),
    "HMC without kinetic energy": (
        "hmc",
        lambda patch: patch.setattr(
            tfp.python.mcmc.hmc, "_compute_log_acceptance_correction", no_kinetic_energy
        ),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_layer_b_catches(bug, monkeypatch):
    """The power of the invariance test: what it must not let through."""
    name, patch = BUGS[bug]
    patch(monkeypatch)
    assert smallest_p(CASES[name])[0] < 1e-6


CACHE_BUGS = {
    "gradient of the start": altered(
        Proposal, lambda before, after: after._replace(gradient=before.gradient)
    ),
    "density of a rejected proposal": altered(
        tfp.mcmc.MetropolisHastings, density_of_rejected_proposal
    ),
}


@pytest.mark.parametrize("bug", CACHE_BUGS)
def test_layer_a_catches(bug, monkeypatch):
    CACHE_BUGS[bug](monkeypatch)
    record.cache_clear()
    with pytest.raises(AssertionError):
        check_cache("mala")
    record.cache_clear()
