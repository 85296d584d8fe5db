"""Deterministic checks of the engine: leapfrog, XLA parity, adaptation, keys, plan, starts."""

import numpy as np
import pytest
import tensorflow as tf

import tfbnn
from tests.support.engine_checks import check_keys_are_distinct
from tests.support.specs import build, random_rows
from tfbnn.engine.basis import adaptation, seeds
from tfbnn.engine.density.potential import Potential, make_data
from tfbnn.engine.kernels import available, resolve_kernel
from tfbnn.engine.sampling.linear_map import DiagonalMap, diagonal_map
from tfbnn.kernels import HMC, NUTS
from tfbnn.run.plan import block_length, make_legs

MODELS = ["gaussian_learned", "ntk", "student_t"]


def leapfrog(potential, data, theta, momentum, step_size, num_steps, jit_compile):
    """TFP's integrator on the potential: the end of a trajectory, compiled or not."""
    from tensorflow_probability.python.mcmc.internal import leapfrog_integrator

    def run(theta, momentum):
        integrator = leapfrog_integrator.SimpleLeapfrogIntegrator(
            lambda t: tf.cast(potential.log_prob(t, data), t.dtype), [step_size], num_steps
        )
        (momentum,), (theta,), value, (gradient,) = integrator([momentum], [theta])
        return theta, momentum, value, gradient

    return tf.function(run, jit_compile=jit_compile, autograph=False)(theta, momentum)


def start(name, dtype="float64", chains=20, rows=11):
    spec, generator = build(name, dtype), np.random.default_rng(6)
    data = make_data(*random_rows(spec, generator, rows)[:2], None, dtype)
    shape = (chains, spec.layout.num_parameters)
    theta = tf.constant(0.5 * generator.normal(size=shape), dtype)
    return Potential(spec), data, theta, tf.constant(generator.normal(size=shape), dtype)


class TestLeapfrog:
    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-10), ("float32", 1e-4)])
    @pytest.mark.parametrize("num_steps", [1, 20])
    def test_reversible(self, name, dtype, tolerance, num_steps):
        potential, data, theta, momentum = start(name, dtype)
        end, final, *_ = leapfrog(potential, data, theta, momentum, 0.01, num_steps, False)
        back, _, *_ = leapfrog(potential, data, end, -final, 0.01, num_steps, False)
        np.testing.assert_allclose(back, theta, atol=tolerance)

    def test_energy_error_is_of_second_order(self):
        potential, data, theta, momentum = start("gaussian_learned")

        def energy_error(step, num_steps):
            before = potential.log_prob(theta, data) - 0.5 * tf.reduce_sum(momentum**2, -1)
            _, final, value, _ = leapfrog(potential, data, theta, momentum, step, num_steps, False)
            return np.abs(value - 0.5 * tf.reduce_sum(final**2, -1) - before)

        ratio = energy_error(0.004, 25) / energy_error(0.002, 50)
        assert 3.5 < np.median(ratio) < 4.5

    @pytest.mark.parametrize("name", MODELS)
    def test_xla_and_graph_agree(self, name):
        potential, data, theta, momentum = start(name)
        compiled = leapfrog(potential, data, theta, momentum, 0.01, 10, True)
        plain = leapfrog(potential, data, theta, momentum, 0.01, 10, False)
        for one, other in zip(compiled, plain):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)

    def test_float32_keeps_acceptance_with_many_rows_and_small_noise(self):
        """10^4 rows, noise 0.01: energy differences agree with float64 to a few hundredths.

        The kernel sees the density relative to its value at the start; without that, float32
        would resolve it no better than 0.004 here, and its sum no better than 0.5.
        """
        generator = np.random.default_rng(8)
        x = generator.normal(size=(10_000, 2))
        y = np.tanh(x @ [[1.0], [-0.5]]) + 0.01 * generator.normal(size=(10_000, 1))
        theta = 0.003 * generator.normal(size=(40, 18))
        theta[:, [0, 4, 12]] += [1.0, -0.5, 1.0]  # the first hidden unit is the truth
        theta[:, -1] = np.log(0.01)
        values = {}
        for dtype in ("float32", "float64"):
            potential = Potential(build("gaussian_learned", dtype))
            data = make_data(x, y, None, dtype)
            value = potential.log_prob(tf.constant(theta, dtype), data)
            values[dtype] = tf.cast(value - value[0], dtype).numpy().astype(np.float64)
        assert np.ptp(values["float64"]) > 1000
        np.testing.assert_allclose(values["float32"], values["float64"], rtol=1e-4, atol=0.02)


