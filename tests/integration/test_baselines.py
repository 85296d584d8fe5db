"""`fit_map`, `fit_ensemble` and `fit_laplace`: what they find, say, keep and refuse."""

import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.linear import NOISE, closed_form, linear_model, linear_rows
from tests.support.without_tensorflow import run_without_tensorflow
from tfbnn import Pretraining
from tfbnn.engine.basis import seeds
from tfbnn.fit.baselines import _settle
from tfbnn.likelihoods import Categorical, HeteroscedasticGaussian
from tfbnn.posterior.provenance import Provenance
from tfbnn.priors import Normal
from tfbnn.run.options import FitOptions
from tfbnn.spec.rows import rows_to_fit

FITS = ("fit_map", "fit_ensemble", "fit_laplace")
FEW = {"fit_map": {}, "fit_ensemble": {"num_members": 3}, "fit_laplace": {"num_results": 40}}
SHAPES = {"fit_map": (1, 1), "fit_ensemble": (3, 1), "fit_laplace": (1, 40)}
# Newton reaches the mode of a linear network in one step.
EXACT = Pretraining(epochs=1, batch_size=None, newton_iterations=20)
SHORT = Pretraining(epochs=3, batch_size=None, newton_iterations=2)
X, Y = linear_rows()
each_fit = pytest.mark.parametrize("fit", FITS)


def fitted(fit, model=None, x=X, y=Y, **settings):
    """(model, record) of a small baseline.

    In double precision, which some tests need: all share its programs.
    """
    model = model or tfbnn.BayesianMLP([2, 3, 1], dtype="float64")
    settings = FEW[fit] | {"pretraining": SHORT, "jit_compile": False, "verbose": 0} | settings
    return model, getattr(model, fit)(x, y, **settings)


@functools.cache
def shared(fit):
    """One that tests only look at."""
    return fitted(fit)


def quietly(function, *arguments, **settings):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The .* of this model are not sampled")
        return function(*arguments, **settings)


def test_noise_by_the_inputs_is_learned():
    x = np.linspace(-1.0, 1.0, 200)[:, None]
    noise = np.where(x > 0, 0.5, 0.05) * np.random.default_rng(0).normal(size=x.shape)
    model = tfbnn.BayesianMLP([1, 4, 2], likelihood=HeteroscedasticGaussian())
    record = quietly(model.fit_map, x, x + noise, pretraining=SHORT, jit_compile=False, verbose=0)
    assert "noise by the inputs" in record.start
    low, high = quietly(model.predict, np.array([[-0.8], [0.8]]), include_noise=True).stddev[:, 0]
    assert high > 3.0 * low


def test_noise_that_is_not_learned_is_told(monkeypatch):
    monkeypatch.setattr("tfbnn.engine.starts.newton_plan._BUDGET", 1.0)
    model = tfbnn.BayesianMLP([2, 3, 2], likelihood=HeteroscedasticGaussian())
    with pytest.warns(UserWarning, match="noise of these networks does not depend on the inputs"):
        record = model.fit_map(X, Y, pretraining=SHORT, jit_compile=False, verbose=0)
    assert "the noise is one scale" in record.start


