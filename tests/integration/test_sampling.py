"""Sampling through the public API: closed-form posteriors, bits, thinning, stops, user kernels."""

import os
import signal
from itertools import product

import numpy as np
import pytest

import tfbnn
from tests.support.builders import config_of_run
from tests.support.engine_checks import (
    check_chains_have_numbers_of_their_own,
    check_step_size_stands_still_while_sampling,
    check_thinning_keeps_every_third_transition,
)
from tests.support.linear import (
    NOISE,
    check_moments,
    closed_form,
    linear_model,
    linear_rows,
    short_fit,
)
from tests.support.marks import statistics_but
from tests.support.terminal import terminal
from tfbnn.diagnostics.statistics import mcse_mean
from tfbnn.engine.sampling.program import plan_chains
from tfbnn.system.signals import STOP_SIGNALS


@pytest.fixture(scope="module", params=statistics_but(["hmc"], ["hmc", "nuts"]))
def linear_fit(request, tmp_path_factory):
    """A long run on the linear model, saved and loaded again."""
    kernels = {"hmc": tfbnn.kernels.HMC(num_leapfrog_steps=8), "nuts": "nuts"}
    model, (x, y) = linear_model(), linear_rows()
    run = model.fit_posterior(
        x,
        y,
        kernel=kernels[request.param],
        num_chains=4,
        num_results=2500,
        num_burnin_steps=500,
        pretraining=None,
        seed=3,
        verbose=0,
    )
    path = tmp_path_factory.mktemp("linear") / "model.h5"
    model.save(path)
    return tfbnn.load(path), run


class TestLinearModel:
    """A network without hidden layer has a closed-form posterior; agreement within 4 MCSE."""

    def test_moments(self, linear_fit):
        draws = linear_fit[0].posterior.draws.astype(np.float64)
        mean, covariance = closed_form(*linear_rows())
        error = 4 * mcse_mean(draws)
        assert np.all(np.abs(draws.mean(axis=(0, 1)) - mean) < error)
        assert np.all(error < 0.1 * np.sqrt(np.diag(covariance))), "too few draws to notice"
        deviation = draws - mean
        products = deviation[..., :, None] * deviation[..., None, :]
        error = np.abs(products.mean(axis=(0, 1)) - covariance)
        assert np.all(error < 4 * mcse_mean(products))

    def test_predictive(self, linear_fit):
        model, _ = linear_fit
        mean, covariance = closed_form(*linear_rows())
        points = np.array([[0.0, 0.0], [1.0, -2.0], [5.0, 5.0]])
        design = np.column_stack([points, np.ones(3)])
        variance = np.einsum("ni,ij,nj->n", design, covariance, design)
        found = model.predict(points)
        np.testing.assert_allclose(found.mean, design @ mean, atol=0.02)
        np.testing.assert_allclose(found.stddev, np.sqrt(variance), rtol=0.05)
        noisy = model.predict(points, include_noise=True, quantiles=[0.1, 0.9])
        total = np.sqrt(variance + NOISE**2)
        np.testing.assert_allclose(noisy.stddev, total, rtol=0.05)
        expected = (design @ mean)[None] + np.array([-1, 1])[:, None] * 1.2815516 * total
        np.testing.assert_allclose(noisy.quantiles, expected, atol=0.08)

    def test_acceptance_is_near_its_target(self, linear_fit):
        """In three dimensions acceptance drops suddenly at the stability limit: a wide window."""
        _, run = linear_fit
        assert np.all(run.acceptance_rate > run.accept_target - 0.1)
        assert np.all(run.acceptance_rate < 0.97)

    def test_run_agrees_with_itself(self, linear_fit):
        model, run = linear_fit
        stats = model.posterior.sample_stats
        np.testing.assert_allclose(
            stats["acceptance_rate"].mean(axis=1), run.acceptance_rate, atol=1e-5
        )
        assert run.num_gradients["sampling"].sum() == stats["n_steps"].sum()
        assert set(run.seconds) == {"startup", "compile", "pretraining", "warmup", "sampling"}
        assert run.diagnosis.rhat_function.max() < 1.01

    def test_energy_is_minus_lp_plus_kinetic_energy(self, linear_fit):
        """Kinetic energies are half a chi-squared with P = 3 degrees of freedom."""
        stats = linear_fit[0].posterior.sample_stats
        kinetic = stats["energy"] + stats["lp"]
        assert kinetic.min() > 0
        assert abs(kinetic.mean() - 1.5) < 0.15


@pytest.fixture(scope="module")
def short_draws():
    """The draws of a short fit without XLA, whose program most tests below use."""
    model = linear_model()
    short_fit(model, *linear_rows(), jit_compile=False)
    return model.posterior.draws


