"""Power posteriors: the ladder and its swaps, the kernel, the evidence, runs, and seeded bugs."""

import json

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbnn
from tests.support.builders import config_of_run
from tests.support.kernels.ladder_checks import (
    INNER,
    TEMPERATURES,
    check_cache,
    check_tempering,
    law_p_value,
    sweep_p_value,
)
from tests.support.kernels.ladders import Conjugate, TwoModes, advance, make_target
from tests.support.linear import conjugate_evidence, linear_model, linear_rows, short_fit
from tests.support.specs import build, random_rows
from tfbnn.cli.app import main
from tfbnn.engine.basis.adaptation import find_initial_step_size
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.linear_map import DiagonalMap
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient
from tfbnn.engine.kernels import power_posterior
from tfbnn.engine.kernels.registry import resolve_kernel
from tfbnn.engine.running import driver
from tfbnn.engine.sampling import program
from tfbnn.engine.starts.check import draw_prior
from tfbnn.kernels import HMC, MALA, PowerPosterior, UnderdampedLangevin
from tfbnn.run.config import Starts
from tfbnn.run.evidence import log_evidence, swap_acceptance
from tfbnn.run.progress import Notifier
from tfbnn.run.stores import MemoryStore

FALSE_ALARM = 1e-6


class TestLadder:
    def test_temperatures(self):
        np.testing.assert_allclose(TEMPERATURES, np.array([0, 1, 2, 3, 4]) ** 4 / 4**4)
        assert PowerPosterior(num_temperatures=2).temperatures == (0.0, 1.0)
        assert PowerPosterior(num_temperatures=3, power=1).temperatures == (0.0, 0.5, 1.0)
        assert len(PowerPosterior().temperatures) == 25

    def test_rungs_crowd_where_a_learned_noise_scale_falls(self):
        """Half of them around the number of weights over that of targets, 17 / 340."""
        settings, _ = PowerPosterior().resolve(build("gaussian_learned"), 340)
        assert settings.crowded_at == 0.05
        temperatures = np.array(settings.temperatures)
        assert len(temperatures) == 25 and temperatures[0] == 0 and temperatures[-1] == 1
        assert np.all(np.diff(temperatures) > 0)
        plain = np.array(PowerPosterior().temperatures)
        near = [np.sum((t > 0.05 / 1.7) & (t < 0.05 * 1.7)) for t in (plain, temperatures)]
        assert near == [3, 7]

    def test_who_knows_the_noise_needs_no_crowd(self):
        plain = PowerPosterior()
        assert plain.resolve(linear_model().spec, 30)[0].temperatures == plain.temperatures
        none, _ = PowerPosterior(crowded_at=0).resolve(build("gaussian_learned"), 340)
        assert none.temperatures == plain.temperatures
        few, _ = plain.resolve(build("gaussian_learned"), 5)
        assert few.crowded_at == 0.5

    def test_only_the_likelihood_is_tempered(self):
        check_tempering()

    def test_the_last_rung_is_the_plain_posterior(self):
        """The same bits, so every kernel moves it as it would move a chain without a ladder."""
        potential = Conjugate()
        z = tf.constant(np.random.default_rng(0).normal(size=(15, 2)))
        ladder = make_target(potential, TEMPERATURES, 3)
        rows = tf.constant(ladder.linear_map.forward(z)[4::5])
        np.testing.assert_array_equal(ladder(z)[4::5], potential.log_prob(rows, None))

    def test_a_likelihood_that_overflows_does_not_reach_the_prior_s_rung(self):
        spec = build("gaussian_learned", "float32")
        x, y = random_rows(spec, np.random.default_rng(1), 7)[:2]
        data = make_data(x, y, None, "float32")
        theta = tf.fill([2, spec.layout.num_parameters], -50.0)  # also the log noise scale
        potential = Potential(spec)
        value, gradient = potential.value_and_gradient(
            theta, data, tf.constant([0.0, 1.0], tf.float64)
        )
        assert not np.isfinite(value[1])
        assert value[0] == potential.log_prior(theta)[0]
        assert np.isfinite(gradient[0]).all() and np.abs(gradient[0]).max() > 0

    def test_first_step_sizes_follow_the_rung(self):
        """At t = 0 that of the prior alone, even where the likelihood overflows within a step."""
        x, y = linear_rows()
        model = linear_model()
        data = make_data(1e19 * x, y[:, None], None, "float32")
        weak = make_data(1e-9 * x, 0.0 * y[:, None], None, "float32")

        def first(data, theta, temperatures):
            function = make_value_and_gradient(Potential(model.spec), data, temperatures)
            ones = DiagonalMap(np.ones_like(theta))
            return find_initial_step_size(function, theta, ones, np.random.default_rng(0))

        theta = np.full((3, 3), 0.1, np.float32)
        steps = first(data, theta, (0.0, 1e-3, 1.0))
        assert steps[0] == first(weak, theta, (0.0, 1e-3, 1.0))[0]
        assert steps[0] > 1.0 and np.isfinite(steps).all()