def test_noise_by_the_inputs_is_not_that_of_few_rows_which_the_network_follows():
    """Without rows that judge it the noise went to zero where a network has more weights than rows."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=(1200, 5))
    y = (
        np.sin(x[:, 0])
        + 0.5 * x[:, 1]
        + np.where(x[:, 2] > 0, 0.4, 0.1) * generator.normal(size=1200)
    )
    model = tfbnn.BayesianMLP([5, 20, 2], likelihood=HeteroscedasticGaussian())
    steps = Pretraining(epochs=200, batch_size=32, newton_iterations=0)
    quietly(model.fit_map, x[:200], y[:200], pretraining=steps, verbose=0)
    assert quietly(model.evaluate, x[200:], y[200:])["log_predictive_density"] > -1.0


def test_networks_of_an_ensemble_have_starts_of_their_own():
    options = FitOptions(num_chains=3)
    x = np.linspace(-3.0, 3.0, 300)[:, None]
    spec = tfbnn.BayesianMLP([1, 5, 1]).asked
    rows, _ = rows_to_fit(spec, x, np.sin(4.0 * x[:, 0]), None, None)
    found = [_settle(spec, rows, None, fit, options).pretraining.largest_misfit for fit in FITS[:2]]
    assert found[0] is not None and found[1] is None


# Laplace of a linear model with known noise is the posterior.


@pytest.fixture(scope="module")
def exact():
    model, _ = fitted("fit_laplace", linear_model("float64"), num_results=5_000, pretraining=EXACT)
    return model


def test_laplace_has_the_mean_and_the_covariance_of_a_linear_posterior(exact):
    mean, covariance = closed_form(X, Y)
    np.testing.assert_allclose(exact._ensemble.mode, mean, rtol=1e-6)
    # Each draw is the mean plus the inverse transposed factor of the precision times z.
    factor = np.linalg.cholesky(np.linalg.inv(covariance))
    standard = (exact._ensemble.draws[0] - mean) @ factor
    expected = seeds.generator(0, "laplace", 0).standard_normal((5_000, 3))
    np.testing.assert_allclose(standard, expected, atol=1e-5)


def test_laplace_predicts_what_a_linear_posterior_does(exact):
    mean, covariance = closed_form(X, Y)
    design = np.column_stack([X[:7], np.ones(7)])
    spread = np.sqrt(np.einsum("np,pq,nq->n", design, covariance, design))
    found = quietly(exact.predict, X[:7])
    # Five standard errors of 5 000 draws.
    np.testing.assert_array_less(np.abs(found.mean - design @ mean), 5 * spread / np.sqrt(5_000))
    np.testing.assert_allclose(found.stddev, spread, rtol=5 / np.sqrt(10_000))
    noisy = quietly(exact.predict, X[:7], include_noise=True).stddev
    np.testing.assert_allclose(noisy, np.hypot(found.stddev, NOISE), rtol=1e-6)


@pytest.mark.statistics
def test_laplace_draws_the_noise_scale_by_its_information():
    model, _ = shared("fit_laplace")
    ensemble = model._ensemble
    size, noise = len(ensemble.mode), model.spec.layout.log_noise_scale.start
    mode = ensemble.mode[noise]
    # Two of every row, and the curvature of the half-normal prior.
    information = 2.0 * len(X) + 2.0 * np.exp(2.0 * mode)
    standard = seeds.generator(0, "laplace", 0).standard_normal((40, size))[:, noise]
    expected = mode + standard / np.sqrt(information)
    np.testing.assert_allclose(ensemble.draws[0, :, noise], expected, rtol=1e-9)


def test_laplace_covers_sampled_scales_in_ntk():
    """They sit in the network there; their draws must not all be the mode's."""
    model, _ = shared("fit_laplace")
    ensemble = model._ensemble
    assert ensemble.spec.parameterization == "ntk"
    scales = ensemble.draws[0, :, ensemble.spec.layout.log_noise_scale.stop :]
    assert (scales.std(axis=0) > 0.01).all()
    assert np.isfinite(quietly(model.predict, X).stddev).all()


@pytest.mark.statistics
def test_laplace_of_classes_averages_probabilities():
    labels = np.where(X[:, 0] > 0, "right", "left")
    model = tfbnn.BayesianMLP([2, 3, 2], prior=Normal(1.0), likelihood=Categorical())
    model, record = fitted("fit_laplace", model, y=labels)
    mean, stddev = quietly(model.predict, X)
    np.testing.assert_allclose(mean.sum(axis=1), 1.0)
    assert (stddev > 0).all() and "classified right" in record.report()


# What they leave.


def test_a_map_has_no_spread_but_its_noise():
    model, _ = shared("fit_map")
    mean, stddev = quietly(model.predict, X)
    noisy = quietly(model.predict, X, include_noise=True, space="transformed")
    noise = np.exp(model._ensemble.log_noise_scale[0, 0])
    assert np.ptp(mean) > 0 and not stddev.any()
    np.testing.assert_allclose(noisy.stddev, noise)


def test_members_are_different_networks_of_equal_weight():
    ensemble = shared("fit_ensemble")[0]._ensemble
    assert len(np.unique(ensemble.draws[..., 0])) == 3
    np.testing.assert_array_equal(ensemble.chain_weights, np.full(3, 1 / 3))
    assert np.isfinite(ensemble.sample_stats["lp"]).all()


def test_members_can_be_weighed_by_held_out_rows():
    model, _ = fitted("fit_ensemble")
    assert quietly(model.stack_chains, X + 0.01, Y).weights.sum() == pytest.approx(1.0)


@each_fit
def test_baselines_are_fitted_models(fit):
    model, record = shared(fit)
    assert model._ensemble.draws.shape[:2] == SHAPES[fit]
    assert quietly(model.predict, X).mean.shape == Y.shape
    assert np.isfinite(quietly(model.evaluate, X, Y)["log_predictive_density"])
    assert record.verdict == "not sampled" and record.log_prob.shape == (SHAPES[fit][0],)
    assert sum(record.seconds.values()) > 0


