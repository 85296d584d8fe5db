"""A grid search with the estimators, and scikit-learn's checks of them: seconds, programs, verdicts.

    python -m benchmarks grid_search [--quick --output FOLDER] [--only PART]

`GridSearchCV` over three activations in five folds, on 200 rows of Friedman's function of ten inputs
with unit noise, by `BayesianMLPRegressor(hidden_layer_sizes=8)`: sixteen fits of [10, 8, 1] with the
default `until`. Then `check_estimator` of both estimators as they are by default. Each is a process of
its own (estimators.py); seconds are wall clock, without imports. Programs are those that XLA compiled
by TensorFlow's log. The table is benchmarks/results/grid_search.md.
"""

import argparse
import os
from pathlib import Path

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.resident import ended_child
from benchmarks.lib.store import Store
from benchmarks.lib.xla_log import LOGGING, compilations

PARTS = {
    "search": "grid search, 3 activations x 5 folds, [10, 8, 1], 200 rows",
    "regressor": "check_estimator(BayesianMLPRegressor())",
    "classifier": "check_estimator(BayesianMLPClassifier())",
}


def main(arguments=None):
    """Measures all parts that are not measured yet and keeps the table of those that are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--only", choices=PARTS, help="measure this part alone")
    options = parser.parse_args(arguments)
    folder, parts = output_folder(options), PARTS
    if options.quick:
        parts = {"quick search": "grid search, 2 numbers of chains x 2 folds, [10, 3, 1], 60 rows"}
    store = Store("grid_search", options.fresh, folder)
    for part in parts:
        if part not in store and options.only in (None, part):
            store.add(part, measure(part))
    lines = [line_of(title, store.rows[part]) for part, title in parts.items() if part in store]
    header = [
        "task",
        "fits",
        "wall-clock time, s",
        "processor time, s",
        "programs",
        "compilation, s",
    ]
    keep(
        "grid_search.md",
        "# Time of a grid search and of scikit-learn's checks\n\n"
        "Each row is a process. Times are those of all its fits, scores and checks, without imports. Programs are "
        "those that XLA compiled. Load is the load average of the minute before the end. On two cores, 2 or more means "
        "that other processes ran, and times are too long. The outcome has the verdicts of the fits and their "
        'numbers, and the results of the checks. The verdict "usable for means, not yet for error bars" is called '
        '"usable for means" since version 0.3.0.\n\n'
        f"{markdown([*header, 'load', 'outcome'], lines)}",
        folder,
    )


def measure(part):
    """Measure one part in a child: what it reports, what XLA compiled there, and the load."""
    found, log = ended_child([Path(__file__).with_name("estimators.py"), part], **LOGGING)
    seconds = [seconds for _, seconds in compilations(log)]
    load, _, _ = os.getloadavg()
    return {**found, "programs": len(seconds), "compiling": sum(seconds), "load": load}


def line_of(title, row):
    """The line of the table of one part."""
    seconds = (f"{row[name]:.0f}" for name in ("wall", "processor"))
    compiled = row["programs"], f"{row['compiling']:.0f}"
    return [title, row["fits"], *seconds, *compiled, f"{row['load']:.1f}", row["outcome"]]


if __name__ == "__main__":
    main()
