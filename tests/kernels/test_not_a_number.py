"""A density that turns out to be NaN somewhere: rejected, counted, and never part of a draw."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.support.kernels.cases import CASES, build, target_of, transition
from tests.support.kernels.checks import GRADIENT_FREE
from tests.support.marks import statistics_but
from tfbnn.engine.basis import seeds
from tfbnn.kernels import Microcanonical, UnderdampedLangevin

WALL, CHAINS, TRANSITIONS = -0.3, 40, 30
UNADJUSTED = {
    "underdamped unadjusted": UnderdampedLangevin(step_size=0.52, adjusted=False),
    "microcanonical unadjusted": Microcanonical(
        step_size=0.7, trajectory_length=2.0, max_leapfrog_steps=8, adjusted=False
    ),
}


# Of kernels whose acceptance steps differ; that of NUTS has a test beside those of its trees.
KEPT = ["random walk", "hmc", "microcanonical", "smmala softabs", "underdamped unadjusted"]


class Torn:
    """A target whose value and gradient are NaN where the first coordinate is below WALL."""

    def __init__(self, target):
        self.target = target

    def __call__(self, z):
        nan = tf.constant(np.nan, z.dtype)
        return self.target(z) * tf.where(z[:, 0] < WALL, nan, tf.ones([], z.dtype))

    def __getattr__(self, name):
        return getattr(self.target, name)


@pytest.mark.parametrize("name", statistics_but(KEPT, [*CASES, *UNADJUSTED]))
def test_nan_is_rejected_and_counted(name):
    case = CASES.get(name) or dataclasses.replace(CASES["hmc"], settings=UNADJUSTED[name])
    target = target_of(case)
    start = target.draw(np.random.default_rng(1), 400)
    start = tf.constant(start[start[:, 0] > WALL][:CHAINS])
    kernel, step = build(case.settings, Torn(target), CHAINS)

    @tf.function(autograph=False)
    def one(z, results, key):
        _, z, results, _ = transition(case.settings, kernel, step, z, results, key)
        return z, results, case.settings.statistics(results)

    z, results, met = start, kernel.bootstrap_results(start), 0
    for key in seeds.keys(5, "transition", 0, 0, TRANSITIONS):
        z, results, statistics = one(z, results, tf.constant(key))
        assert np.isfinite(z).all() and z[:, 0].numpy().min() >= WALL
        assert np.isfinite(case.settings.target_log_prob(results)).all()
        assert np.isfinite(statistics.acceptance_rate).all()
        met += int(tf.reduce_sum(tf.cast(statistics.diverging, tf.int32)))
    assert met == 0 if name in GRADIENT_FREE else met > TRANSITIONS / 3
    assert np.ptp(z - start, axis=0).min() > 0.1
