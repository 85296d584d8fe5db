"""Sampled classifiers: one exact posterior, and labels in, labels out."""

import numpy as np
import pytest
from scipy import special

import tfbnn
from tfbnn import BayesianMLP
from tfbnn.likelihoods import Bernoulli, Categorical
from tfbnn.priors import Normal

pytestmark = pytest.mark.statistics
SPECIES = ("setosa", "versicolor", "virginica")


def fit(model, x, y, **settings):
    settings = {
        "kernel": tfbnn.kernels.HMC(num_leapfrog_steps=4),
        "pretraining": tfbnn.Pretraining(epochs=50, batch_size=None, learning_rate=0.05),
        "verbose": 0,
    } | settings
    return model.fit_posterior(x, y, **settings)


def test_logistic_regression_against_quadrature():
    """Posterior means of probabilities on three weights, by a sum over a grid."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(25, 2))
    y = generator.uniform(size=25) < special.expit(1.5 * x[:, 0] - x[:, 1] + 0.5)
    model = BayesianMLP([2, 1], prior=Normal(1.0), likelihood=Bernoulli(), x_transform=None)
    run = fit(model, x, y, num_chains=4, num_results=1000, num_burnin_steps=300)
    assert "Levenberg-Marquardt" in run.pretraining and run.notes == ()

    axis = np.linspace(-5.0, 5.0, 61)
    theta = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    logits = theta[:, :2] @ x.T + theta[:, 2:]
    log_density = special.log_expit(np.where(y, 1.0, -1.0) * logits).sum(axis=1)
    weights = special.softmax(log_density - 0.5 * (theta**2).sum(axis=1))
    points = np.array([[0.0, 0.0], [1.0, -1.0], [-2.0, 1.0], [0.5, 2.0]])
    expected = special.expit(theta[:, :2] @ points.T + theta[:, 2:])
    mean = weights @ expected
    stddev = np.sqrt(weights @ (expected - mean) ** 2)

    found = model.predict(points)
    # Of logits: trajectories that swing to the other side give these more than one effective draw
    # each, but not probabilities, which are no odd function of them.
    ess = np.minimum(model.diagnose(points).ess_function[:, 0], model.posterior.num_draws)
    error = stddev / np.sqrt(ess)
    assert np.all(np.abs(found.mean - mean) < 4 * error), (found.mean, mean, error)
    np.testing.assert_allclose(found.stddev, stddev, rtol=0.1)


def test_sampled_categorical(tmp_path):
    """Labels in, labels out; the sampled log density is `log_prob`, before and after a fit."""
    generator = np.random.default_rng(4)
    numbers = np.arange(60) % 3
    x = generator.normal(size=(60, 2)) + 4.0 * np.eye(3)[numbers][:, :2]
    y = np.array(SPECIES)[numbers]
    model = BayesianMLP([2, 4, 3], prior=Normal(1.0), likelihood=Categorical(), x_transform=None)
    fit(
        model, x[:45], y[:45], validation_data=(x[45:], y[45:]),
        pretraining=tfbnn.Pretraining(
            epochs=20, batch_size=15, learning_rate=0.05, newton_iterations=0
        ),
        num_chains=2, num_results=30, num_burnin_steps=30, jit_compile=False,
    )  # fmt: skip
    assert model.classes == SPECIES
    scores = model.evaluate(x[45:], y[45:])
    assert scores["accuracy"] > 0.8 and scores["log_predictive_density"] > -0.6
    draws, sampled = model.posterior.draws, model.posterior.sample_stats["lp"]
    found = model.log_prob(draws, x[:45], y[:45])
    np.testing.assert_allclose(found, sampled, rtol=0, atol=2e-3)
    unfitted = BayesianMLP([2, 4, 3], prior=Normal(1.0), likelihood=Categorical(), x_transform=None)
    np.testing.assert_allclose(unfitted.log_prob(draws, x[:45], numbers[:45]), found, rtol=1e-6)
    model.stack_chains(x[45:], y[45:])
    model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5")
    assert loaded.predict_classes(x).tolist() == model.predict_classes(x).tolist()