class TestSwaps:
    def test_partner_law(self):
        law = power_posterior.partner_law(4)
        first = np.exp([-0.5, -1.0, -1.5])
        np.testing.assert_allclose(law[0], [0, *first / first.sum()])
        second = np.exp([-0.5, -0.5, -1.0])
        np.testing.assert_allclose(law[1], np.insert(second / second.sum(), 1, 0))
        np.testing.assert_allclose(law, law[::-1, ::-1])

    def test_partners_follow_the_law_and_are_never_the_rung_itself(self):
        count = 100_000
        grid = np.append((np.arange(count) + 0.5) / count, [0.0, np.nextafter(1.0, 0.0)])
        partners = power_posterior.draw_partners(tf.constant(np.tile(grid, (5, 1)))).numpy()
        for rung, found in enumerate(partners):
            shares = np.bincount(found, minlength=5) / count
            np.testing.assert_allclose(shares, power_posterior.partner_law(5)[rung], atol=1e-4)
            assert shares[rung] == 0

    def test_sweep_replayed_in_plain_python(self):
        held = np.random.default_rng(5).normal(-5, 4, size=(200, 5))
        seed = tf.constant([1, 2])
        found = power_posterior.sweep(tf.constant(held), TEMPERATURES, seed).numpy()
        uniform = tf.random.stateless_uniform([2, 5, 200], seed, dtype=tf.float64).numpy()
        partners = power_posterior.draw_partners(tf.constant(uniform[0])).numpy()
        for chain, values in enumerate(held):
            order = list(range(5))
            for i in range(5):
                j = partners[i, chain]
                gain = values[order[j]] - values[order[i]]
                if np.log(uniform[1, i, chain]) < (TEMPERATURES[i] - TEMPERATURES[j]) * gain:
                    order[i], order[j] = order[j], order[i]
            assert order == found[chain].tolist()
        assert 0.3 < np.mean(found != np.arange(5)) < 0.9

    def test_a_likelihood_that_is_not_finite_stays_at_the_prior(self):
        held = tf.constant([[-np.inf, -3.0, -2.0], [np.nan, -3.0, -2.0]], tf.float64)
        for seed in range(20):
            order = power_posterior.sweep(held, (0.0, 0.5, 1.0), tf.constant([seed, 0]))
            assert np.all(order[:, 0] == 0)

    def test_sweeps_leave_the_ladder_invariant(self):
        assert sweep_p_value() > FALSE_ALARM


