"""Draws of all rungs of a ladder: their laws, and what run and folder keep of them."""

import numpy as np
import pytest

import tfbnn
from tests.support.linear import closed_form, linear_model, linear_rows, short_fit
from tfbnn.diagnostics.statistics import mcse_mean
from tfbnn.kernels import MALA, PowerPosterior

KERNEL = PowerPosterior(MALA(), num_temperatures=4, power=2, keep_rungs=True)
POWER = 0.5


@pytest.fixture(scope="module")
def ladder(tmp_path_factory):
    """(model, run, folder) of the linear model with half of its likelihood."""
    folder, model = tmp_path_factory.mktemp("ladder") / "run", linear_model()
    options = dict(num_results=2000, num_burnin_steps=300, output=folder, likelihood_power=POWER)
    return model, short_fit(model, *linear_rows(), kernel=KERNEL, **options), folder


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


def test_a_run_without_them_says_what_to_do():
    kernel = PowerPosterior(MALA(), num_temperatures=3)
    options = dict(num_results=5, num_burnin_steps=5, jit_compile=False)
    run = short_fit(linear_model(), *linear_rows(), kernel=kernel, **options)
    with pytest.raises(ValueError, match=r"PowerPosterior\(keep_rungs=True\)"):
        run.coarsening(*linear_rows())
    assert "Coarsening" not in run.report()
