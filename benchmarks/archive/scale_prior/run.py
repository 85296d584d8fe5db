"""Measure what a wider default prior of weight scales gains, on rows that no fit has seen, and what it costs.

    TFBNN_DATA=folder python -m benchmarks scale_prior [--tables yacht ...] [--rivals-python PATH] [--fresh]

Short default fits of [D, 50, 1] with half-normal scales of 1, 3 and 10, to 80 % of the training rows of splits of
benchmarks/studies/default/run.py and of tables of benchmarks/studies/other_tables/run.py, scored on the others: test rows stay out of it.
Finished fits are kept; the table is benchmarks/results/scale_prior.md.
"""

import argparse
import itertools
import sys
import tempfile
import time

import numpy as np

from benchmarks.lib.common import (
    add_common_options,
    commits_of,
    data_folder,
    keep,
    markdown,
    output_folder,
    revision,
)
from benchmarks.lib.store import Store
from benchmarks.studies.default import run as default
from benchmarks.studies.other_tables import run as other_tables

SCALES = (1.0, 3.0, 10.0)
# Splits of the tables of the study default; first of all other tables, which have one.
SPLITS = {
    "concrete": (1, 2, 3, 4),
    "wine": (1, 2, 3),
    "yacht": range(1, 7),
    "airfoil": (1, 2),
    "demo": (0,),
}
OTHERS = (
    *("few rows", "pure noise", "outliers", "messy columns", "large offset", "counts", "steps"),
    *("sine", "waves", "diabetes", "Friedman 1", "Friedman 3"),
)
VALIDATION_SHARE = 0.2
LENGTH, QUICK = {"num_results": 500}, {"num_results": 20, "num_burnin_steps": 20, "num_chains": 2}
NOTE = """
The prior of the scales of weights is half-normal with a scale of 1 (the default), 3 or 10. Cells have the log
predictive density per validation row and, in brackets, the RMSE in the units of the target and the share of divergent
transitions, as means over splits. Fits have 50 hidden units and four chains with 1000 transitions of warm-up and
500 draws, with seed 0 and otherwise default settings. With a larger scale the density is often larger. On some data sets,
however, more transitions diverge than the 1 % that the verdict "usable for error bars" allows.
"""


def training_rows(name, split, python, folder):
    """Return the training rows of a split, which the interpreter with scikit-learn writes."""
    if name not in SPLITS:
        _, rows = other_tables.rows_of(name, python, folder)
        return rows["x"], rows["y"]
    with np.load(default.rows_of(default.Job(name, split, "default"), python, folder)) as file:
        return file["x"], file["y"]


def fit(x, y, split, scale, length):
    """Scores on the validation rows of one fit, and its wall seconds."""
    import tfbnn
    from tfbnn.priors import ARD, HalfNormal, HierarchicalNormal

    order = np.random.default_rng(split).permutation(len(x))
    held, kept = np.split(order, [round(VALIDATION_SHARE * len(x))])
    scales = HalfNormal(scale)
    sampled = HierarchicalNormal(scales)
    prior = [{"kernel": ARD(scales), "bias": sampled}, sampled]
    model = tfbnn.BayesianMLP([x.shape[1], 50, 1], prior=prior, parameterization="ntk")
    began = time.perf_counter()
    model.fit_posterior(x[kept], y[kept], seed=0, until=None, verbose=False, **length)
    wall = round(time.perf_counter() - began, 1)
    found = model.evaluate(x[held], y[held])
    lpd, rmse = (float(np.mean(found[name])) for name in ("log_predictive_density", "rmse"))
    divergent = model.diagnose().num_divergent / model.posterior.num_draws
    about = {"divergent": divergent, "wall": wall, "commit": revision()}
    return {"lpd": lpd, "rmse": rmse} | about


def report(rows):
    """Markdown of all fits of tables that have them with every scale."""
    lines = []
    for name in (*SPLITS, *OTHERS):
        splits = {}
        for row in rows:
            if row["table"] == name:
                splits.setdefault(row["split"], {})[row["scale"]] = row
        whole = [found for found in splits.values() if len(found) == len(SCALES)]
        if not whole:
            continue
        means = [
            [np.mean([found[scale][score] for found in whole]) for scale in SCALES]
            for score in ("lpd", "rmse", "divergent")
        ]
        cells = [f"{lpd:.3f} ({rmse:.4g}; {100 * lost:.1f} %)" for lpd, rmse, lost in zip(*means)]
        lines.append([name, len(whole), *cells])
    table = markdown(["data set", "splits", *(f"scale {scale:g}" for scale in SCALES)], lines)
    return f"# Width of the default prior of scales\n{NOTE}\n{table}\n\nThe fits are of the commits {commits_of(rows)}."


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = (*SPLITS, *OTHERS)
    parser.add_argument("--tables", nargs="+", choices=tables, default=tables)
    parser.add_argument("--rivals-python", default=sys.executable, help="has scikit-learn")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder, length = output_folder(options), QUICK if options.quick else LENGTH
    if set(options.tables) & set(SPLITS):
        data_folder()
    store = Store("scale_prior", options.fresh, folder)
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.tables:
            for split, scale in itertools.product(SPLITS.get(name, (0,)), SCALES):
                key = f"{name}, split {split}, scale {scale:g}"
                if key in store:
                    continue
                x, y = training_rows(name, split, options.rivals_python, scratch)
                about = {"table": name, "split": split, "scale": scale}
                store.add(key, about | fit(x, y, split, scale, length))
                print(key, store.rows[key]["lpd"], flush=True)
    keep("scale_prior.md", report(list(store.rows.values())), folder)


if __name__ == "__main__":
    main()