@each_fit
def test_the_label_is_everywhere(fit, tmp_path):
    model, record = shared(fit)
    assert record.label.startswith(f"{fit}: ")
    report = record.report(width=200)
    assert report.startswith("Verdict      not sampled") and record.label in report
    with pytest.warns(UserWarning, match=f"not sampled.*{fit}: "):
        tfbnn.BayesianMLP.from_ensemble(model._ensemble).predict(X)  # which has not warned yet
    quietly(model.save, tmp_path / "bnn.h5")
    assert tfbnn.load(tmp_path / "bnn.h5")._ensemble.provenance.not_sampled == record.label


_PREDICT = """
import json, sys, warnings
warnings.simplefilter("ignore")
import tfbnn
x = json.loads(sys.argv[2])
mean, stddev = tfbnn.load(sys.argv[1]).predict(x)
print(json.dumps([mean.tolist(), stddev.tolist()]))
"""


def test_they_predict_without_tensorflow(tmp_path):
    model, _ = shared("fit_laplace")
    quietly(model.save, tmp_path / "bnn.h5")
    found = run_without_tensorflow(_PREDICT, str(tmp_path / "bnn.h5"), str(X[:5].tolist()))
    np.testing.assert_allclose(found, tuple(quietly(model.predict, X[:5])), rtol=1e-5, atol=1e-9)


@each_fit
def test_the_same_seed_gives_the_same_bits(fit):
    again, other = (fitted(fit, seed=seed)[0]._ensemble.draws for seed in (0, 1))
    np.testing.assert_array_equal(again, shared(fit)[0]._ensemble.draws)
    assert not np.array_equal(other, again)


def test_the_best_of_several_starts_is_kept():
    model, record = fitted("fit_map", pretraining=Pretraining(**vars(SHORT) | {"num_starts": 3}))
    assert model._ensemble.draws.shape[:2] == (1, 1)
    assert "the best 1 of 3 starts" in record.report(width=500)


# Stops.


@each_fit
def test_a_callback_that_stops_leaves_what_was_found(fit):
    model = tfbnn.BayesianMLP([2, 3, 1], dtype="float64")
    with pytest.warns(UserWarning, match=f"{fit} was stopped early; the model has what was found"):
        _, record = fitted(fit, model, callbacks=[lambda event: True])
    assert record.stopped and record.label.startswith(f"{fit}, stopped early: ")
    assert np.isfinite(quietly(model.predict, X).mean).all()


def test_what_was_stopped_takes_no_posterior_away():
    """One that says nothing of where it is from."""
    sampled = replace(shared("fit_laplace")[0]._ensemble, provenance=Provenance())
    model = tfbnn.BayesianMLP.from_ensemble(sampled)
    posterior = model.posterior
    with pytest.warns(UserWarning, match="the model has its earlier posterior"):
        fitted("fit_map", model, callbacks=[lambda event: True])
    assert model.posterior is posterior
    fitted("fit_map", model)
    assert model._ensemble.provenance.not_sampled


def test_a_signal_during_the_last_step_leaves_the_network(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("tfbnn.engine.density.potential.gauss_newton_matrix", interrupted)
    model = tfbnn.BayesianMLP([2, 3, 1], dtype="float64")
    with pytest.raises(KeyboardInterrupt):
        fitted("fit_laplace", model)
    label = "fit_laplace, stopped early: 1 optimised network"
    assert model._ensemble.provenance.not_sampled == label
    assert model._ensemble.mode is None and np.isfinite(quietly(model.predict, X).mean).all()


def test_a_matrix_that_is_not_finite_is_refused(monkeypatch):
    monkeypatch.setattr(
        "tfbnn.engine.density.potential.gauss_newton_matrix",
        lambda spec, theta, data: np.full([len(theta)] * 2, np.nan),
    )
    with pytest.raises(tfbnn.StartError, match="not positive definite and finite"):
        fitted("fit_laplace")


@each_fit
def test_at_a_prompt_a_baseline_says_what_it_is_and_it_has_a_history(fit):
    _, record = shared(fit)
    assert repr(record).startswith(f"Baseline: not sampled, {record.label}\n")
    assert "Start" in record._repr_html_()
    assert list(record.history) == ["pretraining", "newton"]
    assert record.history["pretraining"]["epoch"][-1] == 3
