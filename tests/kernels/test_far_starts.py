"""Chains that climb far, in float32: the differences that decide acceptance keep their digits."""

import numpy as np
import pytest
import tensorflow_probability as tfp

from tests.support.linear import linear_model
from tfbnn import kernels
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal

NOISE = 1e-3
RUN = {"num_chains": 4, "num_burnin_steps": 400, "num_results": 300, "until": None}
RUN |= {"pretraining": None, "jit_compile": False, "seed": 1, "verbose": 0}


def hmc_with_its_own_adaptation(log_prob):
    kernel = tfp.mcmc.HamiltonianMonteCarlo(log_prob, step_size=1e-5, num_leapfrog_steps=8)
    return tfp.mcmc.DualAveragingStepSizeAdaptation(kernel, num_adaptation_steps=320)


OURS = kernels.HMC(num_leapfrog_steps=8, preconditioner="identity")


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(OURS, marks=pytest.mark.statistics),
        pytest.param(kernels.SMMALA(metric="gauss_newton"), marks=pytest.mark.slow),
        pytest.param(hmc_with_its_own_adaptation, marks=pytest.mark.slow),
    ],
    ids=["HMC", "SMMALA", "callable"],
)
def test_the_posterior_is_right_a_billion_nats_above_the_start(kernel):
    """A linear model, whose posterior is known; with log densities relative to the start its standard
    deviations were off by factors of 2 to 9."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((1000, 2))
    y = x @ [0.5, -0.3] + 0.2 + NOISE * generator.standard_normal(1000)
    rows = np.c_[x, np.ones(1000)]
    exact = np.sqrt(np.diag(np.linalg.inv(rows.T @ rows / NOISE**2 + np.eye(3))))
    settings = dict(prior=Normal(1.0), likelihood=Gaussian(NOISE), parameterization="standard")
    model = linear_model(**settings)
    run = model.fit_posterior(x, y, kernel=kernel, initial_state=1.0, **RUN)
    assert run.start_log_prob.max() < -1e9
    draws = model.posterior.draws.astype(float).reshape(-1, 3)
    np.testing.assert_allclose(draws.std(axis=0), exact, rtol=0.15)
    assert len(np.unique(model.posterior.sample_stats["lp"])) > 500
