"""Bad settings of predictions and bad theta; what all refusals start from is good."""

import numpy as np
import pytest
from scipy import sparse

from tests.support.entries import NOISE, THETA, X, Y, evaluate, fake_fit, predict, ragged, refuses
from tfbnn import BayesianMLP
from tfbnn.likelihoods import Gaussian


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"quantiles": [0.0]}, ValueError, ["quantiles", "> 0 and < 1", "0.0"]),
        ({"quantiles": [0.5, 1.0]}, ValueError, ["quantiles", "> 0 and < 1", "1.0"]),
        ({"quantiles": 84}, ValueError, ["quantiles", "> 0 and < 1", "84"]),
        ({"quantiles": -0.1}, ValueError, ["quantiles", "> 0 and < 1"]),
        ({"quantiles": [np.nan]}, ValueError, ["quantiles", "> 0 and < 1"]),
        ({"quantiles": "median"}, TypeError, ["quantiles", "number", "'median'"]),
        ({"quantiles": [[0.1, 0.9]]}, TypeError, ["quantiles", "number"]),
        ({"quantiles": True}, TypeError, ["quantiles", "number", "True"]),
        ({"space": "log"}, ValueError, ["space", "original", "transformed", "'log'"]),
        ({"space": None}, TypeError, ["space", "original", "transformed", "None"]),
        ({"include_noise": "no"}, TypeError, ["include_noise", "True or False", "'no'"]),
        ({"include_noise": None}, TypeError, ["include_noise", "True or False", "None"]),
    ],
    ids=str,
)
def test_bad_settings_of_predict_are_refused(settings, error, words, fitted, engine):
    refuses(lambda: fitted.predict(X, **settings), fitted, engine, error, words)


def test_a_bad_space_of_predict_draws_is_refused(fitted, engine):
    refuses(
        lambda: fitted.predict_draws(X, space="log10"),
        fitted,
        engine,
        ValueError,
        ["space", "original", "transformed", "'log10'"],
    )


@pytest.mark.parametrize(
    ("theta", "error", "words"),
    [
        (THETA[:-1], ValueError, ["[..., 22]", "[21]"]),
        (THETA[:, None], ValueError, ["[..., 22]", "[22, 1]"]),
        (1.0, ValueError, ["[..., 22]", "[]"]),
        ([], ValueError, ["[..., 22]", "[0]"]),
        (None, (TypeError, ValueError), []),
        (THETA + 0j, TypeError, ["complex"]),
        (THETA.astype(str), TypeError, ["real numbers"]),
        (["a"] * 22, TypeError, ["real numbers"]),
        (THETA > 0, TypeError, ["booleans"]),
        (THETA.astype("M8[s]"), TypeError, ["dates"]),
        (ragged(), TypeError, ["rectangular"]),
        (np.ma.masked_less(THETA, 0), TypeError, ["masked"]),
        (sparse.csr_matrix(THETA), TypeError, ["sparse"]),
    ],
    ids=[
        "short",
        "column",
        "number",
        "empty",
        "None",
        "complex",
        "strings",
        "list of strings",
        "booleans",
        "dates",
        "ragged",
        "masked",
        "sparse",
    ],
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


def test_log_prob_after_a_fit_with_row_noise_needs_row_noise(synthetic_ensemble):
    ensemble = synthetic_ensemble(row_noise=True)
    model = BayesianMLP.from_ensemble(ensemble)
    with pytest.raises(ValueError, match="log_prob needs noise_scale"):
        model.log_prob(ensemble.draws, np.zeros((3, 2)), np.ones(3))