class TestAdaptation:
    def test_dual_averaging_follows_its_formula(self):
        generator = np.random.default_rng(9)
        acceptance = generator.uniform(size=(50, 2)).astype(np.float32)
        state = adaptation.restart_dual_averaging(np.array([0.1, 0.2], np.float32))
        for a in acceptance:
            state = state.update(tf.constant(a), 0.8)
        mu, t = np.log(10 * np.array([0.1, 0.2])), np.arange(1, 51)[:, None]
        log_step = mu - np.sqrt(t) / 0.05 * np.cumsum(0.8 - acceptance, axis=0) / (t + 10)
        average = np.log([0.1, 0.2])
        for count, value in enumerate(log_step, start=1):
            average = count**-0.75 * value + (1 - count**-0.75) * average
        np.testing.assert_allclose(state.log_step, log_step[-1], rtol=1e-4)
        np.testing.assert_allclose(state.log_average, average, rtol=1e-4)

    def test_running_moments_are_mean_and_variance(self):
        draws = np.random.default_rng(10).normal(3.0, 2.0, size=(60, 2, 5))
        moments = adaptation.restart_moments((2, 5), "float64")
        for draw in draws:
            moments = moments.update(draw)
        np.testing.assert_allclose(moments.mean, draws.mean(axis=0))
        np.testing.assert_allclose(moments.squares / 59, draws.var(axis=0, ddof=1))

    @pytest.mark.parametrize("num_steps", [0, 1, 7, 20, 40, 150, 160, 800, 5000])
    def test_windows_fill_the_adapting_steps(self, num_steps):
        windows = adaptation.adaptation_windows(num_steps)
        assert sum(length for length, _ in windows) == num_steps
        if num_steps >= 40:
            assert any(renew for _, renew in windows) and not windows[-1][1]

    def test_windows_double(self):
        lengths = [length for length, renew in adaptation.adaptation_windows(800) if renew]
        assert lengths == [25, 50, 100, 350]

    def test_first_step_size_scales_with_the_target(self):
        def value_and_gradient(theta, spread=np.array([[1e-3], [1.0]])):
            return -0.5 * ((theta / spread) ** 2).sum(-1), -theta / spread**2

        z = np.array([[1e-3] * 4, [1.0] * 4])
        identity = DiagonalMap(np.ones((2, 4)))
        step = adaptation.find_initial_step_size(
            value_and_gradient, z, identity, np.random.default_rng(0)
        )
        assert np.all(step / [1e-3, 1.0] > 0.2) and np.all(step / [1e-3, 1.0] < 5.0)

    def test_first_step_size_survives_a_wall(self):
        def value_and_gradient(theta):
            inside = np.abs(theta).max(-1) < 1
            return np.where(inside, 0.0, np.nan), np.where(inside[:, None], 0.0 * theta, np.nan)

        step = adaptation.find_initial_step_size(
            value_and_gradient,
            np.zeros((1, 3)),
            DiagonalMap(np.ones((1, 3))),
            np.random.default_rng(0),
        )
        assert 0 < step[0] < 10

    def test_diagonal_map_whitens_and_inverts(self):
        variance = np.array([[1e-6, 1.0, 1e4]])
        previous = DiagonalMap(np.ones((1, 3)))
        linear_map = diagonal_map(variance, num_draws=10_000, previous=previous)
        np.testing.assert_allclose(linear_map.scale, np.sqrt(variance), rtol=0.3)
        theta = np.array([[1.0, 2.0, 3.0]])
        np.testing.assert_allclose(linear_map.forward(linear_map.inverse(theta)), theta)

    def test_a_chain_that_stood_still_keeps_its_map(self):
        previous = DiagonalMap(np.full((2, 3), 7.0, np.float32))
        variance = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], np.float32)
        scale = diagonal_map(variance, num_draws=25, previous=previous).scale
        np.testing.assert_allclose(scale, [[7.0] * 3, [1.0] * 3])


class TestKeys:
    def test_a_million_keys_are_distinct(self):
        check_keys_are_distinct()

    def test_keys_belong_to_absolute_indices(self):
        whole = seeds.keys(5, "transition", 2, 0, 20)
        np.testing.assert_array_equal(whole[13:], seeds.keys(5, "transition", 2, 13, 7))

    def test_keys_are_pinned(self):
        """A change of scheme would silently change every seeded run."""
        assert seeds.keys(0, "transition", 0, 0, 1).tolist() == [[1890804379, -1986400012]]

    def test_streams_are_apart(self):
        assert not np.array_equal(seeds.keys(0, "a", 0, 0, 4), seeds.keys(0, "b", 0, 0, 4))


