"""Sweeps over mini-batches: the flight, the sweep, the energy error, the batches and fits."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from scipy import linalg

import tfbnn
from tests.support.builders import plain_spec
from tests.support.kernels.batch_targets import SWEEP, NormalParts
from tests.support.kernels.cases import build, transition
from tests.support.linear import START, closed_form, linear_model, linear_rows, short_fit
from tests.support.marks import statistics_but
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density.batches import batch, shuffled
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.whitened_target import Target
from tfbnn.engine.kernels.batch_sweeps import FreeFlight
from tfbnn.engine.kernels.sms_ubu import calmness, error_growth
from tfbnn.engine.sampling.linear_map import DenseMap, DiagonalMap, as_tensors
from tfbnn.kernels import SMSUBU, PowerPosterior, Repriorised

FRICTION = 1.3
DRIFT = np.array([[0.0, 1.0], [0.0, -FRICTION]])
HEAT = np.diag([0.0, 2.0 * FRICTION])


def flight(time):
    """(matrix, covariance) of position and velocity after a free flight, by matrix exponentials."""
    # Van Loan 1978, IEEE Trans. Automat. Contr. 23, 395.
    both = linalg.expm(time * np.block([[-DRIFT, HEAT], [np.zeros((2, 2)), DRIFT.T]]))
    matrix = both[2:, 2:].T
    return matrix, matrix @ both[:2, 2:]


def oscillator(step):
    """(matrix, covariance) of one UBU step on N(0, 1), and the law [2, 2] that it leaves as it is."""
    half, heat = flight(0.5 * step)
    kick = np.array([[1.0, 0.0], [-step, 1.0]])
    matrix, covariance = half @ kick @ half, half @ kick @ heat @ kick.T @ half.T + heat
    return matrix, covariance, linalg.solve_discrete_lyapunov(matrix, covariance)


def swept(settings, target, z, velocity=None, seed=7):
    """(results before, end, results) of one sweep of float64 positions [C, 3]."""
    kernel, step = build(settings, target, len(z))
    results = kernel.bootstrap_results(tf.constant(z))
    if velocity is not None:
        results = results._replace(
            velocity=tf.constant(velocity), persistence=tf.ones([], tf.float64)
        )
    before, end, after, _ = transition(settings, kernel, step, tf.constant(z), results, [seed, 1])
    return before, end.numpy(), after


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


class TestDynamics:
    @pytest.mark.parametrize("time", [1e-3, 0.1, 2.0])
    def test_free_flight_is_exact(self, time):
        found = FreeFlight.lasting(tf.constant([[time]], tf.float64), FRICTION)
        keep, move, spread, along, across = (float(part[0, 0]) for part in found)
        matrix, covariance = flight(time)
        np.testing.assert_allclose([[1.0, move], [0.0, keep]], matrix, rtol=1e-10, atol=1e-15)
        mixing = np.array([[along, across], [spread, 0.0]])
        np.testing.assert_allclose(mixing @ mixing.T, covariance, rtol=1e-6)

    @pytest.mark.parametrize("step", [0.5, 1.2])
    def test_an_oscillator_has_the_variance_of_the_scheme(self, step):
        """6e5 numbers start in the stationary law, whose variance is off by 6 % and more; 5 sigma."""
        matrix, _, law = oscillator(step)
        assert abs(law[0, 0] - 1.0) > 0.02 * step
        start = np.linalg.cholesky(law) @ normal(2, 600_000)
        z, velocity = start.reshape(2, -1, 3)
        settings = SMSUBU(step_size=step, num_batches=1, friction=FRICTION, control_variates="none")
        _, end, after = swept(settings, NormalParts(), z, velocity)
        end = np.stack([end.ravel(), after.velocity.numpy().ravel()])
        np.testing.assert_allclose(np.cov(end), law, atol=5.0 * (2.0 / 6e5) ** 0.5)
        # Two steps of the scheme, which the stationary law alone does not say.
        moved = np.cov(end, start)[:2, 2:]
        np.testing.assert_allclose(moved, matrix @ matrix @ law, atol=5.0 * (2.0 / 6e5) ** 0.5)

    @pytest.mark.parametrize("step, num_batches", [(0.05, 4), (0.3, 1), (0.3, 16)])
    def test_the_energy_error_tells_the_bias(self, step, num_batches):
        """Of sweeps in the stationary law, where batches agree; up to a factor of 1.5 of the bias."""
        _, _, law = oscillator(step)
        np.testing.assert_allclose(1.0 - law[0, 0], step**2 / 6.0, rtol=0.02)
        z, velocity = (np.linalg.cholesky(law) @ normal(2, 15_000)).reshape(2, -1, 3)
        settings = SMSUBU(
            step_size=step, num_batches=num_batches, friction=FRICTION, control_variates="none"
        )
        _, _, after = swept(settings, NormalParts(), z, velocity)
        growth = float(error_growth(2.0 * num_batches * step, FRICTION))
        found = np.mean(after.log_accept_ratio**2) / 3.0 / growth
        assert 0.95 < found**0.5 / (1.0 - law[0, 0]) < 1.6

    def test_a_sweep_goes_back_the_way_it_came(self):
        """Without friction, of batches that differ: the same seed has the same order."""
        settings = SMSUBU(step_size=0.1, num_batches=5, friction=1e-13, control_variates="none")
        target, z, velocity = NormalParts(1.0, 0.5), normal(20, 3), normal(20, 3, seed=1)
        _, there, after = swept(settings, target, z, velocity)
        assert np.all(np.abs(there - z).max(axis=1) > 0.02)
        _, back, again = swept(settings, target, there, -after.velocity.numpy())
        np.testing.assert_allclose(back, z, atol=1e-4)
        np.testing.assert_allclose(again.log_accept_ratio, after.log_accept_ratio, atol=1e-4)


def test_calmness_falls_from_one_with_the_error():
    aim = tf.constant(2.0, tf.float64)
    found = calmness(tf.constant([0.0, 2.0, -2.0, 32.0, np.inf], tf.float64), aim)
    np.testing.assert_allclose(found, [1.0, 0.5, 0.5, 1.0 / 3.0, 0.0])
    errors = tf.constant(2.0 * normal(100_000))
    target, _ = SMSUBU().accept_target(plain_spec([2, 3, 1]))
    assert 0.53 < float(tf.reduce_mean(calmness(errors, aim))) < target


class TestBatches:
    def test_batches_that_agree_are_one(self):
        """The order of a sweep, and corrections, then change nothing."""
        z = normal(5, 3)
        ends = {}
        for name, orders in {"none": (0, 0), "gradient": (3, 0), "hessian": (3, 3)}.items():
            settings = SMSUBU(step_size=0.2, num_batches=3, control_variates=name)
            before, ends[name], _ = swept(settings, NormalParts(), z)
            assert before.correction.shift.shape == (orders[0], 5, 3)
            assert before.correction.bend.shape == (orders[1], 5, 3, 3)
        np.testing.assert_allclose(ends["gradient"], ends["none"], atol=1e-14)
        np.testing.assert_allclose(ends["hessian"], ends["none"], atol=1e-14)

    @pytest.mark.parametrize(
        "control_variates, target",
        [("gradient", NormalParts(10.0)), ("hessian", NormalParts(10.0, 0.5))],
    )
    def test_control_variates_take_out_what_batches_differ_by(self, control_variates, target):
        """The first derivatives of normal parts their shifts, the second all there is."""
        z = normal(5, 3)
        exact, rough = (
            SMSUBU(step_size=0.1, num_batches=4, control_variates=name)
            for name in (control_variates, "none")
        )
        _, expected, _ = swept(exact, NormalParts(), z)
        _, found, _ = swept(exact, target, z)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        _, found, _ = swept(rough, target, z)
        assert np.abs(found - expected).max() > 0.01

    def test_they_are_compared_around_the_centre(self):
        z, centre = normal(5, 3), normal(5, 3, seed=1)
        target = NormalParts(1.0, 0.5)
        kernel, _ = build(SWEEP, target, len(z))
        correction = kernel.bootstrap_results(tf.constant(z), tf.constant(centre)).correction
        np.testing.assert_array_equal(correction.centre, centre)
        for index in map(tf.constant, range(4)):
            gradient = target.parts(4).gradient(tf.constant(centre), index)
            added = correction.added(gradient, tf.constant(centre), index)
            np.testing.assert_allclose(added, -centre, atol=1e-12)

    def test_where_one_begins_is_no_constant_of_a_program(self):
        """XLA compiles a program anew for each place where a slice begins that keys decide."""
        x = np.ones((37, 2), np.float32)
        rows = shuffled(make_data(x, x[:, :1], None, "float32"))
        program = compiled(lambda index: batch(rows, index, 5).x, jit_compile=False)
        graph = program.get_concrete_function(tf.TensorSpec([], tf.int32)).graph
        types = {operation.type for operation in graph.get_operations()}
        assert "GatherV2" in types and not types & {"Slice", "StridedSlice"}

    @pytest.mark.parametrize("num_rows, num_batches", [(37, 5), (37, 37), (48, 1)])
    def test_every_row_is_in_one_batch(self, num_rows, num_batches):
        x = np.arange(num_rows, dtype=float)[:, None]
        rows = shuffled(make_data(x, x, None, "float64", weights=1.0 + x[:, 0]))
        parts = [batch(rows, tf.constant(i), num_batches).rows() for i in range(num_batches)]
        sizes = {part.length for part in parts}
        assert max(sizes) - min(sizes) <= 1
        found = np.concatenate([part.x.numpy()[0] for part in parts])
        np.testing.assert_array_equal(np.sort(found), x[:, 0])
        assert num_batches == 1 or np.any(np.diff(found) != 1.0)
        for part in parts:
            np.testing.assert_array_equal(part.weights.numpy(), 1.0 + part.x.numpy())

    @pytest.mark.parametrize("is_dense", statistics_but([True], [False, True]))
    def test_their_derivatives_have_those_of_all_rows_as_mean(self, is_dense):
        spec = plain_spec([2, 3, 1], dtype="float64")
        x, theta = normal(37, 2), normal(2, spec.num_parameters)
        data = make_data(x, np.sin(x[:, :1]), None, "float64")
        reference = tf.constant([1.0, -2.0], tf.float64)
        scale = 0.5 + normal(*theta.shape, seed=2) ** 2
        factor = np.stack([np.diag(part) for part in scale])
        linear_map = DiagonalMap(scale)
        if is_dense:
            factor += np.triu(normal(*factor.shape, seed=3), 1)
            linear_map = DenseMap(theta, factor, np.swapaxes(factor, 1, 2))
        target = Target(Potential(spec), data, as_tensors(linear_map), reference, (1.0,))
        z = tf.constant(np.asarray(as_tensors(linear_map).inverse(theta)))
        parts = target.parts(5)
        gradient, hessian = (
            compiled(part, jit_compile=False) for part in (parts.gradient, parts.hessian)
        )
        found = np.mean([gradient(z, tf.constant(index)) for index in range(5)], axis=0)
        value, by_theta = Potential(spec).value_and_gradient(tf.constant(theta), data)
        expected = np.einsum("cij,ci->cj", factor, by_theta)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(target.log_prob(z), value - reference, rtol=1e-12)
        found = np.mean([hessian(z, tf.constant(index)) for index in range(5)], axis=0)
        step = 1e-5 * np.eye(spec.num_parameters)
        slopes = [
            np.mean([gradient(z + sign * row, tf.constant(i)) for i in range(5)], axis=0)
            for row in step
            for sign in (1.0, -1.0)
        ]
        expected = (np.array(slopes[::2]) - np.array(slopes[1::2])) / 2e-5
        np.testing.assert_allclose(found, expected.transpose(1, 2, 0), rtol=1e-5, atol=1e-6)


def test_a_sweep_that_diverges_is_undone():
    z = normal(4, 3)
    settings = replace(SWEEP, step_size=40.0)
    _, end, after = swept(settings, NormalParts(), z)
    np.testing.assert_array_equal(end, z)
    assert np.all(settings.statistics(after).diverging) and np.all(np.isfinite(after.velocity))
    np.testing.assert_allclose(after.target_log_prob, -0.5 * np.sum(z**2, axis=1))


class TestFits:
    @pytest.mark.statistics
    def test_the_report_says_that_draws_are_biased(self):
        run = short_fit(linear_model(), *linear_rows(), kernel=SMSUBU(num_batches=3))
        assert "BIASED" in run.report() and "by 0.1 of themselves" in run.to_dict()["notes"][0]
        assert "stands for variances within 0.1" in " ".join(run.report().split())
        assert run.num_gradients["sampling"].tolist() == [3 * 20] * 2
        assert "step_size^2" in SMSUBU(step_size=0.1).bias_note

    @pytest.mark.statistics
    @pytest.mark.parametrize("control_variates", ["hessian", "gradient"])
    def test_a_line_has_its_moments_up_to_the_tolerance(self, control_variates):
        """2000 draws; errors of chance are 0.04 of variances where they are independent.

        Of a line second derivatives leave no noise of batches, and first ones do.
        """
        x, y = linear_rows(400)
        model = linear_model()
        model.fit_posterior(
            x,
            y,
            kernel=SMSUBU(num_batches=4, bias_tolerance=0.1, control_variates=control_variates),
            pretraining=START,
            num_chains=2,
            num_results=1000,
            num_burnin_steps=500,
            seed=3,
            verbose=0,
        )
        mean, covariance = closed_form(x, y)
        deviation = (model.posterior.draws - mean) / np.sqrt(np.diag(covariance))
        assert np.all(np.abs(deviation.mean(axis=(0, 1))) < 0.12)
        np.testing.assert_allclose((deviation**2).mean(axis=(0, 1)), 1.0, atol=0.1 + 0.1)

    @pytest.mark.parametrize(
        "kernel, match",
        [
            (lambda: SMSUBU(num_batches=31), "a row for each of its num_batches=31, received 30"),
            (lambda: Repriorised(SMSUBU()), "a likelihood that is a sum over rows"),
            (lambda: PowerPosterior(SMSUBU()), "its bias would enter every rung"),
            (lambda: SMSUBU(friction=2.0), "friction must be .*< 2"),
            (lambda: SMSUBU(control_variates="some"), "control_variates must be one of"),
            (lambda: SMSUBU(num_batches=0), "num_batches must be at least 1"),
            (lambda: SMSUBU(bias_tolerance=1.0), "bias_tolerance must be .*< 1"),
            (lambda: SMSUBU(bias_tolerance=0.1, step_size=0.1), "chooses the step size"),
        ],
    )
    def test_what_it_can_not_do_is_refused(self, kernel, match):
        with pytest.raises(ValueError, match=match):
            short_fit(linear_model(), *linear_rows(), kernel=kernel())

    def test_a_log_density_has_no_rows(self):
        with pytest.raises(ValueError, match="SMSUBU is about networks, received a log density"):
            tfbnn.sample(lambda z: -0.5 * tf.reduce_sum(z**2, -1), np.zeros((2, 3)), "sms_ubu")
