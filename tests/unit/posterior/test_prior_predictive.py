"""Draws of the prior and of rows by it, before and after a fit."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.support import infinite
from tests.support.builders import make_rows, synthetic_ensemble
from tfbnn import BayesianMLP, likelihoods, priors

X = make_rows(30, 2, 1)[0]


def plain(layers=(2, 1), **settings):
    defaults = dict(
        prior=priors.Normal(2.0),
        likelihood=likelihoods.Gaussian(0.5),
        x_transform=None,
        y_transform=None,
        parameterization="standard",
    )
    return BayesianMLP(list(layers), **(defaults | settings))


def test_a_linear_model_has_the_moments_of_its_prior():
    """f(x) is normal with variance 4 (1 + x^2): of 4000 draws within 4.5 standard errors."""
    draws = plain().sample_prior(X, num_results=4000, seed=1)
    assert draws.theta.shape == (4000, 3)
    assert draws.f.shape == draws.y.shape == (4000, 30, 1)
    variance = 4.0 * (1.0 + np.sum(X**2, axis=1))
    error = variance * np.sqrt(2.0 / 4000)
    assert np.all(np.abs(draws.f[..., 0].var(axis=0) - variance) < 4.5 * error)
    noise = draws.y - draws.f
    assert abs(noise.std() - 0.5) < 4.5 * 0.5 / np.sqrt(2 * noise.size)


def test_the_same_seed_gives_the_same_draws_and_more_of_them_begin_alike():
    few, many = (plain().sample_prior(X, num_results=count) for count in (3, 5))
    np.testing.assert_array_equal(few.theta, many.theta[:3])
    np.testing.assert_array_equal(few.f, many.f[:3])
    assert not np.array_equal(few.theta, plain().sample_prior(X, num_results=3, seed=1).theta)


def test_before_a_fit_inputs_are_standardised_by_what_is_given():
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    given = plain(x_transform="standardize").sample_prior(X, num_results=4)
    np.testing.assert_allclose(
        given.f, plain().sample_prior(standardised, num_results=4).f, rtol=1e-5, atol=1e-5
    )


def test_before_a_fit_text_is_refused():
    frame = pd.DataFrame({"a": X[:, 0], "b": ["u", "v"] * (len(X) // 2)})
    with pytest.raises(TypeError, match="before a fit needs numbers in x, received text"):
        plain().sample_prior(frame)


def test_functions_of_infinite_width_have_streams_of_their_own():
    """Those of the second target do not follow the scales that were drawn for them."""
    draws = infinite.model(2, prior=infinite.SCALES).sample_prior(X[:2], num_results=400)
    scales = draws.theta[:, 2:]
    for target in range(2):
        ranks = stats.spearmanr(np.abs(draws.f[:, 0, target]), scales).statistic[0, 1:]
        assert np.all(np.abs(ranks[:1]) < 0.35), ranks


def test_after_a_fit_targets_are_in_its_units():
    ensemble = synthetic_ensemble(y_transform=["log10", "standardize"], vector_target=True)
    draws = BayesianMLP.from_ensemble(ensemble).sample_prior(X, num_results=6)
    assert draws.f.shape == draws.y.shape == (6, 30)
    assert np.all(draws.f > 0) and np.all(draws.y > 0)


@pytest.mark.parametrize(
    ("likelihood", "outputs", "columns"),
    [(likelihoods.Categorical(), 3, 3), (likelihoods.Bernoulli(), 2, 2)],
)
def test_classes_are_drawn_by_their_probabilities(likelihood, outputs, columns):
    draws = plain((2, outputs), likelihood=likelihood).sample_prior(X, num_results=2000)
    assert draws.f.shape == (2000, 30, columns)
    if outputs == 3:
        np.testing.assert_allclose(draws.f.sum(axis=-1), 1.0, rtol=1e-6)
        shares = np.stack([np.mean(draws.y[..., 0] == k) for k in range(3)])
        np.testing.assert_allclose(shares, draws.f.mean(axis=(0, 1)), atol=0.02)
    else:
        np.testing.assert_allclose(draws.y.mean(axis=0), draws.f.mean(axis=0), atol=0.06)


@pytest.mark.parametrize("name", ["HierarchicalNormal", "ARD", "Laplace", "Uniform"])
def test_every_prior_is_drawn(name):
    prior = priors.Uniform(-1.0, 1.0) if name == "Uniform" else getattr(priors, name)()
    if name == "ARD":
        prior = [{"kernel": prior, "bias": priors.Normal()}, priors.Normal()]
    draws = plain((2, 3, 1), prior=prior).sample_prior(X, num_results=50)
    assert np.isfinite(draws.f).all() and np.all(draws.f.std(axis=0) > 0)
