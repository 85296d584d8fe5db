"""A network without hidden layer, whose posterior and evidence are known, and short fits of it."""

import numpy as np
from scipy import stats

import tfbnn
from tfbnn.diagnostics.statistics import mcse_mean
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal

NOISE, PRIOR = 0.5, 1.5
# Of fits whose draws are compared with the posterior, from starts near its mode.
RUN = dict(num_chains=2, num_results=3000, num_burnin_steps=500, verbose=0, seed=3)
START = tfbnn.Pretraining(epochs=50, batch_size=None, learning_rate=0.05)


def linear_rows(num_rows=30):
    generator = np.random.default_rng(11)
    x = generator.normal(size=(num_rows, 2)) * [1.0, 2.0]
    return x, x @ [0.7, -0.4] + 0.3 + NOISE * generator.normal(size=num_rows)


def linear_model(dtype="float32", layers=(2, 1), **settings):
    """Return a model of rows without transforms; its posterior is known unless settings change it."""
    known = dict(prior=Normal(PRIOR), likelihood=Gaussian(NOISE))
    raw = dict(x_transform=None, y_transform=None, dtype=dtype)
    return tfbnn.BayesianMLP([*layers], **(known | raw | settings))


def closed_form(x, y, power=1.0):
    """Posterior mean and covariance of (kernel, bias) of the linear model.

    With the likelihood to a power, which with known noise is noise of variance NOISE^2 / power.
    """
    design, variance = np.column_stack([x, np.ones(len(x))]), NOISE**2 / power
    covariance = np.linalg.inv(design.T @ design / variance + np.eye(3) / PRIOR**2)
    return covariance @ design.T @ y / variance, covariance


def check_moments(draws, x, y, power=1.0):
    """Means and variances of draws [C, S, P] within 4.5 MCSE of those in closed form."""
    draws = draws.astype(np.float64)
    mean, covariance = closed_form(x, y, power)
    deviation = draws - mean
    assert np.all(np.abs(deviation.mean(axis=(0, 1))) < 4.5 * mcse_mean(draws))
    error = (deviation**2).mean(axis=(0, 1)) - np.diag(covariance)
    assert np.all(np.abs(error) < 4.5 * mcse_mean(deviation**2))


def short_fit(model, x, y, **options):
    settings = dict(
        kernel=tfbnn.kernels.HMC(num_leapfrog_steps=4),
        num_chains=2,
        num_results=20,
        num_burnin_steps=30,
        pretraining=None,
        verbose=0,
    )
    return model.fit_posterior(x, y, **(settings | options))


def conjugate_evidence(x, y):
    """log p(y) of the linear model."""
    design = np.column_stack([x, np.ones(len(x))])
    covariance = NOISE**2 * np.eye(len(x)) + PRIOR**2 * design @ design.T
    return stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance)
