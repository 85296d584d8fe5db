"""HMC on densities with kinks is exact, as Dinh, Ho and Nguyen 2024 (arXiv:2410.22065) derive."""

import numpy as np
import tensorflow as tf

from tests.support.kernels.cases import MIX, Case, SkewedTarget
from tests.support.kernels.invariance import ALARM, WINDOW, smallest_p
from tfbnn.kernels import HMC, UnderdampedLangevin

LEFT, RIGHT = np.array([1.0, 3.0, 0.7]), np.array([2.0, 1.0, 0.7])


class KinkedTarget(SkewedTarget):
    """z = MIX x with x_j of density exp(-RIGHT_j x) to the right of a kink and exp(LEFT_j x) to
    the left: log density and derivative as ReLUs give them.
    """

    def __call__(self, z):
        x = self._unmixed(z)
        falls = RIGHT * tf.nn.relu(x) + LEFT * tf.nn.relu(-x)
        return -tf.reduce_sum(falls, axis=-1)

    def draw(self, generator, count):
        size = generator.exponential(size=(count, 3))
        right = generator.uniform(size=(count, 3)) < LEFT / (LEFT + RIGHT)
        return np.where(right, size / RIGHT, -size / LEFT) @ MIX.T

    def uniforms(self, z):
        x = z @ np.linalg.inv(MIX).T
        left = RIGHT / (LEFT + RIGHT) * np.exp(LEFT * np.minimum(x, 0.0))
        right = LEFT / (LEFT + RIGHT) * -np.expm1(-RIGHT * np.maximum(x, 0.0))
        return left + right


def test_invariance():
    """Transitions from exact draws leave exact draws; false alarms at most once in 1e5 seeds."""
    settings = HMC(step_size=0.45, num_leapfrog_steps=3)
    smallest, acceptance = smallest_p(Case(settings, KinkedTarget, joint_step=1.0))
    assert WINDOW[0] < acceptance < WINDOW[1], "outside this window the test has no power"
    assert smallest > ALARM


def test_invariance_has_power():
    """Leapfrog without its correction raises the alarm: p = 1e-75 here, 1e-11 at a step of 0.3."""
    settings = UnderdampedLangevin(step_size=0.45, persistence=0.7, adjusted=False)
    smallest, _ = smallest_p(Case(settings, KinkedTarget, joint_step=1.0))
    assert smallest < ALARM