class TestKernel:
    @pytest.mark.parametrize("name", INNER)
    def test_cached_values_are_the_state_s(self, name):
        assert check_cache(name) > 5, "some rungs have to stand still, with the same bits"

    def test_states_travel_in_theta(self):
        """Rungs have coordinates of their own."""
        target = make_target(Conjugate(), TEMPERATURES, 2)
        z = tf.constant(np.random.default_rng(9).normal(size=(10, 2)))
        rows = tf.constant([1, 0, 2, 4, 3, 5, 6, 9, 8, 7])
        taken = target.gather(z, rows)
        theta = target.linear_map.forward(z).numpy()
        np.testing.assert_allclose(target.linear_map.forward(taken), theta[rows], rtol=1e-14)
        stays = rows.numpy() == np.arange(10)
        np.testing.assert_array_equal(taken[stays], z[stays])

    @pytest.mark.statistics
    def test_every_rung_keeps_its_law(self):
        smallest, acceptance = law_p_value()
        assert 0.6 < acceptance < 0.9, "outside this window the test has no power"
        assert smallest > FALSE_ALARM

    def test_swap_acceptance_of_the_report_is_that_of_the_sweep(self):
        """Between two rungs a sweep makes two offers: an odd number of them exchanges."""
        generator = np.random.default_rng(10)
        potential, temperatures = Conjugate(), (0.0, 1.0)
        theta = potential.draw(temperatures, 100_000, generator)
        ll = potential.log_likelihood(tf.constant(theta), None).numpy().reshape(1, -1, 2)
        (expected,) = swap_acceptance(temperatures, ll)
        # After an accepted exchange the way back is offered, with the inverse ratio.
        ratio = ll[0, :, 0] - ll[0, :, 1]
        accept, back = (np.exp(np.minimum(sign * ratio, 0.0)) for sign in (1, -1))
        order = power_posterior.sweep(tf.constant(ll[0]), temperatures, tf.constant([5, 6])).numpy()
        exchanged = accept * (1 - back) + (1 - accept) * accept
        error = np.sqrt(np.mean(exchanged * (1 - exchanged)) / len(ratio))
        assert abs(np.mean(order[:, 0] == 1) - exchanged.mean()) < 5 * error
        np.testing.assert_allclose(expected, accept.mean())


def share_of_the_right_mode(settings, num_chains=200):
    """(mean, MCSE) of the share of draws in the mode of weight 0.7, all chains from the other."""
    potential, num_rungs = TwoModes(), len(settings.temperatures)
    start = np.tile(-potential.SEEN, (num_chains * num_rungs, 1))
    _, kept, _ = advance(settings, potential, start, num_steps=600, num_kept=400)
    shares = np.mean(kept[:, num_rungs - 1 :: num_rungs, 0] > 0, axis=0)
    return shares.mean(), shares.std(ddof=1) / num_chains**0.5


@pytest.mark.statistics
class TestTwoModes:
    """Ten standard deviations apart, with weights 0.3 and 0.7."""

    def test_the_ladder_finds_both_from_one(self):
        share, error = share_of_the_right_mode(
            PowerPosterior(MALA(step_size=1.2), num_temperatures=8)
        )
        assert error < 0.02 and abs(share - 0.7) < 4 * error

    def test_a_plain_kernel_stays_where_it_starts(self):
        assert share_of_the_right_mode(MALA(step_size=1.2))[0] < 0.01


def evidences(num_temperatures=20, num_chains=20):
    """LogEvidence of every chain by itself, all run together, for the linear model."""
    x, y = linear_rows()
    spec = linear_model("float64").spec
    settings = PowerPosterior(MALA(preconditioner="diagonal"), num_temperatures=num_temperatures)
    y = y[:, None]
    numbers = {"num_chains": num_chains, "num_results": 2000, "num_burnin_steps": 500, "seed": 2}
    result = driver.run_chains(
        config_of_run(spec, x, y, settings.temperatures, **numbers),
        settings,
        make_data(x, y, None, "float64"),
        Starts(draw_prior(spec, 1, num_chains), "draws of the prior"),
        MemoryStore(),
        Notifier(),
    )
    return [
        log_evidence(settings.temperatures, result.rung_log_likelihood[chain : chain + 1])
        for chain in range(num_chains)
    ]


@pytest.mark.statistics
class TestEvidence:
    def test_of_the_linear_model_within_its_errors(self, monkeypatch):
        """z-scores of 20 chains; false alarms of each bound below 1e-4."""
        monkeypatch.setattr(program, "chain_groups", lambda count, **_: [list(range(count))])
        exact = conjugate_evidence(*linear_rows())
        found = evidences()
        z = np.array([(e.stepping_stone.value - exact) / e.stepping_stone.stderr for e in found])
        low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], len(z) - 1) / (len(z) - 1)
        assert abs(z.mean()) < 4 / len(z) ** 0.5 and low < z.var(ddof=1) < high
        for estimate in (e.thermodynamic for e in found):
            assert abs(estimate.value - exact) < 4 * estimate.stderr
            assert estimate.stderr < 0.5


XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])


def fit_xor(**options):
    """(Model, run) of a ladder on the XOR network."""
    model = tfbnn.BayesianMLP(
        [2, 2, 1],
        activation="sigmoid",
        prior=tfbnn.priors.Normal(3.0),
        likelihood=tfbnn.likelihoods.Bernoulli(),
        x_transform=None,
    )
    return model, short_fit(
        model, *XOR, kernel=PowerPosterior(num_temperatures=10), seed=4, **options
    )


