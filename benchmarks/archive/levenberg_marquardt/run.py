"""Compare accelerated steps of Levenberg-Marquardt with plain ones, and seconds with those of its plan.

    TFBNN_DATA=folder python -m benchmarks levenberg_marquardt [--networks "yacht 50" ...] [--fresh]

Each network is polished on all training rows of the first split of a table of the study default, with one noise scale,
from two draws of the prior. results/levenberg_marquardt.md holds log densities after some iterations,
seconds of one, and those that `newton_plan` expects of two cores.
"""

import argparse
import time

import numpy as np

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder, revision
from benchmarks.lib.default_tables import GRID, TABLES
from benchmarks.lib.store import Store

NUM_ITERATIONS, SEEDS = 60, (0, 1)
# Table, hidden layers.
NETWORKS = {
    "yacht 50": ("yacht", (50,)),
    "concrete 50": ("concrete", (50,)),
    "airfoil 50-50": ("airfoil", (50, 50)),
    "demo 20-20": ("demo", (20, 20)),
    "demo 50-50": ("demo", (50, 50)),
    "grid 50-50": ("grid", (50, 50)),
    "kin8nm 50": ("kin8nm", (50,)),
    "neutralino raw 20-20": ("neutralino raw", (20, 20)),
    "neutralino invariant 20-20": ("neutralino invariant", (20, 20)),
    "bikes 20-20": ("bikes", (20, 20)),
}


def measure(table, hidden, quick):
    """Log densities and seconds of both kinds of steps; a dict of JSON values."""
    import tfbnn
    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.starts import newton
    from tfbnn.engine.starts.check import draw_prior
    from tfbnn.engine.starts.newton_plan import plan_newton
    from tfbnn.fit.choices.choose import close_spec
    from tfbnn.run.cost import seconds_of
    from tfbnn.spec.rows import learn_transforms, rows_to_fit

    x, y = TABLES[table].load(0).train
    if quick:
        x, y = x[:60], y[:60]
    spec = tfbnn.BayesianMLP([x.shape[1], *hidden, 1], dtype="float64").asked
    rows, _ = rows_to_fit(spec, x, y, None, None)
    spec = close_spec(spec, rows, None)
    data = make_data(*learn_transforms(spec, rows, None).train, spec.dtype)
    count = 3 if quick else NUM_ITERATIONS
    plan = plan_newton(spec, len(x), tfbnn.Pretraining(newton_iterations=count))
    found = {"num_rows": len(x), "num_parameters": spec.num_parameters, "iterations": count}
    problem = newton._Problem
    bend = problem.bend
    for name, of_steps in (("plain", lambda *_: 0.0), ("accelerated", bend)):
        log_probs, seconds = [], []
        problem.bend = of_steps
        for seed in SEEDS:
            states = newton.polish(spec, draw_prior(spec, seed, 1)[0], data, count, plan.method)
            next(states), next(states)  # which compiles
            began = time.perf_counter()
            *_, last = states
            seconds.append((time.perf_counter() - began) / (len(last.log_prob) - 2))
            log_probs.append(last.log_prob[-1])
        found[name] = {"log_prob": log_probs, "seconds": float(np.mean(seconds))}
    return found | {"planned": seconds_of(plan.flops) / 2, "commit": revision()}


def report(store):
    """The table as Markdown."""
    lines = []
    for name in NETWORKS:
        if name not in store:
            continue
        row = store.rows[name]
        cells = []
        for kind in (row["plain"], row["accelerated"]):
            cells += [
                ", ".join(f"{value:.0f}" for value in kind["log_prob"]),
                f"{kind['seconds']:.3f}",
            ]
        sizes = [row["num_rows"], row["num_parameters"], row["iterations"]]
        lines.append([name, *sizes, *cells, f"{row['planned']:.3f}"])
    header = [
        "data set, hidden layers",
        "N",
        "P",
        "iterations",
        "plain: log density",
        "plain: time, s",
        "accelerated: log density",
        "accelerated: time, s",
        "planned time, s",
    ]
    commits = dict.fromkeys(row["commit"] for row in store.rows.values())
    return (
        "# Levenberg-Marquardt: plain and accelerated steps\n\n"
        "Two starts are draws of the prior. The table has their log densities (nats) after the iterations of the "
        "fourth column, and the wall-clock time of one iteration on all cores. Accelerated steps have geodesic "
        "acceleration. N is the number of rows, P that of parameters. The planned time is the one that a fit assumes for "
        f"an iteration on two cores. {GRID}.\n\n"
        f"{markdown(header, lines)}\n\nRows were made at {', '.join(commits)}."
    )


def main(arguments=None):
    """Measures what is asked for, and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("levenberg_marquardt", options.fresh, folder)
    for name in options.networks:
        if name not in store:
            store.add(name, measure(*NETWORKS[name], options.quick))
            print(name, store.rows[name], flush=True)
    keep("levenberg_marquardt.md", report(store), folder)


if __name__ == "__main__":
    main()
