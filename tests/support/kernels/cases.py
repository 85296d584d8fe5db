"""Targets that can be drawn from exactly, and the kernels that tests run on them."""

from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy import special, stats

from tests.support.kernels.joint_models import BoxedLogisticModel, HierarchicalModel, LogisticModel
from tfbnn import kernels
from tfbnn.engine.basis import seeds

__all__ = [
    "CASES",
    "HIERARCHICAL",
    "Case",
    "Transition",
    "advance",
    "build",
    "record",
    "target_of",
    "tuned",
]

SHAPES = np.array([0.8, 2.0, 6.0])
MIX = np.array([[1.0, 0.0, 0.0], [0.6, 1.0, 0.0], [-0.3, 0.5, 1.0]])
BOX = (-1.0, 1.2)


class SkewedTarget:
    """z = MIX x with x_j the logarithm of a Gamma(SHAPES[j]) variable: skewed and correlated."""

    def __call__(self, z):
        x = self._unmixed(z)
        return tf.reduce_sum(SHAPES * x - tf.exp(x) - special.gammaln(SHAPES), axis=-1)

    def draw(self, generator, count):
        """Exact draws [count, 3]."""
        return np.log(generator.gamma(SHAPES, size=(count, 3))) @ MIX.T

    def uniforms(self, z):
        """Return numbers that are uniform on (0, 1) for exact draws z: [..., 3]."""
        return stats.loggamma.cdf(z @ np.linalg.inv(MIX).T, SHAPES)

    def hessian(self, z):
        """Second derivatives [C, 3, 3], by hand."""
        return -self._curvature(tf.exp(self._unmixed(z)))

    def gauss_newton(self, z):
        """A positive definite matrix [C, 3, 3]: the mean of minus the Hessian and its average."""
        return self._curvature(0.5 * (tf.exp(self._unmixed(z)) + SHAPES))

    def _unmixed(self, z):
        return z @ tf.constant(np.linalg.inv(MIX).T, z.dtype)

    def _curvature(self, weights):
        inverse = np.linalg.inv(MIX)
        return tf.matmul(inverse.T * weights[:, None, :], inverse)

    def box(self):
        """No limits, as `Target.box` says it."""
        infinite = tf.fill([1, 3], tf.constant(np.inf, tf.float64))
        return -infinite, infinite


class BoxedTarget(SkewedTarget):
    """x itself, conditioned to lie in BOX."""

    def __call__(self, z):
        inside = tf.reduce_all((z >= BOX[0]) & (z <= BOX[1]), axis=-1)
        log_prob = tf.reduce_sum(SHAPES * z - tf.exp(z), axis=-1)
        return tf.where(inside, log_prob, tf.constant(-np.inf, z.dtype))

    def draw(self, generator, count):
        low, high = stats.loggamma.cdf(BOX[0], SHAPES), stats.loggamma.cdf(BOX[1], SHAPES)
        return stats.loggamma.ppf(generator.uniform(low, high, size=(count, 3)), SHAPES)

    def uniforms(self, z):
        low, high = stats.loggamma.cdf(BOX[0], SHAPES), stats.loggamma.cdf(BOX[1], SHAPES)
        return (stats.loggamma.cdf(z, SHAPES) - low) / (high - low)

    def box(self):
        return tuple(tf.fill([1, 3], tf.constant(limit, tf.float64)) for limit in BOX)


@dataclass(frozen=True)
class Case:
    """A kernel, with step sizes at which it accepts 60 to 85 % of its proposals.

    Attributes:
        settings: Kernel settings, with the step size for `target`.
        joint_step: Step size for `model`.
        target: A density in three dimensions with exact draws.
        model: A model whose weights and rows are drawn together.
    """

    settings: object
    target: type = SkewedTarget
    model: type = LogisticModel
    joint_step: float = field(kw_only=True)