# Without XLA, which would compile for longer than such a run takes.
XOR_RUN = dict(num_results=200, num_burnin_steps=200, jit_compile=False)


@pytest.fixture(scope="module")
def xor_fit(tmp_path_factory):
    model, run = fit_xor(**XOR_RUN)
    path = tmp_path_factory.mktemp("xor") / "xor.h5"
    model.save(path)
    return model, run, path


@pytest.mark.statistics
class TestRuns:
    def test_keeps_and_reports_the_last_rung(self, xor_fit):
        model, run, _ = xor_fit
        draws, kept = model.posterior.draws, model.posterior.sample_stats
        assert draws.shape == (2, 200, 9) and run.acceptance_rate.shape == (2,)
        np.testing.assert_allclose(kept["lp"], model.log_prob(draws, *XOR), rtol=1e-5)
        np.testing.assert_allclose(run.step_size, kept["step_size"][:, -1])
        assert np.all((run.acceptance_rate > 0.35) & (run.acceptance_rate < 0.85))
        # Ten rungs, a gradient for the move and one after the power_posterior.
        assert run.num_gradients["sampling"].tolist() == [200 * 10 * 2] * 2
        assert np.isnan(kept["energy"]).all()

    def test_draws_do_not_depend_on_other_chains(self, xor_fit):
        again, _ = fit_xor(num_chains=1, **XOR_RUN)
        np.testing.assert_array_equal(again.posterior.draws[0], xor_fit[0].posterior.draws[0])

    def test_reports(self, xor_fit, capsys):
        _, run, path = xor_fit
        report = run.report()
        assert "by stepping stones" in report
        assert (
            "PowerPosterior(inner=MALA(preconditioner='diagonal'), num_temperatures=10)" in report
        )
        assert run.geometry.startswith("diagonal")
        record = json.loads(json.dumps(run.to_dict()))
        stones = run.log_evidence.stepping_stone
        assert record["log_evidence"]["stepping_stone"] == vars(stones)
        rates = record["swap_acceptance"]
        assert len(rates) == 9 and 0.5 < min(rates) < 0.95
        assert f"Swaps        accepted {' '.join(f'{rate:.2f}' for rate in rates)}" in report
        saved = tfbnn.load(path).posterior.provenance.log_evidence
        assert saved == record["log_evidence"]
        assert main(["info", str(path)]) == 0
        assert f"stepping_stone value {stones.value:.6g}" in capsys.readouterr().out

    def test_other_kernels_have_no_evidence(self):
        run = short_fit(linear_model(), *linear_rows(), jit_compile=False)
        assert run.log_evidence is None and run.to_dict()["log_evidence"] is None
        assert "Evidence" not in run.report()


class TestRefusals:
    def test_the_inner_kernel_by_name_or_settings(self):
        assert PowerPosterior("mala") == PowerPosterior(MALA()) == resolve_kernel("power_posterior")
        with pytest.raises(ValueError, match="truncated_mala"):
            PowerPosterior("gibbs")
        with pytest.raises(TypeError, match="kernel must be one of"):
            PowerPosterior(3)

    @pytest.mark.parametrize(
        "kernel, reason",
        [
            (PowerPosterior(), "ladders themselves"),
            ("chees_hmc", "learn from each other"),
            (UnderdampedLangevin(adjusted=False), "bias would enter every rung"),
            (HMC(preconditioner="gauss_newton"), "curvature of the posterior"),
        ],
    )
    def test_inner_kernels_that_make_no_sense(self, kernel, reason):
        with pytest.raises(ValueError, match=reason):
            PowerPosterior(kernel)

    def test_a_user_s_kernel(self):
        import tensorflow_probability as tfp

        with pytest.raises(ValueError, match="rung to rung, is unknown"):
            PowerPosterior(lambda target: tfp.mcmc.RandomWalkMetropolis(target))

    def test_what_the_inner_kernel_refuses(self):
        with pytest.raises(ValueError, match="priors.Uniform"):
            short_fit(linear_model(), *linear_rows(), kernel=PowerPosterior("truncated_mala"))
