"""NUTS: its trees against recursion, its laws on densities that are hard for trees, its costs."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tests.support.kernels.cases import SkewedTarget, advance
from tests.support.kernels.invariance import ALARM
from tests.support.kernels.tree_checks import (
    check_randomness,
    check_tree,
    one_transition,
    transitions,
)
from tests.support.marks import statistics_but
from tfbnn.kernels import NUTS


def test_every_tree_is_that_of_the_recursion():
    check_tree()


def test_what_decides_has_its_law():
    assert check_randomness() > ALARM


def normal(z):
    """N(0, I)."""
    return -0.5 * tf.reduce_sum(z**2, axis=-1)


class Correlated:
    """Normal in six dimensions, correlations of 0.9."""

    chol = np.linalg.cholesky(0.1 * np.eye(6) + 0.9)

    def __call__(self, z):
        return normal(tf.linalg.matmul(z, np.linalg.inv(self.chol).T))

    def draw(self, noise):
        return noise @ self.chol.T

    def normals(self, z):
        return z @ np.linalg.inv(self.chol).T


class Banana(Correlated):
    """b ~ N(a^2, 0.3^2) with a ~ N(0, 1)."""

    def __call__(self, z):
        return normal(tf.stack([z[:, 0], (z[:, 1] - z[:, 0] ** 2) / 0.3], axis=1))

    def draw(self, noise):
        return np.stack([noise[:, 0], noise[:, 0] ** 2 + 0.3 * noise[:, 1]], axis=1)

    def normals(self, z):
        return np.stack([z[:, 0], (z[:, 1] - z[:, 0] ** 2) / 0.3], axis=1)


class Funnel(Correlated):
    """b ~ N(0, exp(a)) with a ~ N(0, 1): steps that are good in the neck are short elsewhere."""

    def __call__(self, z):
        scaled = tf.stack([z[:, 0], z[:, 1] * tf.exp(-0.5 * z[:, 0])], axis=1)
        return normal(scaled) - 0.5 * z[:, 0]

    def draw(self, noise):
        return np.stack([noise[:, 0], noise[:, 1] * np.exp(0.5 * noise[:, 0])], axis=1)

    def normals(self, z):
        return np.stack([z[:, 0], z[:, 1] * np.exp(-0.5 * z[:, 0])], axis=1)


@pytest.mark.parametrize(
    ("target", "size", "step"),
    statistics_but([(Banana, 2, 0.2)], [(Banana, 2, 0.2), (Correlated, 6, 0.3), (Funnel, 2, 0.6)]),
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_exact_draws_stay_exact(target, size, step):
    """Trees of all depths up to 63 leaves; false alarms at most once in 1e5 seeds."""
    target = target()
    start = target.draw(np.random.default_rng(1).normal(size=(4000, size)))
    settings = NUTS(step_size=step, max_tree_depth=6)
    acceptance, end = advance(settings, target, start, num_transitions=5)
    assert 0.6 < acceptance < 0.97 and np.mean(np.all(start == end, axis=-1)) < 0.05
    normals = target.normals(end)
    p = [stats.kstest(column, "norm").pvalue for column in normals.T]
    p.append(stats.kstest(np.sum(normals**2, axis=-1), stats.chi2(size).cdf).pvalue)
    # Neighbours in angle and radius, for what no margin shows.
    p.append(stats.kstest((normals[:, 0] + normals[:, 1]) / 2**0.5, "norm").pvalue)
    assert len(p) * min(p) > ALARM


def test_chains_do_not_feel_their_neighbours():
    target = SkewedTarget()
    start = target.draw(np.random.default_rng(3), 8)
    others = np.concatenate([start[:4], start[4:] + 0.3])
    step = np.full((8, 1), 0.2)
    (end, results), (other, their) = transitions(target, [start, others], step)
    np.testing.assert_array_equal(end[:4], other[:4])
    np.testing.assert_array_equal(results.n_steps[:4], their.n_steps[:4])
    assert np.all(end[4:] != other[4:])


def test_eight_steps_of_half_a_period_are_no_trap():
    """A whole period sums up to nothing, and ends as it began: such trees went on for 500 steps."""
    start = np.random.default_rng(5).normal(size=(40, 100))
    _, results = one_transition(normal, start, np.full((40, 1), 0.4), depth=10)
    assert np.mean(results.n_steps) < 20


class Walled(SkewedTarget):
    """Right up to a wall; behind it chains have densities or gradients that are not finite."""

    bad = np.array([np.nan, np.inf, -np.inf])

    def __call__(self, z):
        outside, number = z[:, 0] > 0.5, np.arange(z.shape[0])
        bad = tf.constant(self.bad[number % 3], z.dtype)

        @tf.custom_gradient
        def wall(log_prob):
            value = tf.where(outside & (number % 6 < 3), bad, log_prob)
            return value, lambda upstream: tf.where(outside & (number % 6 >= 3), bad, upstream)

        return wall(super().__call__(z))


def test_what_is_not_finite_ends_a_tree_and_is_no_draw():
    target = Walled()
    start = target.draw(np.random.default_rng(7), 300)
    start = start[start[:, 0] < 0.4][:120]
    end, results = one_transition(target, start, np.full((120, 1), 0.4), depth=4)
    assert end[:, 0].numpy().max() <= 0.5
    for part in (end, *results):
        assert np.isfinite(part).all()
    diverging = results.diverging.numpy()
    assert all(diverging[kind::6].any() for kind in range(6)) and not diverging.all()
