"""Samplers on the networks of Papamarkou et al. 2019: 2-2-1 on XOR, 4-3-3 on iris.

    TFBNN_DATA=folder python -m benchmarks xor_iris [--only ROW ...] [--quick --output FOLDER]

Ten chains on XOR under three priors, four on iris, each from its own draw of the prior; random
walk, MALA and NUTS, and the samplers of the paper that follow the curvature or temper. On XOR also a
narrow prior with a mean, whose effective sample sizes mislead, and a uniform one. Rows are kept as they finish, so that the script goes on where it was killed; tables and figure are
benchmarks/results/xor_iris.*. `--only xor` needs no data folder.

Reference: arXiv:1910.06539.
"""

import argparse
import dataclasses
import time

import numpy as np

import tfbnn
from benchmarks.lib.chains import quiet
from benchmarks.lib.class_problems import XOR, iris
from benchmarks.lib.common import add_common_options, keep, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.xor_iris.report import figure, report
from tfbnn import kernels
from tfbnn.diagnostics.ranks import fold, normal_scores
from tfbnn.diagnostics.statistics import geyer_ess, split_rhat
from tfbnn.likelihoods import Bernoulli, Categorical
from tfbnn.priors import Normal, Uniform

# Iris rows whose predicted probabilities are compared.
NUM_COMPARED = 10


@dataclasses.dataclass(frozen=True)
class Sampler:
    """Recipe of a kernel, and the length of its runs.

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
    "truncated MALA": Sampler(lambda: kernels.TruncatedMALA(preconditioner="identity")),
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


# Of normal priors with mean zero; truncated MALA is the MALA of a box.
USUAL = tuple(name for name in SAMPLERS if name != "truncated MALA")


@dataclasses.dataclass(frozen=True)
class Prior:
    """A prior of all weights, and what samples under it."""

    prior: object
    samplers: tuple = USUAL


@dataclasses.dataclass(frozen=True)
class Network:
    """A data set and its network.

    Attributes:
        load: Function () -> (inputs, labels).
        layers, likelihood: As for `BayesianMLP`.
        num_chains: Chains.
        priors: Dict of name, as tables have it -> Prior.
        max_draws: Longer runs are thinned: diagnosing predictions of all rows takes memory.
    """

    load: object
    layers: tuple
    likelihood: object
    num_chains: int
    priors: dict
    max_draws: int


def centred(*variances):
    """N(0, v I) for each variance."""
    return {f"N(0, {v:g} I)": Prior(Normal(v**0.5)) for v in variances}


ON_XOR = centred(1, 10, 100) | {
    "N(2, 0.25 I)": Prior(Normal(0.5, loc=2.0), ("MALA", "NUTS")),
    "U(-10, 10)": Prior(Uniform(-10.0, 10.0), ("truncated MALA", "NUTS")),
}
NETWORKS = {
    "xor": Network(lambda: XOR, (2, 2, 1), Bernoulli(), 10, ON_XOR, 100_000),
    "iris": Network(iris, (4, 3, 3), Categorical(), 4, centred(1, 10), 10_000),
}


def measure(network, prior, sampler, shorten):
    """Runs one row; returns what tables and figure need, as JSON values."""
    x, y = network.load()
    model = tfbnn.BayesianMLP(
        network.layers,
        activation="sigmoid",
        prior=prior,
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
    folded = np.moveaxis(normal_scores(fold(np.moveaxis(draws, -1, 0))), 0, -1)
    sizes = geyer_ess(draws)
    return {
        "split_rhat": float(np.nanmax(split_rhat(draws))),
        "folded_split_rhat": float(np.nanmax(split_rhat(folded))),
        "psrf": psrf(draws.astype(np.float64)),
        "ess": [float(f(sizes)) for f in (np.nanmin, np.nanmedian, np.nanmax)],
        "ess_per_second": float(len(draws) * np.nanmedian(sizes) / seconds),
    }


def psrf(draws):
    """The multivariate potential scale reduction factor of draws [C, S, Q]; Brooks and Gelman 1998, section 4.

    It is (S - 1) / S + (C + 1) / C times the largest eigenvalue of W^-1 B / S, W the covariance within chains and B / S
    that of their means, which compares the worst linear combination of the quantities.
    """
    num_chains, num_draws = draws.shape[:2]
    means = draws.mean(axis=1)
    within = np.mean([np.cov(chain.T) for chain in draws], axis=0)
    variances, axes = np.linalg.eigh(np.atleast_2d(within))
    known = variances > 1e-10 * variances[-1]  # probabilities of classes add up to one
    whitened = (means @ axes)[:, known] / np.sqrt(variances[known])
    ratio = np.linalg.eigvalsh(np.atleast_2d(np.cov(whitened.T)))[-1]
    return float((num_draws - 1) / num_draws + (num_chains + 1) / num_chains * ratio)


def covariance(draws):
    """Covariance over all chains of draws [C, S, Q], as nested lists."""
    pooled = draws.reshape(-1, draws.shape[-1]).astype(np.float64)
    return [[float(f"{value:.5g}") for value in row] for row in np.cov(pooled.T)]


def plan(only):
    """Dict key -> (network name, name of the prior, sampler name), in the order of the table."""
    return {
        f"{name}, {label}, {sampler}": (name, label, sampler)
        for name in only
        for label, prior in NETWORKS[name].priors.items()
        for sampler in prior.samplers
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
    for key, (name, label, sampler) in plan(options.only).items():
        if key in store or sampler not in options.samplers:
            continue
        if options.quick and label in ("N(0, 10 I)", "N(0, 100 I)"):
            continue
        network = NETWORKS[name]
        row = measure(network, network.priors[label].prior, SAMPLERS[sampler], shorten)
        store.add(key, {"network": name, "prior": label, "sampler": sampler, **row})
        print(key, row["weights"], f"{row['seconds']:.1f} s", flush=True)
    rows = [
        store.rows[key] | {"prior": label}
        for key, (_, label, _) in plan(NETWORKS).items()
        if key in store
    ]
    keep("xor_iris.md", report(rows), folder)
    figure(rows, folder / "xor_iris.png")


if __name__ == "__main__":
    main()
