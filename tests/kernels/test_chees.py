"""The ChEES criterion and its tuner, what chains share, refusals."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.support.kernels.cases import CASES, build, record, target_of, transition
from tests.support.kernels.trajectory_checks import (
    ADAPTING,
    check_chees_frozen,
    check_chees_length,
    log_lengths,
)
from tests.support.linear import linear_model, linear_rows, short_fit
from tests.support.marks import statistics_but
from tfbnn.engine.basis.compile import num_traces
from tfbnn.engine.kernels import chees
from tfbnn.engine.kernels.chees import TrajectoryLength
from tfbnn.kernels import ChEESHMC

tf.get_logger().setLevel("ERROR")

CASE = CASES["chees"]


class TestTuner:
    def test_gradient_follows_the_formula_of_the_paper(self):
        for step in record("chees")[:3]:
            hmc = step.after.hmc
            acceptance = np.nan_to_num(np.minimum(1.0, np.exp(hmc.log_accept_ratio)))
            usable = acceptance > 1e-4
            end, (velocity,) = hmc.proposed_state.numpy(), hmc.proposed_results.final_momentum
            here = step.start - step.start.mean(axis=0)
            there = end - np.average(end, axis=0, weights=acceptance)
            growth = (there**2).sum(axis=1) - (here**2).sum(axis=1)
            gradient = growth * np.sum(there * velocity, axis=1)
            np.testing.assert_allclose(
                chees._criterion_gradient(tf.constant(step.start), hmc),
                np.average(gradient, weights=acceptance * usable),
                rtol=1e-9,
            )

    def test_trajectories_that_fail_teach_nothing(self):
        """NaN at the end of one chain's trajectory leaves the lesson of the others."""
        step = record("chees")[0]
        broken = np.arange(50) == 7

        def spoil(array, value):
            shape = (-1,) + (1,) * (len(array.shape) - 1)
            return tf.where(broken.reshape(shape), tf.constant(value, tf.float64), array)

        def gradient(value):
            hmc = step.after.hmc
            (momentum,) = hmc.proposed_results.final_momentum
            proposed = hmc.proposed_results._replace(final_momentum=[spoil(momentum, value)])
            return chees._criterion_gradient(
                tf.constant(step.start),
                hmc._replace(
                    proposed_state=spoil(hmc.proposed_state, value),
                    proposed_results=proposed,
                    log_accept_ratio=spoil(hmc.log_accept_ratio, -np.inf),
                ),
            ).numpy()

        assert np.isfinite(gradient(np.nan)) and gradient(np.nan) == gradient(0.0) != 0

    def test_update_is_adam_without_momentum(self):
        generator = np.random.default_rng(1)
        gradients = generator.normal(2.0, 3.0, size=30)
        zero = tf.constant(0.0, tf.float64)
        length = TrajectoryLength(zero, zero, zero, zero)
        log_length = square = average = 0.0
        for count, gradient in enumerate(gradients, start=1):
            length = length.update(tf.constant(gradient), tf.constant(0.3, tf.float64))
            square = 0.95 * square + 0.05 * gradient**2
            log_length += 0.05 * gradient / np.sqrt(square / (1 - 0.95**count))
            log_length = min(log_length, 0.3)
            average += (log_length - average) / count**0.5
            np.testing.assert_allclose(length.log_length, log_length, rtol=1e-9)
            np.testing.assert_allclose(length.log_average, average, rtol=1e-9)

    @pytest.mark.parametrize(
        "num_chains, dtype", statistics_but([(16, "float32")], [(4, "float64"), (16, "float32")])
    )
    def test_finds_the_best_length_of_an_anisotropic_normal_density(self, num_chains, dtype):
        check_chees_length(num_chains, dtype)

    def test_frozen_after_adaptation(self):
        check_chees_frozen()

    def test_a_given_length_is_used_as_it_is(self):
        settings = dataclasses.replace(ADAPTING, trajectory_length=1.5)
        z = tf.constant(target_of(CASE).draw(np.random.default_rng(5), 20))
        kernel, step = build(settings, target_of(CASE), 20, 0.3)
        results = kernel.bootstrap_results(z)
        key = tf.constant([1, 2])
        _, _, results, _ = transition(settings, kernel, step, z, results, key, adapting=True)
        np.testing.assert_allclose(log_lengths(results), np.log(1.5))


class TestTrajectories:
    def test_numbers_of_steps_fill_the_length_and_keep_their_bound(self):
        kernel, step = build(CASE.settings, target_of(CASE), 3)
        results = kernel.bootstrap_results(tf.zeros([3, 3], tf.float64))
        for most, seen in ((512, [1, 2, 3, 4]), (2, [1, 2])):
            settings = dataclasses.replace(CASE.settings, max_leapfrog_steps=most)
            found = [
                settings.prepare(results, step, [0, index], tf.constant(False))
                for index in range(60)
            ]
            steps = np.array([f.hmc.accepted_results.num_leapfrog_steps.numpy() for f in found])
            share = np.array([f.share.numpy() for f in found])
            np.testing.assert_array_equal(np.unique(steps), seen)
            np.testing.assert_array_equal(steps, np.minimum(np.ceil(share * 1.5 / 0.45), most))


class TestChainsTogether:
    def test_step_sizes_learn_from_the_harmonic_mean(self):
        found = ChEESHMC().pooled_acceptance(tf.constant([0.9, 0.3, 0.5]))
        np.testing.assert_allclose(found, np.full(3, 3 / (1 / 0.9 + 1 / 0.3 + 1 / 0.5)), rtol=1e-6)
        assert np.all(ChEESHMC().pooled_acceptance(tf.constant([1.0, 0.0])).numpy() < 1e-30)
        first = ChEESHMC().first_step_size(np.array([0.3, 0.2, 0.7], np.float32), 10)
        np.testing.assert_array_equal(first, np.full(3, 0.2, np.float32))

    @pytest.mark.statistics
    def test_a_run_shares_program_step_size_length_and_coordinates(self, groups):
        model = linear_model()
        options = dict(kernel=ChEESHMC(), num_chains=3, num_burnin_steps=100, jit_compile=False)
        run = short_fit(model, *linear_rows(), **options)
        (group,) = groups
        assert group.chains == [0, 1, 2]
        np.testing.assert_allclose(run.step_size, run.step_size[0], rtol=1e-6)
        scale = group.state.linear_map.scale.numpy()
        assert np.ptp(scale[0]) > 0
        np.testing.assert_array_equal(scale, scale[[0, 0, 0]])
        steps = model.posterior.sample_stats["n_steps"]
        np.testing.assert_array_equal(steps, steps[[0, 0, 0]])
        assert np.ptp(steps) > 0
        # 20 transitions adapted since the last window; those after them taught nothing.
        assert float(group.state.results.length.count) == 20
        assert "diagonal" in run.geometry and np.all(np.isfinite(run.acceptance_rate))
        draws, again = model.posterior.draws, linear_model()
        short_fit(again, *linear_rows(), **options)
        np.testing.assert_array_equal(draws, again.posterior.draws)


class TestRefusals:
    def test_one_chain_is_refused_before_anything_is_compiled(self):
        before = num_traces()
        with pytest.raises(ValueError, match="num_chains of at least 2, received 1"):
            short_fit(linear_model(), *linear_rows(), kernel="chees_hmc", num_chains=1)
        assert num_traces() == before

    def test_whitening_is_refused_with_the_reason(self):
        with pytest.raises(
            ValueError, match="must be one of .*'auto'.*ChEESHMC.*its own coordinates"
        ):
            ChEESHMC(preconditioner="gauss_newton")
