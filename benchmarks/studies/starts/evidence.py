"""Log evidence of cooled populations and of stepping stones, against quadrature.

    python benchmarks/studies/starts/evidence.py [--seeds 5] [--quick --output FOLDER]

Four small models of given noise, all weights with a standard normal prior. Quadrature is over the weights
that the outputs are not linear in; the others are integrated in closed form. Populations of 64 particles,
whose error is estimated from the two; stepping stones of the default ladder. Each seed has rows of its own.
"""

import argparse
import itertools
import time

import numpy as np
from scipy.special import logsumexp, softplus
from scipy.stats import norm

import tfbnn
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from tfbnn.engine.density.data import make_data
from tfbnn.engine.starts import cooling
from tfbnn.kernels import PowerPosterior
from tfbnn.likelihoods import Bernoulli, Gaussian
from tfbnn.priors import Normal
from tfbnn.run.options import Sampling

NUM_PARTICLES = 64
FARTHEST = 5.0  # Quadrature goes so many standard deviations of the prior far.


def line(seed):
    x, noise = inputs(20, seed), 0.1
    y = 0.7 * x - 0.3 + noise * normals(20, seed)
    return (
        [1, 1],
        Gaussian(noise),
        x,
        y,
        log_marginal(np.stack([x, np.ones(20)])[None], y, noise)[0],
    )


def one_unit(seed):
    x, noise = inputs(20, seed), 0.1
    y = 1.5 * np.tanh(1.2 * x + 0.4) - 0.5 + noise * normals(20, seed)
    return [1, 1, 1], Gaussian(noise), x, y, of_hidden_units(x, y, noise, 1, 401)


def two_units(seed):
    x, noise = inputs(12, seed), 0.3
    y = np.tanh(2.0 * x + 1.0) - np.tanh(2.0 * x - 1.0) + noise * normals(12, seed)
    return [1, 2, 1], Gaussian(noise), x, y, of_hidden_units(x, y, noise, 2, 41)


def two_classes(seed):
    x = inputs(30, seed)
    labels = (1.5 * x - 0.5 + np.random.default_rng([seed, 3]).logistic(size=30) > 0).astype(int)
    grid = np.linspace(-FARTHEST, FARTHEST, 801)
    slope, constant = np.meshgrid(grid, grid, indexing="ij")
    logits = slope[..., None] * x + constant[..., None]
    logs = np.sum(labels * logits - softplus(logits), axis=-1)
    logs += norm.logpdf(slope) + norm.logpdf(constant)
    return [1, 1], Bernoulli(), x, labels, logsumexp(logs) + 2.0 * np.log(grid[1] - grid[0])


CASES = {
    "a line, noise .1": line,
    "one hidden unit, noise .1": one_unit,
    "two hidden units, noise .3": two_units,
    "two classes": two_classes,
}


def inputs(count, seed):
    return np.random.default_rng([seed, 1]).uniform(-2.0, 2.0, count)


def normals(count, seed):
    return np.random.default_rng([seed, 2]).normal(size=count)


def log_marginal(features, y, noise):
    """log p(y) [m] of models that are linear in features [m, k, N]."""
    scaled, target = features / noise, y / noise
    precision = scaled @ scaled.swapaxes(1, 2) + np.eye(features.shape[1])
    along = scaled @ target
    explained = np.sum(along * np.linalg.solve(precision, along[..., None])[..., 0], axis=1)
    _, log_determinant = np.linalg.slogdet(precision)
    return -0.5 * (
        target @ target - explained + log_determinant + len(y) * np.log(2.0 * np.pi * noise**2)
    )


def of_hidden_units(x, y, noise, count, num_nodes):
    """log p(y) of a network of so many tanh units: quadrature over what is inside of them."""
    grid = np.linspace(-FARTHEST, FARTHEST, num_nodes)
    weights = norm.logpdf(grid) + np.log(grid[1] - grid[0])
    hidden = np.tanh(grid[:, None, None] * x + grid[:, None]).reshape(-1, len(x))
    inside = np.add.outer(weights, weights).ravel()
    # Units are alike, so that each of their sets is seen once.
    found = []
    for first in range(len(hidden) if count == 2 else 1):
        mine = hidden[:, None] if count == 1 else pairs(hidden, first)
        features = np.concatenate([mine, np.ones([len(mine), 1, len(x)])], axis=1)
        logs = log_marginal(features, y, noise) + inside[first if count == 2 else 0 :]
        if count == 2:
            logs += inside[first] + np.log(2.0) * (np.arange(len(mine)) > 0)
        found.append(logsumexp(logs))
    return logsumexp(found)


