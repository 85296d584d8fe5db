"""The isokinetic map, the microcanonical kernels on it, and their tuners."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tests.support.kernels.cases import CASES, SkewedTarget, advance, build, tuned
from tests.support.kernels.invariance import NUM_DRAWS
from tests.support.kernels.trajectory_checks import check_microcanonical_frozen
from tests.support.linear import linear_model, linear_rows, short_fit
from tests.support.marks import statistics_but
from tfbnn.engine.kernels.microcanonical import Flight, fly, kick, unit
from tfbnn.kernels import Microcanonical

tf.get_logger().setLevel("ERROR")

CASE = CASES["microcanonical"]
TARGET = SkewedTarget()


class Normal:
    """N(0, spread^2 I) in `size` dimensions."""

    def __init__(self, size=3, spread=1.0):
        self.size, self.spread = size, spread

    def __call__(self, z):
        return -0.5 * tf.reduce_sum((z / self.spread) ** 2, axis=-1)

    def draw(self, generator, count):
        return self.spread * generator.normal(size=(count, self.size))


def flight(z, direction, target=TARGET):
    """A Flight that starts at z [C, P] in a direction [C, P]."""
    with tf.GradientTape() as tape:
        tape.watch(z)
        value = target(z)
    gradient = tape.gradient(value, z)
    return Flight(z, direction, value, gradient, tf.zeros_like(value))


def random_flight(count, dtype="float64", seed=0):
    generator = np.random.default_rng(seed)
    direction = unit(tf.constant(generator.normal(size=(count, 3)), dtype))
    return flight(tf.constant(TARGET.draw(generator, count), dtype), direction)


def steps_of(size, count, dtype="float64"):
    return tf.fill([count, 1], tf.constant(size, dtype))


def energy_error(start, end):
    return (end.kinetic - end.log_prob + start.log_prob).numpy()


class TestMap:
    @pytest.mark.parametrize(
        "dtype, tolerance, rounding", [("float64", 1e-10, 1e-14), ("float32", 1e-4, 1e-6)]
    )
    def test_reversible(self, dtype, tolerance, rounding):
        """A4 and A7, for chains of different numbers of steps; directions keep their length."""
        start, step = random_flight(200, dtype), steps_of(0.1, 200, dtype)
        num_steps = tf.constant(1 + np.arange(200) % 20, tf.int32)
        there = fly(TARGET, start, step, num_steps)
        assert np.abs(there.z - start.z).max() > 1
        np.testing.assert_allclose(np.linalg.norm(there.direction, axis=1), 1.0, atol=rounding)
        back = fly(TARGET, flight(there.z, -there.direction), step, num_steps)
        np.testing.assert_allclose(back.z, start.z, atol=tolerance)
        np.testing.assert_allclose(-back.direction, start.direction, atol=tolerance)
        np.testing.assert_allclose(
            energy_error(flight(there.z, there.direction), back),
            -energy_error(start, there),
            atol=20 * tolerance,
        )

    def test_chains_make_their_own_numbers_of_steps(self):
        start, step = random_flight(3), steps_of(0.3, 3)
        together = fly(TARGET, start, step, tf.constant([1, 4, 2]))
        for chain, count in enumerate([1, 4, 2]):
            alone = fly(TARGET, start, step, tf.fill([3], count))
            for one, other in zip(together, alone):
                np.testing.assert_array_equal(one[chain], other[chain])

    @pytest.mark.parametrize("size", [0.02, 0.7, 3.0])
    def test_kick_follows_the_formula_with_cosh_and_sinh(self, size):
        """Kinetic energy is the log volume that a kick loses on the sphere, times -1."""
        generator = np.random.default_rng(2)
        u = unit(tf.constant(generator.normal(size=(50, 6)))).numpy()
        gradient = 3.0 * generator.normal(size=(50, 6))
        new, kinetic = kick(tf.constant(u), tf.constant(gradient), steps_of(size, 50))
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        e, delta = gradient / length, size * length / 5
        along = np.sum(e * u, axis=1, keepdims=True)
        s = np.cosh(delta) + along * np.sinh(delta)
        expected = (u + e * (np.sinh(delta) + along * (np.cosh(delta) - 1))) / s
        np.testing.assert_allclose(new, expected, atol=1e-12)
        np.testing.assert_allclose(kinetic, 5 * np.log(s[:, 0]), atol=1e-12)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("length", [0.0, 1e-30, 1.0, 1e4, 1e15])
    def test_no_gradient_breaks_a_kick(self, dtype, length):
        e = np.array([[1.0, 0.0, 0.0]])
        directions = np.concatenate([e, -e, [[0.6, 0.8, 0.0]], [[-0.6, 0.8, 0.0]]])
        new, kinetic = kick(
            tf.constant(directions, dtype),
            tf.constant(length * np.repeat(e, 4, axis=0), dtype),
            steps_of(1.0, 4, dtype),
        )
        # Straight against an enormous gradient nothing is left of the formula but the rejection.
        usable = np.arange(4) != 1 if length > 100 else slice(None)
        assert np.isfinite(new).all() and np.isfinite(kinetic.numpy()[usable]).all()
        if length < 1e-20:
            np.testing.assert_allclose(new, directions, atol=1e-7)
            np.testing.assert_allclose(kinetic, 0.0, atol=1e-6)


class TestKernel:
    def test_numbers_of_steps_are_uniform_around_their_mean(self):
        kernel, step = build(CASE.settings, TARGET, 4000)
        results = kernel.bootstrap_results(tf.zeros([4000, 3], tf.float64))
        for most, seen in ((512, np.arange(1, 10)), (6, np.arange(1, 7))):
            settings = Microcanonical(trajectory_length=3.5, max_leapfrog_steps=most)
            prepared = settings.prepare(results, step, [1, 2], tf.constant(False))
            values, counts = np.unique(prepared.num_steps, return_counts=True)
            np.testing.assert_array_equal(values, seen)
            assert stats.chisquare(counts[:5], np.full(5, counts[:5].mean())).pvalue > 1e-6

    def test_directions_are_forgotten_over_the_trajectory_length(self):
        """Refreshed directions keep exp(-step / length) of themselves, as OU momenta do."""
        settings = Microcanonical(adjusted=False, trajectory_length=2.0)
        flat = lambda z: 0.0 * tf.reduce_sum(z, axis=-1)  # noqa: E731
        z = tf.zeros([5000, 100], tf.float64)
        kernel, step = build(settings, flat, 5000, 0.5)
        results = kernel.bootstrap_results(z)._replace(direction=z + 0.1)
        results = settings.prepare(results, step, [1, 2], tf.constant(False))
        _, results = kernel.one_step(z, results, seed=[3, 4])
        kept = tf.reduce_sum(0.1 * results.direction, axis=-1)
        np.testing.assert_allclose(np.mean(kept), np.exp(-0.5 / 2.0), atol=0.003)

    @pytest.mark.parametrize("adjusted", [True, False])
    def test_overflow_never_enters_the_chain(self, adjusted):
        settings = Microcanonical(step_size=1e3, adjusted=adjusted, trajectory_length=1e3)
        start = TARGET.draw(np.random.default_rng(1), 100)
        acceptance, end = advance(settings, TARGET, start)
        np.testing.assert_array_equal(start, end)
        assert acceptance < 1e-3

    def test_one_parameter_is_refused_with_the_reason(self):
        kernel, _ = build(CASE.settings, Normal(1), 2)
        with pytest.raises(ValueError, match="at least two parameters.*P = 1.*directions"):
            kernel.bootstrap_results(tf.zeros([2, 1], tf.float64))


class TestUnadjusted:
    def test_law_on_a_normal_density(self):
        """From draws that are too wide; the bias at this step size is below what KS can see."""
        settings = Microcanonical(step_size=0.3, adjusted=False, trajectory_length=1.7)
        start = 1.3 * np.random.default_rng(1).normal(size=(NUM_DRAWS, 3))
        _, end = advance(settings, Normal(), start, num_transitions=150)
        assert stats.kstest(start.ravel(), "norm").pvalue < 1e-12
        assert stats.kstest(end.ravel(), "norm").pvalue > 1e-6

    def test_statistic_stands_for_an_energy_variance(self):
        """Its mean is the target where the squared error per parameter is energy_variance."""
        settings = Microcanonical(step_size=1.0, adjusted=False)
        target, size = Normal(50), 0.4 * 50**0.5
        for _ in range(4):  # errors grow like step_size^3
            kernel, step = build(settings, target, 4000, size)
            z = tf.constant(target.draw(np.random.default_rng(3), 4000))
            results = kernel.bootstrap_results(z)
            results = settings.prepare(results, step, [1, 2], tf.constant(False))
            _, results = kernel.one_step(z, results, seed=[3, 4])
            variance = np.mean(results.log_accept_ratio**2) / 50
            size *= (settings.energy_variance / variance) ** (1 / 6)
        np.testing.assert_allclose(variance, settings.energy_variance, rtol=0.05)
        reported = np.mean(settings.statistics(results).acceptance_rate)
        assert abs(reported - settings.accept_target(linear_model().spec)[0]) < 0.05


class TestTrajectoryLength:
    @pytest.mark.parametrize("spread", statistics_but([3.0], [0.3, 3.0]))
    def test_learns_the_root_of_the_summed_variances(self, spread):
        target = Normal(20, spread)
        settings = Microcanonical(step_size=0.7 * spread, max_leapfrog_steps=32)
        start = tf.constant(target.draw(np.random.default_rng(6), 8), tf.float32)
        found = tuned(settings, target, start, [True] * 600, settings.length)
        np.testing.assert_allclose(found[0], 20**0.5, rtol=0.02)
        # Unit variances still count as 50 of 650 draws.
        expected = (20 * (600 * spread**2 + 50) / 650) ** 0.5
        np.testing.assert_allclose(found[-1], expected, rtol=0.1)

    def test_frozen_after_adaptation(self):
        check_microcanonical_frozen()

    # In the default run ChEESHMC stands for it, whose lesson ends at the same flag.
    @pytest.mark.statistics
    def test_a_run_freezes_it_with_the_adapting_share_of_warm_up(self, groups):
        kernel = Microcanonical(preconditioner="identity")
        options = dict(kernel=kernel, num_burnin_steps=50, jit_compile=False)
        short_fit(linear_model(), *linear_rows(), **options)
        assert [int(group.state.results.moments.count) for group in groups] == [40, 40]