class TestPlan:
    def test_first_80_percent_adapt(self):
        legs = make_legs(HMC(), num_burnin_steps=1000, num_results=10, stride=3)
        warmup = [leg for leg in legs if leg.phase == "warmup"]
        assert sum(leg.length for leg in warmup if leg.adapt_step) == 800
        assert warmup[-1].length == 200 and not warmup[-1].adapt_step
        assert legs[-1].phase == "sampling" and legs[-1].length == 30
        assert not legs[-1].adapt_step and not legs[-1].renew

    def test_fixed_step_and_identity_adapt_nothing(self):
        legs = make_legs(HMC(step_size=0.1, preconditioner="identity"), 100, 5, 1)
        assert not any(leg.adapt_step or leg.renew for leg in legs)

    def test_blocks_shrink_with_the_work(self):
        small, large = build("gaussian_learned"), build("ntk")
        assert block_length(small, HMC(), 100, 1, 10**6) > 10 * block_length(
            large, HMC(), 10**6, 1, 10**6
        )
        assert block_length(small, HMC(), 10**12, 1, 100) == 1

    def test_kernel_names(self):
        assert {"hmc", "nuts", "mala", "random_walk_metropolis"} <= set(available())
        assert available() == sorted(available())
        assert resolve_kernel("NUTS") == NUTS() and resolve_kernel(HMC) == HMC()
        for name in available():
            settings = resolve_kernel(name)
            assert resolve_kernel(type(settings).__name__) == settings

    def test_accept_target_depends_on_smoothness(self):
        smooth, kinked = build("gaussian_learned"), build("uniform")
        for kernel in (HMC(), NUTS()):
            assert kernel.accept_target(kinked) < kernel.accept_target(smooth)
        assert HMC(target_accept_prob=0.9).accept_target(kinked) == 0.9


class TestFixedStep:
    def test_given_step_size_is_used_as_it_is(self):
        x = np.random.default_rng(0).normal(size=(40, 2))
        model = tfbnn.BayesianMLP([2, 3, 1])
        run = model.fit_posterior(
            x,
            x[:, 0],
            kernel=HMC(step_size=0.0123, num_leapfrog_steps=2),
            num_chains=1,
            num_results=10,
            num_burnin_steps=40,
            pretraining=None,
            verbose=0,
        )
        np.testing.assert_allclose(run.step_size, 0.0123, rtol=1e-6)
        np.testing.assert_allclose(model.posterior.sample_stats["step_size"], 0.0123, rtol=1e-6)
        assert run.accept_target is None

    def test_huge_step_size_is_counted_as_divergent(self):
        x = np.random.default_rng(0).normal(size=(40, 2))
        model = tfbnn.BayesianMLP([2, 3, 1], likelihood=tfbnn.likelihoods.Gaussian(0.01))
        run = model.fit_posterior(
            x,
            x[:, 0],
            kernel=HMC(step_size=5.0, num_leapfrog_steps=4),
            num_chains=2,
            num_results=10,
            num_burnin_steps=0,
            pretraining=None,
            verbose=0,
        )
        assert run.num_divergent.sum() == 20
        assert np.isfinite(model.posterior.draws).all()
        assert "diverge" in run.report()


class TestPretraining:
    def rows(self):
        generator = np.random.default_rng(12)
        x = generator.normal(size=(64, 2))
        return x, x[:, 0] * x[:, 1] + 0.05 * generator.normal(size=64)

    def fit(self, model, **options):
        settings = dict(
            kernel=HMC(num_leapfrog_steps=1, step_size=1e-6, preconditioner="identity"),
            num_chains=3,
            num_results=1,
            num_burnin_steps=0,
            verbose=0,
        )
        return model.fit_posterior(*self.rows(), **(settings | options))

    @pytest.mark.parametrize("batch_size", [16, None, 1000])
    def test_raises_the_log_density(self, batch_size):
        model = tfbnn.BayesianMLP([2, 8, 1])
        before = self.fit(model, pretraining=None).start_log_prob
        settings = tfbnn.Pretraining(epochs=300, batch_size=batch_size, learning_rate=0.01)
        after = self.fit(model, pretraining=settings).start_log_prob
        assert np.all(after > before + 50)

    def test_chains_start_apart(self):
        model = tfbnn.BayesianMLP([2, 8, 1])
        self.fit(model, pretraining=tfbnn.Pretraining(epochs=20, batch_size=None))
        starts = model.posterior.draws[:, 0]
        assert np.abs(starts[0] - starts[1]).max() > 0.1

    def test_early_stopping_goes_back_to_the_best_epoch(self):
        generator = np.random.default_rng(13)
        x = generator.normal(size=(20, 2))
        y = generator.normal(size=20)  # nothing to learn: the validation score soon falls
        validation = (generator.normal(size=(50, 2)), generator.normal(size=50))
        model = tfbnn.BayesianMLP([2, 30, 1])
        options = dict(
            kernel=HMC(num_leapfrog_steps=1, step_size=1e-6, preconditioner="identity"),
            num_chains=2,
            num_results=1,
            num_burnin_steps=0,
            verbose=0,
            validation_data=validation,
        )
        stopped = tfbnn.Pretraining(
            epochs=2000, batch_size=None, learning_rate=0.02, early_stopping=30
        )
        run = model.fit_posterior(x, y, pretraining=stopped, **options)
        early = model.evaluate(*validation)["log_predictive_density"]
        model.fit_posterior(
            x,
            y,
            pretraining=tfbnn.Pretraining(
                epochs=2000, batch_size=None, learning_rate=0.02, newton_iterations=0
            ),
            **options,
        )
        assert early > model.evaluate(*validation)["log_predictive_density"] + 0.5
        assert " 2000 epochs" not in run.report()

    def test_learned_scale_starts_from_the_residuals(self):
        model = tfbnn.BayesianMLP([2, 8, 1])
        self.fit(
            model,
            pretraining=tfbnn.Pretraining(
                epochs=100, batch_size=None, learning_rate=0.02, newton_iterations=0
            ),
        )
        x, y = self.rows()
        residual = model.predict_draws(x)[..., 0] - y
        scale = np.sqrt(np.mean(residual**2, axis=1)) / np.std(y)
        np.testing.assert_allclose(np.exp(model.posterior.draws[:, 0, -1]), scale, rtol=1e-2)