def pairs(hidden, first):
    """Features [m, 2, N] of one unit beside each that is no earlier."""
    others = hidden[first:]
    return np.stack([np.broadcast_to(hidden[first], others.shape), others], axis=1)


def measure(name, seed, quick):
    """Run populations and stepping stones on one case, and return a dict of what they find."""
    layers, likelihood, x, y, truth = CASES[name](seed)
    model = tfbnn.BayesianMLP(
        layers,
        prior=Normal(1.0),
        likelihood=likelihood,
        parameterization="standard",
        x_transform=None,
        y_transform=None,
    )
    spec = model.asked.for_rows(x[:, None], y, "refuse")
    data = make_data(x[:, None], y[:, None].astype(float), None, spec.dtype)
    began, index = time.perf_counter(), 0
    population = cooling.hot(spec, data, 8 if quick else NUM_PARTICLES, seed)
    while population.temperature:
        population = cooling.cooler(spec, data, population, Sampling(seed=seed), index)
        index += 1
    cooled = time.perf_counter() - began
    lengths = dict(num_chains=2, num_results=50, num_burnin_steps=50) if quick else {}
    began = time.perf_counter()
    run = model.fit_posterior(
        x[:, None], y, kernel=PowerPosterior(), seed=seed, verbose=0, pretraining=None, **lengths
    )
    stones = run.log_evidence.to_dict()["stepping_stone"]
    return {
        "truth": truth,
        "populations": population.log_evidence,
        "stones": (stones["value"], stones["stderr"]),
        "seconds": (cooled, time.perf_counter() - began),
    }


def line_of(name, seed, row):
    errors = row["populations"] - row["truth"]
    value, stderr = row["stones"]
    return [
        name,
        seed,
        f"{row['truth']:.2f}",
        ", ".join(f"{error:+.2f}" for error in errors),
        f"{errors.mean():+.2f}",
        f"{abs(np.diff(errors)[0]) / 2.0:.2f}",
        f"{value - row['truth']:+.2f}",
        f"{stderr:.2f}",
        ", ".join(f"{seconds:.0f}" for seconds in row["seconds"]),
    ]


HEADER = [
    "model",
    "seed",
    "exact log evidence",
    "error of each population",
    "error of their mean",
    "half of their difference",
    "error of stepping stones",
    "stderr of stepping stones",
    "seconds: populations, stepping stones",
]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    add_common_options(parser)
    options = parser.parse_args(arguments)
    lines, errors = [], {name: ([], []) for name in CASES}
    for name, seed in itertools.product(CASES, range(1 if options.quick else options.seeds)):
        row = measure(name, seed, options.quick)
        lines.append(line_of(name, seed, row))
        errors[name][0].extend(row["populations"] - row["truth"])
        errors[name][1].append(row["stones"][0] - row["truth"])
        print(*lines[-1], sep=" | ", flush=True)
    summary = [
        [name, *(f"{np.sqrt(np.mean(np.square(found))):.2f}" for found in both)]
        for name, both in errors.items()
    ]
    parts = [
        "# Log evidence of cooled populations",
        (
            "Four small models have a log evidence that is known from quadrature. It is estimated by two populations of "
            f"{NUM_PARTICLES} particles, which are cooled from the prior to the posterior, and by stepping stones of the "
            "default ladder. The first table has root mean square (rms) errors over all seeds. All errors are in nats; stderr "
            "is the standard error that the run reports."
        ),
        markdown(["model", "rms error of populations", "rms error of stepping stones"], summary),
        markdown(HEADER, lines),
    ]
    keep("starts_evidence.md", "\n\n".join(parts), output_folder(options))


if __name__ == "__main__":
    main()
