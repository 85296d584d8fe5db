"""The small run that tests of folders, processes and clusters make, stop and compare."""

import numpy as np
import pytest

import tfbnn
from tfbnn.kernels import HMC
from tfbnn.priors import Normal

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.sin(X[:, 0])
RUN = dict(
    kernel=HMC(num_leapfrog_steps=3),
    num_chains=2,
    num_results=40,
    num_burnin_steps=40,
    pretraining=tfbnn.Pretraining(epochs=3, batch_size=None, newton_iterations=0),
    seed=2,
    verbose=0,
)

# Where neither XLA nor the chains' quality matters: a third of the processor time.
BRIEF = RUN | dict(kernel=HMC(num_leapfrog_steps=1), num_burnin_steps=16, jit_compile=False)


def blocks_of(length):
    """A fixture of a module: blocks of so many transitions, and one program for runs of any length."""

    @pytest.fixture(scope="module", autouse=True)
    def blocks():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tfbnn.run.plan.block_length", lambda *_: length)
            yield

    return blocks


def small_model(**settings):
    return tfbnn.BayesianMLP([2, 3, 1], **({"prior": Normal(1.0)} | settings))


def small_fit(**options):
    """(model, run) of `fit_posterior` with RUN and what differs from it."""
    model = small_model()
    return model, model.fit_posterior(X, Y, **(RUN | options))


def brief_fit(**options):
    """The same with BRIEF."""
    return small_fit(**(BRIEF | options))


def assert_same_draws(model, other):
    """Draws and statistics, bit by bit."""
    np.testing.assert_array_equal(model.posterior.draws, other.posterior.draws)
    for name, values in other.posterior.sample_stats.items():
        np.testing.assert_array_equal(model.posterior.sample_stats[name], values)


def calm_model():
    """A model whose chains agree after some hundred draws of RUN: its targets are all but noise."""
    return small_model(likelihood=tfbnn.likelihoods.Gaussian(2.0), prior=tfbnn.priors.Normal(0.3))