class TestStart:
    def test_uniform_prior_starts_inside_its_box(self):
        model = tfbnn.BayesianMLP([2, 4, 1], prior=tfbnn.priors.Uniform(-0.3, 0.3))
        x = np.random.default_rng(0).normal(size=(40, 2))
        model.fit_posterior(
            x,
            3 * x[:, 0],
            kernel=HMC(num_leapfrog_steps=2),
            num_chains=2,
            num_results=5,
            num_burnin_steps=5,
            pretraining=tfbnn.Pretraining(epochs=200, batch_size=None, learning_rate=0.05),
            verbose=0,
        )
        weights = model.posterior.draws[..., :-1]
        assert np.abs(weights).max() <= 0.3

    def test_nan_density_is_refused_with_its_row(self):
        x = np.full((10, 1), 1.0)
        x[7] = 3e38  # overflows in the first layer, whatever the weights
        model = tfbnn.BayesianMLP(
            [1, 4, 1], activation="identity", prior=tfbnn.priors.Normal(100.0), x_transform=None
        )
        with pytest.raises(tfbnn.StartError, match="row 7"):
            model.fit_posterior(x, np.arange(10.0), pretraining=None, num_chains=2, verbose=0)

    def test_start_outside_a_uniform_box_is_refused(self):
        from tfbnn.engine.starts.check import check_start

        spec = build("uniform")
        data = make_data(np.zeros((3, 2)), np.zeros((3, 1)), None, spec.dtype)
        theta = np.full((1, spec.layout.num_parameters), 6.0)
        with pytest.raises(tfbnn.StartError, match="prior"):
            check_start(Potential(spec), data, theta, np.array([-np.inf]), np.zeros_like(theta))

    def test_bad_gradient_names_the_parameter(self):
        from tfbnn.engine.starts.check import check_start

        spec = build("gaussian_learned")
        data = make_data(np.zeros((3, 2)), np.zeros((3, 1)), None, spec.dtype)
        theta = np.zeros((1, spec.layout.num_parameters))
        gradient = np.zeros_like(theta)
        gradient[0, 9] = np.nan
        with pytest.raises(tfbnn.StartError, match=r"layer 1 bias\[1\]"):
            check_start(Potential(spec), data, theta, np.zeros(1), gradient)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
def test_numpy_and_tensorflow_networks_agree(
    synthetic_ensemble, dtype, tolerance, parameterization
):
    from tfbnn.engine.density.network import network_outputs
    from tfbnn.posterior.forward import network_outputs as numpy_outputs
    from tfbnn.spec.activations import ACTIVATIONS

    x = np.random.default_rng(14).normal(size=(17, 3))
    for name in ACTIVATIONS:
        ensemble = synthetic_ensemble(
            (3, 9, 7, 2),
            activation=name,
            dtype=dtype,
            parameterization=parameterization,
            prior=tfbnn.priors.HierarchicalNormal(),
            num_results=5,
        )
        theta = tf.constant(ensemble.draws.reshape(10, -1))
        found = network_outputs(ensemble.spec, theta, tf.constant(x.T, dtype))
        expected = numpy_outputs(ensemble, x)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=tolerance * scale, err_msg=name)
