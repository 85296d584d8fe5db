"""Fits whose posterior of the inputs' prior scales is known: of a linear network, by quadrature."""

import numpy as np
import pytest
from scipy import stats

import tfbnn
from tests.support.builders import plain_spec
from tfbnn.kernels import HMC
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import ARD, LogNormal, Normal

pytestmark = pytest.mark.statistics

NUM_ROWS, NOISE = 40, 0.5
SCALE_PRIOR = LogNormal(0.0, 1.5)
# What the first input says of three targets; the second says nothing.
EFFECTS = np.array([[1.2, -0.8, 0.5], [0.0, 0.0, 0.0]])


def rows():
    """Inputs that are orthogonal to each other and to a constant, so that each acts by itself."""
    generator = np.random.default_rng(8)
    columns = np.column_stack([np.ones(NUM_ROWS), generator.normal(size=(NUM_ROWS, 2))])
    x = np.linalg.qr(columns)[0][:, 1:] * np.sqrt(NUM_ROWS)
    return x, x @ EFFECTS + NOISE * generator.normal(size=(NUM_ROWS, 3))


def exact_cdf(x, y, factor, log_scales):
    """Distribution function of both log scales on a grid [n]: [2, n]; weights are integrated out."""
    estimates = x.T @ y / NUM_ROWS  # [2, 3], with variance NOISE^2 / NUM_ROWS
    scales = np.exp(log_scales)
    spread = np.sqrt((factor * scales) ** 2 + NOISE**2 / NUM_ROWS)
    terms = stats.norm.logpdf(estimates[..., None], 0.0, spread).sum(axis=1)
    density = np.exp(terms + stats.norm.logpdf(log_scales, SCALE_PRIOR.loc, SCALE_PRIOR.scale))
    return np.cumsum(density, axis=1) / density.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "parameterization", ["standard", pytest.param("ntk", marks=pytest.mark.slow)]
)
def test_scales_have_their_exact_posterior_and_the_idle_input_the_smaller(parameterization):
    """Shares of draws below exact quantiles.

    With 300 effective draws a share of one half has a standard error of .03, five of which are
    allowed: false alarms below 1e-5 for each of six. Scales that were swapped, or one for both
    inputs, would put all or none of the draws below some of them.
    """
    x, y = rows()
    prior = [{"kernel": ARD(SCALE_PRIOR), "bias": Normal(1.0)}]
    spec = plain_spec(
        [2, 3], prior=prior, likelihood=Gaussian(NOISE), parameterization=parameterization
    )
    model = tfbnn.BayesianMLP.from_spec(spec)
    model.fit_posterior(
        x, y, kernel=HMC(num_leapfrog_steps=12, preconditioner="diagonal"), num_chains=2,
        num_results=1500, num_burnin_steps=500, pretraining=None, seed=2, verbose=0,
    )  # fmt: skip
    grid = np.linspace(-12.0, 8.0, 4001)
    factor = 1.0 if parameterization == "standard" else 0.5**0.5
    exact = exact_cdf(x, y, factor, grid)
    draws = model.posterior.draws[..., spec.layout.layers[0].kernel.scales].reshape(-1, 2)
    found = model.relevance()
    for index in range(2):
        quantiles = np.interp([0.16, 0.5, 0.84], exact[index], grid)
        shares = np.mean(draws[:, index, None] < quantiles, axis=0)
        np.testing.assert_allclose(shares, [0.16, 0.5, 0.84], atol=0.15)
        # The same by what users see: the quantiles lie where the exact ones do.
        np.testing.assert_allclose(np.log(found.median[index]), quantiles[1], atol=0.4)
    assert found.upper[1] < found.lower[0]