class TestBits:
    def test_other_seed_or_chain_other_draws(self, short_draws):
        assert not np.any(np.all(short_draws[0] == short_draws[1], axis=-1))
        model = linear_model()
        short_fit(model, *linear_rows(), seed=8, jit_compile=False)
        assert not np.any(np.all(short_draws == model.posterior.draws, axis=-1))

    @pytest.mark.statistics
    def test_block_length_does_not_matter(self, monkeypatch):
        """Under XLA; tests/durability/fits/test_groups.py has any lengths without it."""
        x, y = linear_rows()
        expected, found = linear_model(), linear_model()
        short_fit(expected, x, y)
        monkeypatch.setattr("tfbnn.run.plan.block_length", lambda *_: 8)
        short_fit(found, x, y)
        np.testing.assert_array_equal(found.posterior.draws, expected.posterior.draws)

    @pytest.mark.statistics
    def test_chains_have_numbers_of_their_own(self):
        check_chains_have_numbers_of_their_own()

    def test_fewer_chains_are_the_same_chains(self, short_draws):
        """With the same seed; every chain is a program of its own, whatever the others do."""
        one = linear_model()
        short_fit(one, *linear_rows(), num_chains=1, jit_compile=False)
        np.testing.assert_array_equal(one.posterior.draws[0], short_draws[0])

    @pytest.mark.statistics
    def test_many_chains_of_a_tiny_network_make_the_same_draws_again(self):
        many, again = linear_model(), linear_model()
        for model in (many, again):
            short_fit(model, *linear_rows(), num_chains=8, jit_compile=False)
        np.testing.assert_array_equal(many.posterior.draws, again.posterior.draws)

    @pytest.mark.statistics
    def test_thinning_keeps_every_third_transition(self):
        check_thinning_keeps_every_third_transition()


@pytest.mark.parametrize("num_rows, num_chains, groups", [(30, 8, 1), (400, 8, 8), (30, 7, 7)])
def test_many_chains_of_a_tiny_network_share_a_program(num_rows, num_chains, groups):
    x, y = linear_rows(num_rows)
    sampling = dict(seed=0, num_chains=num_chains, num_results=2, num_burnin_steps=2)
    config = config_of_run(linear_model().spec, x, y[:, None], **sampling)
    assert len(plan_chains(tfbnn.kernels.HMC(), config).groups) == groups


def test_step_size_stands_still_while_sampling():
    check_step_size_stands_still_while_sampling(jit_compile=False)


class TestUserKernel:
    @pytest.mark.statistics
    def test_kernel_with_its_own_adaptation_adapts_and_samples_the_posterior(self):
        """TFP's adaptation rebuilds the inner kernel from its parameters and keeps its state."""
        import tensorflow_probability as tfp

        def build(target):
            return tfp.mcmc.DualAveragingStepSizeAdaptation(
                tfp.mcmc.HamiltonianMonteCarlo(target, num_leapfrog_steps=4, step_size=1e-3),
                num_adaptation_steps=120,
                target_accept_prob=0.7,
            )

        model = linear_model()
        options = dict(kernel=build, num_results=1000, num_burnin_steps=150)
        run = short_fit(model, *linear_rows(), **options)
        check_moments(model.posterior.draws, *linear_rows())
        # The first guess of 1e-3 would be accepted always.
        assert np.all((run.acceptance_rate > 0.5) & (run.acceptance_rate < 0.97))

    def test_a_function_that_reads_a_variable_is_compiled_anew(self):
        import tensorflow_probability as tfp

        scale = {"value": 1e-4}

        def build(target):
            step = tfp.mcmc.random_walk_normal_fn(scale=scale["value"])
            return tfp.mcmc.RandomWalkMetropolis(target, new_state_fn=step)

        options = dict(kernel=build, jit_compile=False)
        timid = short_fit(linear_model(), *linear_rows(), **options)
        scale["value"] = 3.0
        bold = short_fit(linear_model(), *linear_rows(), **options)
        assert timid.acceptance_rate.min() > 0.9 > bold.acceptance_rate.max()
        assert np.isnan(bold.step_size).all()