CASES = {
    "random walk": Case(kernels.RandomWalkMetropolis(step_size=0.28), joint_step=0.7),
    "pcn": Case(kernels.PCN(step_size=0.2), joint_step=0.3),
    "pcnl": Case(kernels.PCNL(step_size=0.5), joint_step=2.0),
    "mala": Case(kernels.MALA(step_size=0.25), joint_step=1.4),
    "hmc": Case(kernels.HMC(step_size=0.45, num_leapfrog_steps=3), joint_step=1.1),
    "nuts": Case(kernels.NUTS(step_size=0.48, max_tree_depth=3), joint_step=1.1),
    "underdamped": Case(
        kernels.UnderdampedLangevin(step_size=0.52, persistence=0.7), joint_step=1.15
    ),
    "microcanonical": Case(
        kernels.Microcanonical(step_size=0.7, trajectory_length=2.0, max_leapfrog_steps=8),
        joint_step=1.7,
    ),
    "chees": Case(
        kernels.ChEESHMC(step_size=0.45, trajectory_length=1.5, max_leapfrog_steps=8),
        joint_step=1.15,
    ),
    "smmala softabs": Case(kernels.SMMALA(step_size=0.8, softabs_alpha=2.0), joint_step=1.3),
    "smmala gauss_newton": Case(
        kernels.SMMALA(step_size=1.2, metric="gauss_newton"), joint_step=1.0
    ),
    "truncated mala": Case(
        kernels.TruncatedMALA(step_size=0.65), BoxedTarget, BoxedLogisticModel, joint_step=1.4
    ),
}
# The model whose density has Jacobians: of the noise scale and of the prior scales.
HIERARCHICAL = Case(CASES["hmc"].settings, model=HierarchicalModel, joint_step=0.15)


class Transition(NamedTuple):
    """The effect of a call of a kernel on a batch of chains: arrays, or results of tensors."""

    start: np.ndarray
    before: object
    end: np.ndarray
    after: object
    seed: np.ndarray


def target_of(case):
    """An instance of the case's target."""
    return case.target()


def build(settings, target, num_chains, step_size=None, dtype="float64"):
    """(kernel, step sizes [num_chains, 1])."""
    step = tf.fill([num_chains, 1], tf.constant(step_size or settings.step_size, dtype))
    return settings.build(target, step), step


def transition(settings, kernel, step, z, results, key, adapting=False):
    """One transition as a block of the engine makes it: (before, z, results, the kernel's seed)."""
    first, seed = tf.unstack(tf.random.split(key, 2))
    before = settings.prepare(results, step, first, tf.convert_to_tensor(adapting))
    return before, *kernel.one_step(z, before, seed=seed), seed


@cache
def record(name, num_chains=50, num_transitions=40):
    """Transitions of a case from exact draws, one after the other."""
    case, target = CASES[name], target_of(CASES[name])
    kernel, step = build(case.settings, target, num_chains)

    @tf.function(autograph=False)
    def one(z, results, key):
        return transition(case.settings, kernel, step, z, results, key)

    z = tf.constant(target.draw(np.random.default_rng(4), num_chains))
    results, found = kernel.bootstrap_results(z), []
    for key in seeds.keys(7, "transition", 0, 0, num_transitions):
        before, new, results, seed = one(z, results, tf.constant(key))
        found.append(Transition(z.numpy(), before, new.numpy(), results, seed.numpy()))
        z = new
    return found


def advance(settings, target, start, *, step_size=None, num_transitions=10, seed=0):
    """(mean acceptance, ends [N, P]) after some transitions of N chains from `start` [N, P]."""
    kernel, step = build(settings, target, len(start), step_size, start.dtype)

    @tf.function(autograph=False)
    def run(z, keys):
        def body(index, z, results, total):
            _, z, results, _ = transition(settings, kernel, step, z, results, keys[index])
            acceptance = settings.statistics(results).acceptance_rate
            return index + 1, z, results, total + tf.reduce_mean(acceptance)

        first = (0, z, kernel.bootstrap_results(z), tf.zeros([], z.dtype))
        _, z, _, total = tf.while_loop(lambda i, *_: i < num_transitions, body, first)
        return total / num_transitions, z

    # The engine's own keys, so that what is wrong with them shows.
    keys = seeds.keys(seed, "transition", 0, 0, num_transitions)
    acceptance, end = run(tf.constant(start), tf.constant(keys))
    return float(acceptance), end.numpy()


def tuned(settings, target, start, adapting, find, seed=0):
    """Return what `find` takes from the results after each transition of a self-tuning kernel.

    Args:
        settings: Kernel settings.
        target: z [C, P] -> [C].
        start: Tensor [C, P].
        adapting: One flag per transition.
        find: Kernel results -> tensor.
        seed: Of the random keys.

    Returns:
        Array [len(adapting), ...].
    """
    kernel, step = build(settings, target, len(start), dtype=start.dtype)

    @tf.function(autograph=False)
    def run(z, keys, flags):
        def body(carry, inputs):
            (z, results, _), (key, flag) = carry, inputs
            _, z, results, _ = transition(settings, kernel, step, z, results, key, flag)
            return z, results, find(results)

        results = kernel.bootstrap_results(z)
        return tf.scan(body, (keys, flags), initializer=(z, results, find(results)))[2]

    keys = seeds.keys(seed, "transition", 0, 0, len(adapting))
    return run(start, tf.constant(keys), tf.constant(adapting)).numpy()
