"""Bad settings of predictions and bad theta; what all refusals start from is good."""

import numpy as np
import pytest

from tests.support.entries import NOISE, THETA, X, Y, evaluate, fake_fit, predict, refuses
from tfbnn import BayesianMLP
from tfbnn.likelihoods import Gaussian


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"quantiles": [0.0]}, ValueError, ["quantiles", "> 0 and < 1", "0.0"]),
        ({"quantiles": [0.5, 1.0]}, ValueError, ["quantiles", "> 0 and < 1", "1.0"]),
        ({"quantiles": [np.nan]}, ValueError, ["quantiles", "> 0 and < 1"]),
        ({"quantiles": "median"}, TypeError, ["quantiles", "number", "'median'"]),
        ({"quantiles": [[0.1, 0.9]]}, TypeError, ["quantiles", "number"]),
        ({"quantiles": True}, TypeError, ["quantiles", "number", "True"]),
        ({"space": "log"}, ValueError, ["space", "original", "transformed", "'log'"]),
        ({"include_noise": "no"}, TypeError, ["include_noise", "True or False", "'no'"]),
        ({"return_trust": "yes"}, TypeError, ["return_trust", "True or False"]),
    ],
    ids=str,
)
def test_bad_settings_of_predict_are_refused(settings, error, words, fitted, engine):
    refuses(lambda: fitted.predict(X, **settings), fitted, engine, error, words)
    if "space" in settings:
        refuses(lambda: fitted.predict_draws(X, **settings), fitted, engine, error, words)


@pytest.mark.parametrize(
    ("theta", "error", "words"),
    [
        (THETA[:-1], ValueError, ["[..., 22]", "[21]"]),
        (THETA[:, None], ValueError, ["[..., 22]", "[22, 1]"]),
        (1.0, ValueError, ["[..., 22]", "[]"]),
        ([], ValueError, ["[..., 22]", "[0]"]),
        (None, (TypeError, ValueError), []),
        # What is no number is tested with x, in tests/unit/data/test_bad_rows.py.
        (THETA.astype(str), TypeError, ["real numbers"]),
        (np.ma.masked_less(THETA, 0), TypeError, ["masked"]),
    ],
    ids=["short", "column", "number", "empty", "None", "strings", "masked"],
)
def test_bad_theta_is_refused(theta, error, words, fitted, engine):
    refuses(lambda: fitted.log_prob(theta, X, Y), fitted, engine, error, ["theta", *words])


@pytest.mark.tensorflow
def test_no_draws_of_theta_have_no_densities(fitted):
    assert fitted.log_prob(np.zeros((0, 22)), X, Y).shape == (0,)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("noise_scale", "known"),
    [(0.1, None), (0.1, NOISE), ("learned", None), ("learned", NOISE)],
    ids=["fixed", "fixed, known", "learned", "learned, known"],
)
def test_the_reference_case_is_accepted_everywhere(noise_scale, known, engine):
    """The rows that all refusals above start from are good."""
    model = BayesianMLP([2, 5, 1], likelihood=Gaussian(noise_scale))
    fake_fit(model, noise_scale=known, validation_data=(X, Y, known))
    assert len(engine.calls) == 1
    assert np.isfinite(predict(model, noise=known).stddev).all()
    assert np.isfinite(evaluate(model, noise=known)["crps"])
    theta = np.zeros(model.spec.layout.num_parameters)
    assert np.isfinite(model.log_prob(theta, X, Y, noise_scale=known))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda model: model.log_prob(model.posterior.draws, X, Y), "log_prob"),
        (lambda model: model.predict(X, include_noise=True), "include_noise=True"),
        (lambda model: model.predict_distribution(X), "predict_distribution"),
        (lambda model: model.evaluate(X, Y), "evaluate"),
        (lambda model: model.stack_chains(X, Y), "stack_chains"),
    ],
)
def test_after_a_fit_with_row_noise_rows_need_it(call, name, synthetic_ensemble):
    model = BayesianMLP.from_ensemble(synthetic_ensemble(row_noise=True))
    assert np.isfinite(model.predict(X).mean).all()
    with pytest.raises(ValueError, match=f"{name} needs noise_scale, received None"):
        call(model)