class TestStops:
    LONG = dict(num_results=20_000, jit_compile=False)
    ENDS = [*product(["pretraining", "newton", "warmup"], ["callback", "interrupt"])]

    @pytest.fixture(autouse=True)
    def short_blocks(self, monkeypatch):
        """Use the blocks of a short fit, whose program serves for LONG, too."""
        monkeypatch.setattr("tfbnn.run.plan.block_length", lambda *_: 32)

    @pytest.mark.parametrize("number", statistics_but([signal.SIGTERM], STOP_SIGNALS))
    def test_signals_keep_the_draws(self, number):
        before = signal.getsignal(number)

        def callback(event):
            if event.get("num_kept"):
                os.kill(os.getpid(), number)

        model = linear_model()
        with pytest.raises(KeyboardInterrupt):
            short_fit(model, *linear_rows(), callbacks=[callback], **self.LONG)
        assert 0 < model._ensemble.num_results < 20_000
        assert signal.getsignal(number) is before

    def test_callback_sees_events_and_stops(self):
        events = []

        def callback(event):
            events.append(event)
            return event["phase"] == "sampling" and event["num_kept"] >= 3

        model = linear_model()
        with_stop = dict(num_burnin_steps=30, callbacks=[callback], **self.LONG)
        run = short_fit(model, *linear_rows(), **with_stop)
        assert 3 <= run.num_results < 20_000
        with pytest.warns(UserWarning, match="stopped early"):
            assert model.posterior.draws.shape[1] == run.num_results
        assert {event["phase"] for event in events} == {"warmup", "sampling"}
        assert np.isfinite(model._ensemble.draws).all()

    @pytest.mark.parametrize(("phase", "ends"), statistics_but(ENDS[::3], ENDS))
    def test_a_stop_before_the_first_draw_leaves_the_pretrained_networks(
        self, tmp_path, phase, ends
    ):
        phases = []

        def callback(event):
            phases.append(event["phase"])
            if event["phase"] == phase and ends == "interrupt":
                raise KeyboardInterrupt
            return event["phase"] == phase

        (x, y), model = linear_rows(), linear_model()
        settings = tfbnn.Pretraining(
            epochs=200, batch_size=None, learning_rate=0.05, newton_iterations=2
        )
        options = dict(pretraining=settings, callbacks=[callback], jit_compile=False)
        if ends == "interrupt":
            with pytest.raises(KeyboardInterrupt):
                short_fit(model, x, y, **options)
        else:
            words = "before its first draw; the model holds optimised"
            with pytest.warns(UserWarning, match=words):
                short_fit(model, x, y, **options)
        assert model._ensemble.draws.shape[:2] == (2, 1) and phases[-1] == phase
        with pytest.warns(UserWarning, match="not sampled from the posterior"):
            model.save(tmp_path / "model.h5")
        loaded = tfbnn.load(tmp_path / "model.h5")
        with pytest.warns(UserWarning, match="pretrained networks: the run was stopped"):
            mean = loaded.predict(x, allow_unsampled=True).mean
        assert np.corrcoef(np.ravel(mean), np.ravel(y))[0, 1] > 0.9
        theta, statistics = loaded._ensemble.draws, loaded._ensemble.sample_stats
        expected = loaded.log_prob(theta, x, y)
        np.testing.assert_allclose(statistics["lp"], expected, rtol=1e-4)
        assert np.isnan(statistics["step_size"]).all()

    def test_a_stop_before_the_first_draw_keeps_an_earlier_posterior(self):
        model = linear_model()
        short_fit(model, *linear_rows(), jit_compile=False)
        before = model.posterior.draws
        settings = tfbnn.Pretraining(epochs=5, batch_size=None, newton_iterations=0)
        stop = dict(pretraining=settings, callbacks=[lambda event: True], jit_compile=False)
        with pytest.warns(UserWarning, match="keeps its earlier posterior"):
            short_fit(model, *linear_rows(), seed=5, **stop)
        assert model.posterior.draws is before

    def test_thinned_run_counts_every_divergence(self):
        kernel = tfbnn.kernels.HMC(step_size=50.0, num_leapfrog_steps=4, preconditioner="identity")
        model = linear_model()
        options = dict(num_results=5, num_steps_between_results=3, jit_compile=False)
        run = short_fit(model, *linear_rows(), kernel=kernel, **options)
        np.testing.assert_array_equal(run.step_size, np.float32(50.0))
        assert run.num_divergent.sum() == 2 * 5 * 4 == run.diagnosis.num_divergent
        assert np.isnan(run.diagnosis.ebfmi).all()
        assert model.diagnose().num_divergent == 40

    def test_broken_callback_does_not_end_the_run(self):
        def callback(event):
            raise RuntimeError("broken plot")

        model = linear_model()
        with pytest.warns(RuntimeWarning, match="broken plot"):
            short_fit(model, *linear_rows(), callbacks=[callback], jit_compile=False)
        assert model.posterior.num_results == 20


def test_a_terminal_keeps_one_bar_of_each_phase(monkeypatch):
    width = 60
    settings = tfbnn.Pretraining(epochs=5, batch_size=None, newton_iterations=5)
    with terminal(width) as tty, monkeypatch.context() as patch:
        patch.setattr("sys.stderr", tty.stream)
        patch.setattr("tfbnn.run.progress._PER_SECOND", 500.0)
        patch.setenv("COLUMNS", str(width))
        patch.setenv("TERM", "xterm")
        shown = []
        options = dict(verbose=1, callbacks=[lambda event: shown.append(tty.lines())])
        short_fit(
            linear_model(), *linear_rows(), pretraining=settings, jit_compile=False, **options
        )
        estimate, *lines = tty.lines()
    assert estimate.endswith(": 2 chains x 20 draws.")
    phases = ["pretraining", "refining starts", "warm-up", "sampling"]
    assert [line.split(" \u2501")[0].rstrip() for line in lines] == phases
    assert shown and all(" 100% " in line for line in lines)
    assert all(len(line) <= width for kept in shown for line in kept)


def test_nothing_is_retraced_by_a_second_fit():
    """Nor by one of a few rows fewer, as another fold has them."""
    from tfbnn.engine.basis.compile import num_traces
    from tfbnn.engine.density.data import padded_length

    x, y = linear_rows()
    assert padded_length(len(x)) == padded_length(len(x) - 2)
    short_fit(linear_model(), x, y, jit_compile=False)
    before = num_traces()
    short_fit(linear_model(), x[2:], y[2:], seed=1, jit_compile=False)
    assert num_traces() == before
