"""Fits with a power of the likelihood: their law, what they start from, and what says so."""

import json

import numpy as np
import pytest

import tfbnn
from tests.support.linear import (
    NOISE,
    RUN,
    START,
    check_moments,
    closed_form,
    linear_model,
    linear_rows,
    short_fit,
)
from tfbnn.cli.app import main

POWER = 0.1


@pytest.fixture(scope="module")
def coarsened():
    """(model, run) of the linear model, whose coarsened posterior is known."""
    model = linear_model()
    options = RUN | dict(num_results=1000, num_burnin_steps=200, jit_compile=False)
    options["likelihood_power"] = POWER
    return model, model.fit_posterior(*linear_rows(), kernel="mala", pretraining=None, **options)


@pytest.mark.statistics
def test_draws_are_of_the_coarsened_posterior(coarsened):
    """The posterior has 10 times the noise variance: three times as wide where the data decide."""
    check_moments(coarsened[0].posterior.draws, *linear_rows(), POWER)
    narrow, wide = (np.diag(closed_form(*linear_rows(), power)[1]) for power in (1.0, POWER))
    assert np.all(wide > 4.0 * narrow)


@pytest.mark.statistics
def test_stored_log_densities_are_those_sampled(coarsened):
    model, _ = coarsened
    draws, rows = model.posterior.draws[:, ::10], linear_rows()
    stored = model.posterior.sample_stats["lp"][:, ::10]
    np.testing.assert_allclose(stored, model.log_prob(draws, *rows), rtol=1e-4)
    terms = model.log_prob(draws[0, 0], *rows, return_terms=True)
    whole = linear_model().log_prob(draws[0, 0], *rows, return_terms=True)
    assert terms["log_likelihood"] == pytest.approx(POWER * whole["log_likelihood"])
    assert terms["log_prior"] == whole["log_prior"]


@pytest.mark.statistics
def test_scores_have_the_noise_as_it_is(coarsened):
    model, run = coarsened
    x, y = linear_rows()
    found, stddev = model.predict(x, include_noise=True), model.predict(x).stddev
    np.testing.assert_allclose(found.stddev, np.hypot(stddev, NOISE), rtol=1e-5)
    pulls = []
    for row, (point, target) in enumerate(zip(x, y)):
        mean, covariance = closed_form(np.delete(x, row, 0), np.delete(y, row), POWER)
        line = np.append(point, 1.0)
        pulls.append((target - line @ mean) / np.sqrt(line @ covariance @ line + NOISE**2))
    (check,) = run.diagnosis.fit.rows.targets
    assert check.pull_width == pytest.approx(np.std(pulls), rel=0.03)


@pytest.mark.statistics
def test_everything_says_so(coarsened, tmp_path, capsys):
    model, run = coarsened
    path = tmp_path / "coarsened.h5"
    model.save(path)
    note = "likelihood_power=0.1: a coarsened posterior (Miller and Dunson 2019)"
    assert note in " ".join(run.report().split())
    assert any(note in entry for entry in run.to_dict()["notes"])
    for command in ("info", "diagnose"):
        assert main([command, str(path)]) == 0
        assert note in " ".join(capsys.readouterr().out.split())
        assert main([command, str(path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["coarsened"].startswith(note)
    loaded = tfbnn.load(path)
    assert loaded.spec == model.spec and loaded.spec.likelihood_power == POWER
    model.summary(print)
    assert "to the power 0.1" in capsys.readouterr().out


@pytest.mark.statistics
def test_the_next_fit_has_a_power_of_its_own(coarsened, tmp_path):
    """Also of a model that was loaded, and of baselines."""
    path = tmp_path / "coarsened.h5"
    coarsened[0].save(path)
    model, (x, y) = tfbnn.load(path), linear_rows()
    short_fit(model, x, y, num_results=5, num_burnin_steps=5, jit_compile=False)
    assert model.spec.likelihood_power == 1.0
    assert "likelihood_power" not in model.spec.to_json()
    model = tfbnn.load(path)
    model.fit_map(x, y, pretraining=START, verbose=0)
    assert model.spec.likelihood_power == 1.0


def test_searches_for_starts_aim_at_it():
    """The maximum of the density of a linear model is its mean, which Levenberg-Marquardt finds."""
    power, model, (x, y) = 1e-3, linear_model("float64"), linear_rows()
    start = tfbnn.Pretraining(epochs=0, newton_iterations=5)
    options = dict(pretraining=start, num_results=1, num_burnin_steps=0, jit_compile=False)
    run = short_fit(model, x, y, likelihood_power=power, **options)
    assert run.num_results == 1
    mean = closed_form(x, y, power)[0]
    np.testing.assert_allclose(run.start_log_prob, model.log_prob(mean, x, y), atol=1e-6)
    assert np.abs(mean - closed_form(x, y)[0]).max() > 0.1
