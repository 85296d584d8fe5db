"""Checks of kernels that learn how long their trajectories are; seeded bugs are held against them."""

import dataclasses

import numpy as np
import tensorflow as tf
from scipy.optimize import minimize_scalar

from tests.support.kernels.cases import CASES, SkewedTarget, target_of, tuned
from tfbnn.kernels import ChEESHMC

ADAPTING = ChEESHMC(step_size=0.3, adapt_step_size=True)
SPREADS = np.array([3.0, 1.0, 0.5, 0.3])


def log_lengths(results):
    """The two numbers that decide how long trajectories are."""
    return tf.stack([results.length.log_length, results.length.log_average])


def normal(z):
    """N(0, diag(SPREADS^2))."""
    return -0.5 * tf.reduce_sum((z / tf.constant(SPREADS, z.dtype)) ** 2, axis=-1)


def best_length():
    """Return the T that maximises the criterion of `normal`, averaged over t uniform on (0, T).

    Positions and velocities of a normal density turn round each other, so ChEES of a trajectory
    of length t is the sum of s^4 sin^2(t / s) over the spreads s.
    """

    def minus_criterion(length):
        phase = 2.0 * length / SPREADS
        return -np.sum(SPREADS**4 * (0.5 - np.sin(phase) / (2.0 * phase)))

    return minimize_scalar(minus_criterion, bounds=(0.1, 15.0), method="bounded").x


def check_chees_length(num_chains=16, dtype="float32"):
    """The length that is learned on `normal` is close to the best one."""
    settings = ChEESHMC(step_size=0.2, adapt_step_size=True, max_leapfrog_steps=100)
    generator = np.random.default_rng(0)
    start = tf.constant(SPREADS * generator.normal(size=(num_chains, 4)), dtype)
    found = np.exp(tuned(settings, normal, start, [True] * 300, log_lengths)[:, 1])
    assert found[0] < 0.35 * best_length()
    assert 0.75 * best_length() < found[-1] < 1.3 * best_length()


def check_chees_frozen():
    """Lengths learn while warm-up adapts, and keep their bits afterwards."""
    start = tf.constant(target_of(CASES["chees"]).draw(np.random.default_rng(5), 20))
    found = tuned(ADAPTING, target_of(CASES["chees"]), start, [True] * 5 + [False] * 5, log_lengths)
    assert np.all(np.diff(found[:5], axis=0) != 0)
    np.testing.assert_array_equal(found[5:], np.broadcast_to(found[4], (5, 2)))


def check_microcanonical_frozen():
    """The trajectory length learns while warm-up adapts, and keeps its bits afterwards."""
    settings = dataclasses.replace(CASES["microcanonical"].settings, trajectory_length=None)
    start = tf.constant(SkewedTarget().draw(np.random.default_rng(5), 20))
    found = tuned(settings, SkewedTarget(), start, [True] * 5 + [False] * 5, settings.length)
    assert np.all(np.diff(found[:5], axis=0) != 0)
    np.testing.assert_array_equal(found[5:], np.broadcast_to(found[4], (5, 20)))
