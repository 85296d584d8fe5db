"""Samplers on the networks of Papamarkou et al. 2019: 2-2-1 on XOR, 4-3-3 on iris.

    TFBNN_DATA=folder python benchmarks/xor_iris.py [--only ROW ...] [--quick --output FOLDER]

Ten chains on XOR under three priors, four on iris, each from its own draw of the prior; random
walk, MALA and NUTS, and the samplers of the paper that follow the curvature or temper. Rows are
kept as they finish, so that the script goes on where it was killed; tables and figure are
benchmarks/results/xor_iris.*. `--only xor` needs no data folder.

Reference: arXiv:1910.06539.
"""

import argparse
import dataclasses
import itertools
import time

import numpy as np
from chains import quiet
from class_problems import XOR, iris
from common import add_common_options, keep, output_folder
from store import Store
from xor_iris_report import figure, report

import tfbnn
from tfbnn import kernels
from tfbnn.diagnostics.statistics import geyer_ess, split_rhat
from tfbnn.likelihoods import Bernoulli, Categorical

# Iris rows whose predicted probabilities are compared.
NUM_COMPARED = 10


@dataclasses.dataclass(frozen=True)
class Sampler:
    """How to make the kernel, and how long its runs are.

    Attributes:
        make: Function () -> kernel. Kernels are in the coordinates of the weights, as in the paper.
        num_burnin_steps, num_results: Transitions per chain.
    """

    make: object
    num_burnin_steps: int = 10_000
    num_results: int = 100_000


# The tenth of the transitions: one of these costs ten to a hundred gradients.
SHORT = {"num_burnin_steps": 1000, "num_results": 10_000}
SAMPLERS = {
    "random walk": Sampler(lambda: kernels.RandomWalkMetropolis(preconditioner="identity")),
    "MALA": Sampler(lambda: kernels.MALA(preconditioner="identity")),
    "NUTS": Sampler(lambda: kernels.NUTS(preconditioner="identity", max_tree_depth=7), **SHORT),
    "SMMALA": Sampler(lambda: kernels.SMMALA(), **SHORT),
    "power posteriors of MALA": Sampler(
        lambda: kernels.PowerPosterior(
            kernels.MALA(preconditioner="identity"), num_temperatures=10, power=4
        ),
        **SHORT,
    ),
    "power posteriors of SMMALA": Sampler(
        lambda: kernels.PowerPosterior(kernels.SMMALA(), num_temperatures=10, power=4), **SHORT
    ),
}


@dataclasses.dataclass(frozen=True)
class Network:
    """A data set and its network.

    Attributes:
        load: Function () -> (inputs, labels).
        layers, likelihood: As for `BayesianMLP`.
        num_chains: Chains.
        prior_scales: Standard deviations of the priors, N(0, s^2) on every weight.
        max_draws: Longer runs are thinned: diagnosing predictions of all rows takes memory.
    """

    load: object
    layers: tuple
    likelihood: object
    num_chains: int
    prior_scales: tuple
    max_draws: int


NETWORKS = {
    "xor": Network(lambda: XOR, (2, 2, 1), Bernoulli(), 10, (1.0, 10.0**0.5, 10.0), 100_000),
    "iris": Network(iris, (4, 3, 3), Categorical(), 4, (1.0, 10.0**0.5), 10_000),
}


def measure(network, scale, sampler, shorten):
    """Runs one row; returns what tables and figure need, as JSON values."""
    x, y = network.load()
    model = tfbnn.BayesianMLP(
        network.layers,
        activation="sigmoid",
        prior=tfbnn.priors.Normal(scale),
        likelihood=network.likelihood,
        x_transform=None,
    )
    num_results = sampler.num_results // shorten
    stride = max(1, num_results // network.max_draws)
    began = time.perf_counter()
    with quiet():
        run = model.fit_posterior(
            x,
            y,
            kernel=sampler.make(),
            num_chains=network.num_chains,
            num_results=num_results // stride,
            num_steps_between_results=stride - 1,
            num_burnin_steps=sampler.num_burnin_steps // shorten,
            pretraining=None,
            verbose=0,
        )
        chosen = np.linspace(0, len(x) - 1, min(len(x), NUM_COMPARED)).astype(int)
        function, draws = model.predict_draws(x[chosen]), model.posterior.draws
    function = function.reshape(*draws.shape[:2], len(chosen), -1)[..., : network.layers[-1]]
    function = function.reshape(*draws.shape[:2], -1)
    seconds = run.seconds["warmup"] + run.seconds["sampling"]
    return {
        "parameters": draws.shape[-1],
        "num_chains": network.num_chains,
        "num_results": run.num_results,
        "stride": stride,
        "acceptance": float(run.acceptance_rate.mean()),
        "step_size": float(np.median(run.step_size)),
        "weights": convergence(draws, seconds),
        "predictions": convergence(function, seconds),
        "weight_covariance": covariance(draws),
        "prediction_covariance": covariance(function),
        "prediction_mean": function.mean(axis=(0, 1)).round(4).tolist(),
        "seconds": seconds,
        "total_seconds": time.perf_counter() - began,
    }


def convergence(draws, seconds):
    """Diagnostics of draws [C, S, Q] as the paper reports them; ESS is per chain."""
    folded = np.abs(draws - np.median(draws, axis=(0, 1)))
    sizes = geyer_ess(draws)
    return {
        "split_rhat": float(np.nanmax(split_rhat(draws))),
        "folded_split_rhat": float(np.nanmax(split_rhat(folded))),
        "ess": [float(f(sizes)) for f in (np.nanmin, np.nanmedian, np.nanmax)],
        "ess_per_second": float(len(draws) * np.nanmedian(sizes) / seconds),
    }


def covariance(draws):
    """Covariance over all chains of draws [C, S, Q], as nested lists."""
    pooled = draws.reshape(-1, draws.shape[-1]).astype(np.float64)
    return [[float(f"{value:.5g}") for value in row] for row in np.cov(pooled.T)]


def plan(only):
    """Dict key -> (network name, prior scale, sampler name), in the order of the table."""
    return {
        f"{name}, N(0, {scale**2:g} I), {sampler}": (name, scale, sampler)
        for name in only
        for scale, sampler in itertools.product(NETWORKS[name].prior_scales, SAMPLERS)
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--samplers", nargs="*", choices=SAMPLERS, default=list(SAMPLERS))
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("xor_iris", fresh=options.fresh, folder=folder)
    shorten = 100 if options.quick else 1
    for key, (name, scale, sampler) in plan(options.only).items():
        if key in store or sampler not in options.samplers:
            continue
        if options.quick and scale != 1.0:
            continue
        row = measure(NETWORKS[name], scale, SAMPLERS[sampler], shorten)
        store.add(key, {"network": name, "prior_scale": scale, "sampler": sampler, **row})
        print(key, row["weights"], f"{row['seconds']:.1f} s", flush=True)
    rows = [store.rows[key] for key in plan(NETWORKS) if key in store]
    keep("xor_iris.md", report(rows), folder)
    figure(rows, folder / "xor_iris.png")


if __name__ == "__main__":
    main()
