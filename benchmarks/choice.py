"""Choose network and noise by held-out rows, before anything is sampled.

    TFBNN_DATA=folder python benchmarks/choice.py [--tables yacht ...] [--candidates ...]
        [--judges ...] [--fresh]

The script takes the first split of each table of regression of default.py. A judge fits an ensemble
of four networks to four fifths of the training rows and scores it on the other fifth; it chooses the
candidate with the highest score. results/choice.md holds these scores beside the log density of the
sampled candidate on the test rows, where results/default.jsonl has it. A good judge is quick, and its
choice samples well. Finished rows are kept, so that a killed script goes on where it was.
"""

import argparse
import json
import time
import warnings

import numpy as np
from common import RESULTS, add_common_options, keep, markdown, output_folder, revision
from default_tables import CLASSES, TABLES
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
    import tensorflow  # noqa: F401 - before the clock

    import tfbnn

    problem = TABLES[table].load(0)
    (x, y), (x_test, y_test) = problem.train, problem.test
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
    """Dict candidate -> log density of the sampled network on the test rows, seed 0, where known."""
    endings = {"default": "", "heteroscedastic": ", noise by inputs"}
    found = {}
    for line in (RESULTS / "default.jsonl").read_text().splitlines():
        row = json.loads(line)
        is_of_split = row.get("table") == table and row["split"] == row["seed"] == 0
        if is_of_split and row["method"] in endings and np.isfinite(row.get("lpd", np.nan)):
            name = "-".join(map(str, row["hidden"])) + endings[row["method"]]
            found[name] = row["lpd"]
    return found


def report(store, tables, names):
    """The tables as Markdown: every score, and what each judge's choice costs."""
    lines, costs = [], []
    for table in tables:
        known = sampled(table)
        of_table = {
            judge: {
                candidate: store.rows[key]
                for candidate in CANDIDATES
                if (key := f"{table}, {candidate}, {judge}") in store
            }
            for judge in names
        }
        if not any(of_table.values()):
            continue
        for candidate in CANDIDATES:
            texts = [_score_text(of_table[judge].get(candidate)) for judge in names]
            lines.append([table, candidate, _number(known.get(candidate)), *texts])
        costs += [
            [table, judge, f"{len(rows)} of {len(CANDIDATES)}", *_cost(rows, known)]
            for judge, rows in of_table.items()
            if len(rows) > 1
        ]
    header = ["table", "candidate", "sampled, test", *names]
    of_costs = ["table", "judge", "scored", "its choice", "sampled, test", "best sampled", "50"]
    commits = dict.fromkeys(row["commit"] for row in store.rows.values())
    about = (
        "# What held-out rows would choose before sampling\n\n"
        "Log predictive density, mean per row. Judges fit "
        f"{NUM_MEMBERS} networks to four fifths of the training rows of the first split. The other "
        "fifth scores them; seconds are of the fit, compilation included. A cell is empty where "
        "nothing was measured. Sampled: seed 0 of that split in `default.jsonl`, on the test rows.\n\n"
    )
    made = f"Rows were made at {', '.join(commits)}."
    return f"{about}{markdown(header, lines)}\n\n{markdown(of_costs, costs)}\n\n{made}"


def _score_text(row):
    if row is None:
        return ""
    return f"{row['held_out']['log_predictive_density']:.3f} ({row['seconds']:.0f} s)"


def _cost(rows, known):
    """What the candidate with the highest score is, and the sampled log densities beside it."""
    chosen = max(rows, key=lambda name: rows[name]["held_out"]["log_predictive_density"])
    best = max(known, key=known.get)
    return [
        chosen,
        _number(known.get(chosen)) or "not sampled",
        f"{known[best]:.3f} ({best})",
        _number(known.get("50")),
    ]


def _number(value):
    return "" if value is None else f"{value:.3f}"


def main(arguments=None):
    """Measures what is asked for, and keeps the tables."""
    known = [name for name, table in TABLES.items() if table.kind != CLASSES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--tables", nargs="+", choices=known, default=known)
    parser.add_argument(
        "--candidates", nargs="+", choices=list(CANDIDATES), default=list(CANDIDATES)
    )
    names = list(judges(1000))
    parser.add_argument("--judges", nargs="+", choices=names, default=names)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("choice", options.fresh, folder)
    for table in options.tables:
        for candidate in options.candidates:
            for judge in options.judges:
                key = f"{table}, {candidate}, {judge}"
                if key not in store:
                    store.add(key, measure(table, candidate, judge, options.quick))
                    print(key, store.rows[key]["held_out"], flush=True)
    keep("choice.md", report(store, known, names), folder)


if __name__ == "__main__":
    main()
