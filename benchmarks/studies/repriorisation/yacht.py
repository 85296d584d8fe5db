"""Collapsed HMC with a learned noise scale on the 20 splits of yacht."""

import time

import tfbnn
from benchmarks.lib.chains import quiet
from benchmarks.lib.problems import NTK, adam, uci
from tfbnn.kernels import HMC, Repriorised

__all__ = ["measure_split"]

NUM_CHAINS = 2


def measure_split(split, num_burnin_steps, num_results):
    """Fits one split; returns scores in the units of the target, as JSON values."""
    problem = uci("yacht", split)
    model = tfbnn.BayesianMLP(
        [6, 50, 1],
        activation="tanh",
        likelihood=tfbnn.likelihoods.Gaussian("learned"),
        **NTK | {"y_transform": "standardize"},
    )
    began = time.perf_counter()
    with quiet():
        run = model.fit_posterior(
            *problem.train,
            kernel=Repriorised(HMC(num_leapfrog_steps=32), collapse_readout=True),
            num_chains=NUM_CHAINS,
            num_results=num_results,
            num_burnin_steps=num_burnin_steps,
            pretraining=adam(300),
            verbose=0,
        )
        seconds = time.perf_counter() - began
        found = model.evaluate(*problem.test)
    return {
        "rmse": found["rmse"],
        "log_predictive_density": found["log_predictive_density"],
        "n_effective": found["n_effective"],
        "acceptance": run.acceptance_rate.tolist(),
        "num_divergent": run.num_divergent.tolist(),
        "seconds": round(seconds, 1),
    }
