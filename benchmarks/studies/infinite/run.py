"""Fit networks of infinite width where the truth is known, and time their predictions.

    python -m benchmarks infinite [--tables grid ...] [--activations tanh relu] [--fresh]

Tables are those of benchmarks/lib/default_tables.py, first split, and the functions without noise of
benchmarks/studies/functions/run.py ("borehole 20": 20 rows to an input). results/infinite.md has verdicts, seconds and
scores, and what a prediction takes at 1000 rows x 50 draws beside what the processor's products allow.
Finished rows are kept, so that a killed script goes on where it was.
"""

import argparse
import math
import time
import warnings

import numpy as np

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder, revision
from benchmarks.lib.default_ours import FEW_DRAWS
from benchmarks.lib.default_tables import GRID, TABLES
from benchmarks.lib.store import Store
from benchmarks.studies.functions.run import FUNCTIONS, rows_of

NAMES = (
    "grid",
    "yacht",
    "demo",
    *(f"{name} {per_input}" for name in FUNCTIONS for per_input in (20, 80)),
)
NUM_ROWS, NUM_DRAWS, NUM_POINTS, NUM_INPUTS = 1000, 50, 1000, 8


def load(name):
    """(x, y, test inputs, test targets) of a table or a function."""
    if name in TABLES:
        problem = TABLES[name].load(0)
        return (*problem.train[:2], *problem.test[:2])
    function, per_input = name.split()
    inputs = FUNCTIONS[function]
    train, test = rows_of(inputs, int(per_input) * len(inputs.low), 0)
    return (*train, *test)


def measure(name, activation, quick):
    """Scores of a fit with nothing else given; a dict of JSON values."""
    import tensorflow  # noqa: F401 - before the clock

    import tfbnn

    x, y, x_test, y_test = load(name)
    model = tfbnn.BayesianMLP([x.shape[1], math.inf, 1], activation=activation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        run = model.fit_posterior(x, y, verbose=0, **(FEW_DRAWS if quick else {}))
        seconds = time.perf_counter() - began
    scores = model.evaluate(x_test, y_test)
    return {
        "rows": len(x),
        "inputs": x.shape[1],
        "verdict": run.verdict,
        "chains": run.chains.text,
        "seconds": seconds,
        "draws": run.num_results,
        "gradients": sum(int(np.sum(counts)) for counts in run.num_gradients.values()),
        "rmse": float(scores["rmse"]),
        "relative_rmse": float(scores["rmse"]) / float(np.std(y_test)),
        "log_density": float(scores["log_predictive_density"]),
        "coverage": [float(scores["coverage"][k]) for k in (1, 2)],
        "commit": revision(),
    }


def time_predictions(quick):
    """Seconds to the first point and for a further one, and those of the products alone."""
    import tfbnn
    from tfbnn.data.training_inputs import summarise_inputs
    from tfbnn.data.transforms import Pipeline
    from tfbnn.posterior.conditioned import GivenRows
    from tfbnn.posterior.ensemble import Ensemble

    num_rows = 100 if quick else NUM_ROWS
    generator = np.random.default_rng(0)
    x = generator.normal(size=(num_rows, NUM_INPUTS))
    settings = {"x_transform": None, "y_transform": None}
    spec = tfbnn.BayesianMLP([NUM_INPUTS, math.inf, 1], **settings).spec
    draws = 0.2 * generator.normal(size=(1, NUM_DRAWS, spec.num_parameters))
    draws[..., spec.layout.log_noise_scale] -= 3.0
    ensemble = Ensemble(
        spec=spec,
        x_pipeline=Pipeline(),
        y_pipeline=Pipeline(),
        draws=draws,
        sample_stats={},
        chain_weights=np.ones(1),
        x_reference=x[:100],
        training_inputs=summarise_inputs(x),
        given=GivenRows(x, np.sin(x[:, :1])),
    )
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    points = generator.normal(size=(NUM_POINTS, NUM_INPUTS))
    began = time.perf_counter()
    model.predict(points[:1])
    first = time.perf_counter() - began
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        model.predict(points)
        seconds.append(time.perf_counter() - began)
    matrix = generator.normal(size=(num_rows, num_rows))
    matrix @ matrix
    began = time.perf_counter()
    for _ in range(5):
        matrix @ matrix
    flops = 5 * 2.0 * num_rows**3 / (time.perf_counter() - began)
    # A triangular matrix times a column for each draw.
    limit = NUM_DRAWS * num_rows**2 / flops
    return {
        "first": first,
        "point": float(np.median(seconds)) / NUM_POINTS,
        "limit": limit,
        "rows": num_rows,
        "commit": revision(),
    }


def report(store):
    """The tables as Markdown."""
    rows = {key: row for key, row in store.rows.items() if key != "predictions"}
    lines = [
        [
            key,
            f"{row['rows']} x {row['inputs']}",
            row["verdict"],
            f"{row['seconds']:.0f}",
            row["draws"],
            row["gradients"],
            f"{row['rmse']:.4g}",
            f"{row['relative_rmse']:.3g}",
            f"{row['log_density']:.3f}",
            ", ".join(f"{share:.3f}" for share in row["coverage"]),
        ]
        for key, row in rows.items()
    ]
    header = [
        "data set, activation",
        "rows x inputs",
        "verdict",
        "time, s",
        "draws per chain",
        "gradients",
        "RMSE",
        "relative RMSE",
        "LPD",
        "coverage of 1, 2 sigma",
    ]
    text = (
        "# Infinite width\n\nEach fit is `BayesianMLP([D, math.inf, 1])` with no other settings than the activation, and "
        f'seed 0. {GRID}. "Borehole 20" has 20 training rows per input. Gradients are those of all chains and of warm-up. RMSE '
        "and LPD (mean log predictive density per row) are in the units of the target. Relative RMSE is the RMSE divided by the standard deviation of the test "
        "targets. Coverage is the share of test rows within 1 and 2 predicted standard deviations (sigma).\n\n"
        f"{markdown(header, lines)}\n\n"
    )
    if "predictions" in store:
        found = store.rows["predictions"]
        text += (
            f"A model with {NUM_DRAWS} draws and {found['rows']} training rows takes {found['first']:.2f} s for the "
            f"first prediction, and then {1e3 * found['point']:.2f} ms for each of {NUM_POINTS} points. The products of "
            f"triangular matrices for a point alone would take {1e3 * found['limit']:.2f} ms at the speed of products of "
            "large matrices.\n\n"
        )
    commits = dict.fromkeys(row["commit"] for row in store.rows.values())
    return f"{text}Rows were made at {', '.join(commits)}."


def main(arguments=None):
    """Measures what is asked for, and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--tables", nargs="*", choices=NAMES, default=list(NAMES))
    parser.add_argument("--activations", nargs="+", default=["tanh"])
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("infinite", options.fresh, folder)
    if "predictions" not in store:
        store.add("predictions", time_predictions(options.quick))
    for activation in options.activations:
        for name in options.tables:
            key = f"{name}, {activation}"
            if key not in store:
                store.add(key, measure(name, activation, options.quick))
                print(key, store.rows[key], flush=True)
            keep("infinite.md", report(store), folder)


if __name__ == "__main__":
    main()
