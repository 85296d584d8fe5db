"""HMC on densities with kinks: exact, reversible, and wrong in energy by what Dinh et al. derive.

Reference: Dinh, Ho and Nguyen 2024, arXiv:2410.22065, theorems 3.1 and 3.3.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.builders import plain_spec
from tests.support.kernels.cases import MIX, Case, SkewedTarget, build
from tests.support.kernels.checks import gradient, leapfrog, log_density
from tests.support.kernels.invariance import ALARM, WINDOW, smallest_p
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.kernels import HMC, UnderdampedLangevin
from tfbnn.likelihoods import Gaussian

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


def test_energy_error_of_one_step_is_that_of_theorem_3_3():
    """With affine pieces the theorem's remainder is known, too, and the error has no other part."""
    target, epsilon = KinkedTarget(), 0.3
    start = target.draw(np.random.default_rng(1), 500)
    kernel, _ = build(HMC(num_leapfrog_steps=1), target, len(start), epsilon)
    z = tf.constant(start)
    _, results = kernel.one_step(z, kernel.bootstrap_results(z), seed=[3, 4])
    (momentum,) = results.proposed_results.initial_momentum
    before = gradient(target, start)
    half = momentum.numpy() + 0.5 * epsilon * before
    # Along the straight line of the step every x_j meets its kink once, or not.
    inverse = np.linalg.inv(MIX)
    x, velocity = start @ inverse.T, half @ inverse.T
    crosses = (x > 0) != (x + epsilon * velocity > 0)
    jump = np.where(crosses, np.sign(velocity) * (LEFT + RIGHT), 0.0)  # of dU/dx_j
    theorem = np.sum((0.5 * epsilon + x / velocity) * velocity * jump, axis=-1)
    after = before - jump @ inverse
    remainder = epsilon**2 / 8 * (np.sum(after**2, axis=-1) - np.sum(before**2, axis=-1))
    np.testing.assert_allclose(results.log_accept_ratio, -theorem - remainder, atol=1e-12)
    assert np.mean(crosses.any(axis=-1)) > 0.3
    assert np.abs(theorem).max() > 0.3


class TestReluNetwork:
    """Trajectories on the posterior of a ReLU network, over its kinks."""

    STEP, NUM_STEPS, STARTS = 0.02, 8, 30

    @pytest.fixture
    def network(self):
        """(log density [C, 10] -> [C], whether each of 3 units is on for each of 12 rows)."""
        spec = plain_spec([1, 3, 1], activation="relu", likelihood=Gaussian(0.3))
        x = np.linspace(-1.0, 2.0, 12)[:, None]
        potential, data = Potential(spec), make_data(x, np.cos(2.0 * x), None, "float64")
        return lambda theta: potential.log_prob(
            theta, data
        ), lambda theta: x * theta[:, None, :3] + theta[:, None, 3:6] > 0.0

    @pytest.fixture
    def start(self):
        """Theta and momentum side by side: [STARTS, 20]."""
        return np.random.default_rng(5).normal(size=(self.STARTS, 20))

    def trajectory(self, target, start):
        end, momentum = leapfrog(target, start[:, :10], start[:, 10:], self.STEP, self.NUM_STEPS)
        return np.concatenate([end, momentum], axis=1)

    def test_kernel_goes_and_comes_back(self, network, start):
        target, active = network
        settings = HMC(num_leapfrog_steps=self.NUM_STEPS)
        kernel, _ = build(settings, target, self.STARTS, self.STEP)
        z = tf.constant(start[:, :10])
        _, results = kernel.one_step(z, kernel.bootstrap_results(z), seed=[1, 2])
        there, proposed = results.proposed_state.numpy(), results.proposed_results
        (first,), (last,) = proposed.initial_momentum, proposed.final_momentum
        end = self.trajectory(target, np.concatenate([z, first], axis=1))
        np.testing.assert_allclose(end, np.concatenate([there, last], axis=1), atol=1e-9)
        back = self.trajectory(target, end * np.repeat([1.0, -1.0], 10))
        np.testing.assert_allclose(back, np.concatenate([z, -first], axis=1), atol=1e-9)
        lost = log_density(target, there) - log_density(target, z)
        lost += 0.5 * np.sum(first**2 - last**2, axis=-1)
        np.testing.assert_allclose(results.log_accept_ratio, lost, atol=1e-9)
        crossed = np.any(active(z.numpy()) != active(there), axis=(1, 2))
        assert crossed.mean() > 0.8

    def test_volume_is_kept(self, network, start):
        """Determinants of Jacobians by central differences, too short to meet a kink."""
        shift = 1e-7
        steps = shift * np.concatenate([np.eye(20), -np.eye(20)])
        ends = self.trajectory(network[0], (start[:, None] + steps).reshape(-1, 20))
        above, below = np.split(ends.reshape(self.STARTS, 40, 20), 2, axis=1)
        jacobians = (above - below) / (2.0 * shift)
        np.testing.assert_allclose(np.linalg.det(jacobians), 1.0, atol=1e-4)
        # Pieces that are bent: the theorem is about more than shears.
        shear = np.eye(20) + self.STEP * self.NUM_STEPS * np.eye(20, k=-10)
        assert np.abs(jacobians - shear).max() > 0.1
