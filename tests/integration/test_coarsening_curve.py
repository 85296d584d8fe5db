"""Draws of all rungs of a ladder: their laws, and what run and folder keep of them."""

import numpy as np
import pytest

import tfbnn
from tests.support.linear import closed_form, linear_model, linear_rows, short_fit
from tfbnn.diagnostics.statistics import mcse_mean
from tfbnn.kernels import HMC, MALA, PowerPosterior

KERNEL = PowerPosterior(MALA(), num_temperatures=4, power=2, keep_rungs=True)
POWER = 0.5


@pytest.fixture(scope="module")
def ladder(tmp_path_factory):
    """(model, run, folder) of the linear model with half of its likelihood."""
    folder, model = tmp_path_factory.mktemp("ladder") / "run", linear_model()
    options = dict(num_results=1200, num_burnin_steps=200, output=folder, jit_compile=False)
    options |= {"kernel": KERNEL, "likelihood_power": POWER}
    return model, short_fit(model, *linear_rows(), **options), folder


@pytest.mark.statistics
def test_every_rung_is_a_coarsened_posterior(ladder):
    """That of `fit_posterior` with its power, which with known noise has a closed form."""
    _, run, _ = ladder
    powers = POWER * np.array(KERNEL.temperatures)[1:]
    np.testing.assert_allclose(run.rungs.powers, powers)
    for power, rung in zip(powers, run.rungs.ensembles()):
        mean, covariance = closed_form(*linear_rows(), power)
        draws = rung.draws.astype(np.float64)
        assert np.all(np.abs(draws.mean(axis=(0, 1)) - mean) < 4.5 * mcse_mean(draws))
        np.testing.assert_allclose(draws.var(axis=(0, 1)), np.diag(covariance), rtol=0.3)


def test_the_last_rung_is_the_fit(ladder):
    model, run, _ = ladder
    np.testing.assert_array_equal(run.rungs.draws[:, :, -1], model.posterior.draws)
    assert "rung_draws" not in model.posterior.sample_stats
    assert "all rungs kept, 12 numbers per draw" in run.geometry


def test_the_report_names_the_largest_power_that_mixes(ladder):
    _, run, _ = ladder
    assert run.rungs.largest_power == POWER
    assert "R-hat below 1.05 at 95 % of the reference inputs up to likelihood_power=0.5" in (
        " ".join(run.report().split())
    )
    assert run.to_dict()["largest_power_that_mixes"] == POWER
    curve = run.coarsening(*linear_rows())
    assert curve.largest_power == POWER and np.all(np.diff(curve.scores["rmse"]) < 0)


def test_a_folder_keeps_all_rungs(ladder):
    model, run, folder = ladder
    again, found = tfbnn.resume(folder, verbose=0)
    np.testing.assert_array_equal(found.rungs.draws, run.rungs.draws)
    np.testing.assert_array_equal(again.posterior.draws, model.posterior.draws)


@pytest.mark.statistics
def test_a_rung_of_a_network_is_the_fit_with_its_power():
    """Predictions and the learned noise scale, by their means; false alarms below 1e-4."""
    generator = np.random.default_rng(3)
    x = generator.uniform(-2.0, 2.0, size=(40, 1))
    y = np.tanh(2.0 * x[:, 0]) + 0.3 * generator.normal(size=40)
    kernel = PowerPosterior(HMC(num_leapfrog_steps=8), num_temperatures=4, power=1, keep_rungs=True)
    options = dict(num_chains=4, num_results=2500, num_burnin_steps=500, seed=1)
    model = tfbnn.BayesianMLP([1, 2, 1], prior=tfbnn.priors.Normal(1.0))
    rungs = short_fit(model, x, y, kernel=kernel, **options).rungs
    rung = next(rungs.ensembles())
    power = rung.spec.likelihood_power
    short_fit(model, x, y, kernel=HMC(num_leapfrog_steps=16), likelihood_power=power, **options)
    found, expected = (
        _seen(tfbnn.BayesianMLP.from_ensemble(e), x) for e in (rung, model.posterior)
    )
    for change in (lambda values: values, np.square):
        one, other = change(found), change(expected)
        error = np.hypot(mcse_mean(one), mcse_mean(other))
        z = (one.mean(axis=(0, 1)) - other.mean(axis=(0, 1))) / error
        assert np.abs(z).max() < 4.5
    whole = _seen(tfbnn.BayesianMLP.from_ensemble(list(rungs.ensembles())[-1]), x)
    assert whole.std(axis=(0, 1)).mean() < 0.8 * found.std(axis=(0, 1)).mean()


def _seen(model, x):
    """Predictions at some inputs and log noise scales of all draws [C, S, 6]."""
    posterior = model.posterior
    shape = posterior.draws.shape[:2]
    function = model.predict_draws(x[:5], space="transformed").reshape(*shape, 5)
    return np.concatenate([function, posterior.log_noise_scale.reshape(*shape, 1)], axis=2)
