"""A real fit of short blocks with a commit after each, so that kills meet every part of the work.

    python -m tests.support.durability.fit_to_kill FOLDER

goes on with it in a folder, or begins it there.
"""

import sys

import numpy as np

import tfbnn
from tfbnn.run import plan

ROWS = np.random.default_rng(0).normal(size=(20, 2))
SETTINGS = dict(
    kernel=tfbnn.kernels.RandomWalkMetropolis(),
    num_chains=2,
    num_results=1000,
    num_burnin_steps=100,
    pretraining=None,
    jit_compile=False,
    seed=5,
    verbose=0,
)


def fit(**options):
    model = tfbnn.BayesianMLP([2, 2, 1], prior=tfbnn.priors.Normal(1.0))
    model.fit_posterior(ROWS, np.tanh(ROWS[:, 0]), **SETTINGS, **options)
    return model


if __name__ == "__main__":
    plan.block_length = lambda *_: 8
    fit(output=sys.argv[1], resume=True, commit_interval=0)
