"""Layer A: what is true of every single transition, checked without statistics.

`checks_of(name)` lists the checks that apply to a case; each is called with the name of the case and
raises an AssertionError.
"""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from scipy import stats

from tests.support.kernels.cases import BOX, CASES, build, record, target_of

__all__ = [
    "GRADIENT_FREE",
    "METROPOLIS",
    "checks_of",
    "gradient",
    "inner",
    "leapfrog",
    "log_density",
]

METROPOLIS = ["random walk", "pcn", "pcnl", "mala", "truncated mala"]
# Without a gradient, proposals outside the support are no failure of an integrator.
GRADIENT_FREE = ["random walk", "pcn"]
# Their ratio has a formula of its own, in test_smmala.
MANIFOLD = ["smmala softabs", "smmala gauss_newton"]
OWN_ACCEPT_STEP = ["underdamped", "microcanonical"]


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
    if name in ("pcn", "pcnl"):
        return log_crank_nicolson(name, target, there, here, delta=2.0 * np.tanh(h**2 / 4.0))
    mean, spread = here + 0.5 * h * gradient(target, here), np.sqrt(h)
    if name == "mala":
        return stats.norm.logpdf(there, mean, spread).sum(axis=-1)
    low, high = ((limit - mean) / spread for limit in BOX)
    return stats.truncnorm.logpdf(there, low, high, loc=mean, scale=spread).sum(axis=-1)


def log_crank_nicolson(name, target, there, here, delta):
    """The same as Cotter et al. 2013 write it: (2 + delta) there = (2 - delta) here + ..., [C]."""
    mean = (2.0 - delta) * here
    if name == "pcnl":
        mean = mean + 2.0 * delta * (here + gradient(target, here))
    spread = np.sqrt(8.0 * delta)
    return stats.norm.logpdf((2.0 + delta) * there, mean, spread).sum(axis=-1)


def hmc_results(results):
    """TFP's results of an HMC step, where they are inside others."""
    return getattr(results, "hmc", results)


def inner(results):
    """The results that hold the cache of the current state."""
    results = hmc_results(results)
    return getattr(results, "accepted_results", results)


def cached_gradient(results):
    """The gradient that the kernel keeps for its next transition, None where it takes none."""
    results = inner(results)
    if hasattr(results, "grads_target_log_prob"):
        return results.grads_target_log_prob[0]
    return None if isinstance(results.gradient, tuple) else results.gradient


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
        cached = cached_gradient(step.after)
        if cached is not None:
            np.testing.assert_allclose(cached, gradient(target, step.end), rtol=1e-11, atol=1e-11)


def check_rejected_states(name):
    """A8: after a rejection the state is the same to the last bit."""
    rejected = moved = 0
    for step in record(name):
        stays = ~hmc_results(step.after).is_accepted.numpy()
        np.testing.assert_array_equal(step.end[stays], step.start[stays])
        rejected += stays.sum()
        moved += np.any(step.end != step.start, axis=-1).sum()
    assert moved > 500 and (rejected > 100 or name == "nuts")


def check_ratio(name):
    """A7: acceptance ratios by an independent formula."""
    target = target_of(CASES[name])
    for step in record(name)[::8]:
        here, there = step.start, step.after.proposed_state.numpy()
        expected = log_density(target, there) - log_density(target, here)
        expected += log_proposal(name, target, here, there)
        expected -= log_proposal(name, target, there, here)
        np.testing.assert_allclose(step.after.log_accept_ratio, expected, atol=1e-9)


def check_antisymmetry(name):
    """A7: the ratio of the way back is the inverse."""
    case = CASES[name]
    target, steps = target_of(case), record(name)
    start = np.concatenate([step.start for step in steps])
    proposed = np.concatenate([step.after.proposed_state for step in steps])
    ratio = np.concatenate([step.after.log_accept_ratio for step in steps])
    kernel, _ = build(case.settings, target, len(start))
    there = tf.constant(proposed)
    with pytest.MonkeyPatch.context() as patch:
        # The same kernel, made to propose the way back.
        patch.setattr(case.settings.proposal, "draw", lambda *_: tf.constant(start))
        _, back = kernel.one_step(there, kernel.bootstrap_results(there), seed=[0, 0])
    np.testing.assert_allclose(back.log_accept_ratio, -ratio, atol=1e-9)


def check_reversal(name):
    """A4: underdamped dynamics go back when the momentum is reversed."""
    case, steps = CASES[name], record(name)
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


def check_trajectory(name):
    """A4 and A7: the trajectory of HMC is reversible, its ratio is the energy error."""
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


def check_flags(name):
    """A8: accepted is what the ratio and the uniform number say."""
    for step in record(name):
        uniform = accept_uniform(name, step)
        expected = np.log(uniform) < hmc_results(step.after).log_accept_ratio.numpy()
        np.testing.assert_array_equal(hmc_results(step.after).is_accepted, expected)


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


# What applies to whom; a kernel that keeps its promises in another way has checks of its own.
CHECKS = {
    "cached density and gradient": (check_cache, list(CASES)),
    "rejected states": (check_rejected_states, list(CASES)),
    "accept flags": (check_flags, [*METROPOLIS, *MANIFOLD, "hmc", "chees", *OWN_ACCEPT_STEP]),
    "acceptance ratio": (check_ratio, METROPOLIS),
    "ratio of the way back": (check_antisymmetry, [*METROPOLIS, *MANIFOLD]),
    "reversed momentum": (check_reversal, ["underdamped"]),
    "trajectory and energy error": (check_trajectory, ["hmc", "chees"]),
}


def checks_of(name):
    """Dict from what is checked to the check, for a case."""
    return {what: check for what, (check, names) in CHECKS.items() if name in names}
