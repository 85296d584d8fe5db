"""Which network and noise would held-out rows choose before anything is sampled? results/choice.md.

    TFBNN_DATA=folder python benchmarks/choice.py [--tables yacht ...] [--judges ...] [--fresh]

On the first split of the tables of regression of default.py, each candidate is fitted by a small
ensemble to four fifths of the training rows, and scored on the last fifth, which no fit has seen.
Beside it stands the log density of the sampled candidate on the test rows, where
benchmarks/results/default.jsonl has it. A judge is good whose choice samples well, at few seconds.
Finished rows are kept, so that a killed script goes on where it was.
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from common import RESULTS, add_common_options, keep, markdown, output_folder, revision
from default_tables import CLASSES, TABLES, write_rows
from store import Store

# Hidden layers, and whether the noise follows the inputs.
CANDIDATES = {
    "50": ((50,), False),
    "20-20": ((20, 20), False),
    "50-50": ((50, 50), False),
    "50, noise by inputs": ((50,), True),
    "50-50, noise by inputs": ((50, 50), True),
}
SHARE, NUM_MEMBERS = 0.2, 4


def judges(num_rows):
    """Dict name -> settings of pretraining, for so many rows."""
    import tfbnn

    batch = int(np.clip(num_rows // 32, 32, 512))
    adam = {"newton_iterations": 0, "learning_rate_schedule": "cosine", "batch_size": batch}
    return {
        "adam": tfbnn.Pretraining(epochs=300, learning_rate=0.01, **adam),
        "adam, held out": tfbnn.Pretraining(
            epochs=300, learning_rate=0.01, validation_split=0.15, early_stopping=100, **adam
        ),
        "adam and newton": tfbnn.Pretraining(
            epochs=100, learning_rate=0.01, **(adam | {"newton_iterations": 30})
        ),
    }


def measure(table, candidate, judge, quick):
    """Fits one candidate as one judge does; a dict of JSON values."""
    import tfbnn

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        write_rows(table, 0, path)
        with np.load(path) as rows:
            x, y, x_test, y_test = (rows[name] for name in ("x", "y", "x_test", "y_test"))
    if quick:
        x, y = x[:60], y[:60]
    order = np.random.default_rng(0).permutation(len(x))
    count = round(SHARE * len(x))
    fitted, held_out = order[count:], order[:count]
    hidden, by_inputs = CANDIDATES[candidate]
    kind = tfbnn.likelihoods.HeteroscedasticGaussian if by_inputs else tfbnn.likelihoods.Gaussian
    model = tfbnn.BayesianMLP([x.shape[1], *hidden, 1 + by_inputs], likelihood=kind())
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pretraining = judges(len(fitted))[judge]
        options = {"pretraining": pretraining, "num_members": 2 if quick else NUM_MEMBERS}
        model.fit_ensemble(x[fitted], y[fitted], verbose=0, **options)
        seconds = time.perf_counter() - began
        scores = {
            name: {key: float(found[key]) for key in ("log_predictive_density", "crps", "rmse")}
            for name, found in (
                ("held_out", model.evaluate(x[held_out], y[held_out])),
                ("test", model.evaluate(x_test, y_test)),
            )
        }
    return {**scores, "seconds": seconds, "commit": revision()}


def sampled(table):
    """Dict candidate -> mean log density of the sampled networks over seeds, where it is known."""
    found = {}
    for line in (RESULTS / "default.jsonl").read_text().splitlines():
        row = json.loads(line)
        if (
            row.get("table") == table
            and row.get("split") == 0
            and np.isfinite(row.get("lpd", np.nan))
        ):
            name = "-".join(map(str, row.get("hidden") or ()))
            name = {"default": name, "heteroscedastic": f"{name}, noise by inputs"}.get(
                row["method"]
            )
            found.setdefault(name, []).append(row["lpd"])
    return {name: float(np.mean(values)) for name, values in found.items() if name in CANDIDATES}


def report(store, tables, names):
    """The tables as Markdown: every score, and what each judge's choice costs."""
    lines, losses = [], []
    for table in tables:
        known = sampled(table)
        for candidate in CANDIDATES:
            rows = [store.rows.get(f"{table}, {candidate}, {judge}") for judge in names]
            texts = [
                ""
                if row is None
                else f"{row['held_out']['log_predictive_density']:.3f} ({row['seconds']:.0f} s)"
                for row in rows
            ]
            value = known.get(candidate)
            lines.append([table, candidate, "" if value is None else f"{value:.3f}", *texts])
        for judge in names:
            scores = {
                name: store.rows[f"{table}, {name}, {judge}"]["held_out"]["log_predictive_density"]
                for name in known
                if f"{table}, {name}, {judge}" in store.rows
            }
            if len(scores) == len(known) > 1:
                chosen = max(scores, key=scores.get)
                loss = max(known.values()) - known[chosen]
                losses.append(
                    [table, judge, chosen, f"{loss:.3f}", f"{known[chosen] - known['50']:+.3f}"]
                )
    header = ["table", "candidate", "sampled, test", *names]
    costs = ["table", "judge", "its choice", "nats behind the best sampled", "nats ahead of 50"]
    about = (
        "# What held-out rows would choose before sampling\n\n"
        "Log predictive density, mean per row. Judges fit "
        f"{NUM_MEMBERS} networks to four fifths of the training rows of the first split, and are scored "
        "on the last fifth; seconds are of the fit. Sampled: `default.md`, on the test rows. A cell is "
        "empty where a judge was not tried: Levenberg-Marquardt takes minutes on 50-50.\n\n"
    )
    return f"{about}{markdown(header, lines)}\n\n{markdown(costs, losses)}"


def main(arguments=None):
    """Measures what is asked for, and keeps the tables."""
    known = [name for name, table in TABLES.items() if table.kind != CLASSES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--tables", nargs="+", choices=known, default=known)
    names = list(judges(1000))
    parser.add_argument("--judges", nargs="+", choices=names, default=names)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("choice", options.fresh, folder)
    for table in options.tables:
        for candidate in CANDIDATES:
            for judge in options.judges:
                key = f"{table}, {candidate}, {judge}"
                if key not in store:
                    store.add(key, measure(table, candidate, judge, options.quick))
                    print(key, store.rows[key]["held_out"], flush=True)
    keep("choice.md", report(store, options.tables, options.judges), folder)


if __name__ == "__main__":
    main()
