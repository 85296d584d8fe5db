"""The transition of NUTS by recursion and by sums over all points, for single chains in NumPy."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy import special, stats

from tests.support.kernels.cases import MIX, SHAPES, SkewedTarget
from tfbnn.engine.kernels import nuts
from tfbnn.kernels import NUTS

__all__ = ["CutTarget", "check_randomness", "check_tree", "one_transition", "transitions"]

DEPTH, CHAINS = 6, 96
# From full trees, over those that turn back at every depth, to those that diverge.
STEPS = (0.02, 0.06, 0.12, 0.2, 0.3, 0.45, 0.8, 4.0)


class CutTarget(SkewedTarget):
    """The skewed target, with no density at all, NaN, where the first coordinate is large."""

    def __call__(self, z):
        return tf.where(z[:, 0] > 1.5, tf.constant(np.nan, z.dtype), super().__call__(z))

    def by_hand(self, z):
        """(log density, gradient) at one point [3]."""
        inverse = np.linalg.inv(MIX)
        x = inverse @ z
        with np.errstate(over="ignore"):
            value = np.sum(SHAPES * x - np.exp(x) - special.gammaln(SHAPES))
            return np.nan if z[0] > 1.5 else value, inverse.T @ (SHAPES - np.exp(x))


class Leaf(NamedTuple):
    """A point of a trajectory: vectors [3], and its energy."""

    z: np.ndarray
    momentum: np.ndarray
    gradient: np.ndarray
    energy: float


class Walk(NamedTuple):
    """The result of a transition for one chain."""

    z: np.ndarray
    energy: float
    acceptance: float
    n_steps: int
    diverging: bool


def walk(target, z, momentum, step, directions, levels):
    """One transition of a chain from z [3], all decisions given: a Walk."""
    draw = _leaf(target, z, momentum)
    start_energy, points, weights = draw.energy, [draw], [1.0]
    errors, diverging = [], False
    for right, level in zip(directions, levels):
        signed = step if right else -step
        ahead = points if right else points[::-1]
        leaves, their_weights, ends = [], [], False
        while len(leaves) < len(points) and not ends:
            leaves.append(_leapfrog(target, (leaves or ahead)[-1], signed))
            error = leaves[-1].energy - start_energy
            diverging = not abs(error) < np.inf or error > 1000
            errors.append(np.inf if diverging else error)
            their_weights.append(np.exp(-errors[-1]))
            ends = diverging or any(_turns(span) for span in _completed(leaves))
        if ends:
            break
        if level * sum(weights) < sum(their_weights):
            draw = leaves[_drawn(their_weights, 0, levels)]
        both = ahead + leaves
        points, weights = (both if right else both[::-1]), weights + their_weights
        if _turns(both):
            break
    acceptance = np.exp(-np.maximum(errors, 0.0)).mean()
    return Walk(draw.z, draw.energy, acceptance, len(errors), diverging)


def _leaf(target, z, momentum, half_step=0.0):
    """The point at z, its momentum moved on by half a step there."""
    value, gradient = target.by_hand(z)
    momentum = momentum + half_step * gradient
    return Leaf(z, momentum, gradient, 0.5 * momentum @ momentum - value)


def _leapfrog(target, leaf, step):
    half = leaf.momentum + 0.5 * step * leaf.gradient
    return _leaf(target, leaf.z + step * half, half, 0.5 * step)


def _completed(leaves):
    """The spans of 2, 4, 8 ... leaves that the last leaf completes."""
    size = 2
    while len(leaves) % size == 0:
        yield leaves[-size:]
        size *= 2


def _turns(points):
    momenta = [point.momentum for point in points]
    half = len(momenta) // 2
    spans = (momenta, momenta[: half + 1], momenta[half - 1 :])
    return any(sum(span) @ end < 0 for span in spans for end in (span[0], span[-1]))


def _drawn(weights, first, levels):
    """Index of the leaf that is drawn from these, whose number is first + their place."""
    if len(weights) == 1:
        return first
    half = len(weights) // 2
    second = levels[half.bit_length() - 1] * sum(weights) < sum(weights[half:])
    if second:
        return _drawn(weights[half:], first + half, levels)
    return _drawn(weights[:half], first, levels)


def one_transition(target, start, step, seed=(3, 4), depth=DEPTH):
    """(ends [C, P], NoUTurnResults) of chains from `start` [C, P] with steps [C, 1]."""
    return transitions(target, [start], step, seed, depth)[0]


def transitions(target, starts, step, seed=(3, 4), depth=DEPTH):
    """`one_transition` from each of some starts, by one program."""
    kernel = NUTS(max_tree_depth=depth).build(target, tf.constant(step))
    run = tf.function(
        lambda z, results: kernel.one_step(z, results, seed=tf.constant(seed)), autograph=False
    )
    return [run(z, kernel.bootstrap_results(z)) for z in map(tf.constant, starts)]


def check_tree():
    """Every chain ends where the recursion ends, after as many steps."""
    target = CutTarget()
    start = target.draw(np.random.default_rng(2), 4 * CHAINS)
    start = start[start[:, 0] < 1.4][:CHAINS]
    step = np.resize(STEPS, (CHAINS, 1))
    end, results = one_transition(target, start, step)
    random = nuts.draw_randomness(tf.constant(start), DEPTH, tf.constant((3, 4)))
    momentum, directions, levels = (part.numpy() for part in random)
    given = zip(start, momentum, step[:, 0], directions.T, levels.T)
    found = [walk(target, *decisions) for decisions in given]
    z, energy, acceptance, n_steps, diverging = map(np.array, zip(*found))
    np.testing.assert_array_equal(results.n_steps, n_steps)
    np.testing.assert_array_equal(results.diverging, diverging)
    np.testing.assert_allclose(end, z, atol=1e-9)
    np.testing.assert_allclose(results.energy, energy, atol=1e-9)
    np.testing.assert_allclose(results.acceptance_rate, acceptance, atol=1e-9)
    # All ways to end are there.
    assert set(2 ** np.arange(1, DEPTH + 1) - 1) <= {*n_steps}
    assert diverging.any() and len({*n_steps}) > DEPTH + 2


def check_randomness():
    """Return p of the strongest evidence against the laws of what decides a transition."""
    shape, depth = (500, 100), 10
    drawn = [
        nuts.draw_randomness(tf.zeros(shape, dtype), depth, tf.constant(seed))
        for dtype, seed in (("float32", (1, 2)), ("float32", (1, 3)), ("float64", (2, 2)))
    ]
    momentum, coins, levels = (np.array(list(map(np.float64, part))) for part in zip(*drawn))
    p = [
        stats.kstest(momentum.ravel(), "norm").pvalue,
        stats.binomtest(int(coins.sum()), coins.size).pvalue,
        stats.kstest(levels.ravel(), "uniform").pvalue,
        # Streams of neighbouring keys have nothing to do with each other.
        stats.pearsonr(momentum[0].ravel(), momentum[1].ravel()).pvalue,
    ]
    # Nor have any two numbers of one transition; all have mean 0 and variance 1 here.
    momentum = momentum.transpose(0, 2, 1)
    rows = [momentum, 2.0 * coins - 1.0, 12**0.5 * (levels - 0.5)]
    p.append(_p_of_no_correlation(np.hstack(np.concatenate(rows, axis=1))))
    return min(1.0, len(p) * min(p))


def _p_of_no_correlation(numbers):
    """p of the squared correlations of all pairs of rows [K, n] with mean 0 and variance 1."""
    size, num_draws = numbers.shape
    pairs = np.triu_indices(size, 1)
    correlations = (numbers @ numbers.T / num_draws)[pairs]
    return stats.chi2.sf(num_draws * np.sum(correlations**2), len(correlations))
