"""The default fit on seventeen other tables, beside what a user would pick instead.

    python -m benchmarks other_tables [--tables "pure noise" ...] [--rivals-python PATH] [--fresh]

`BayesianMLP([D, 50, K]).fit_posterior(x, y)` with nothing else given, seed 0, and ridge or logistic
regression, boosting, an ensemble of perceptrons and a Gaussian process of scikit-learn, as in
benchmarks/studies/default/run.py. Every row is fitted in a process of its own, finished ones are kept; the table is
benchmarks/results/other_tables.md.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.lib.common import (
    HERE,
    add_common_options,
    commits_of,
    keep,
    markdown,
    output_folder,
    revision,
)
from benchmarks.lib.default_tables import CLASSES
from benchmarks.lib.store import Store
from benchmarks.studies.default.run import TIME_LIMIT, run_child
from benchmarks.studies.other_tables.tables import TABLES

DEFAULT, RIVALS = "default", ("ridge", "logistic", "boosting", "mlp", "gp")
HEADER = [
    "data set",
    "rows, inputs",
    "RMSE or accuracy",
    "coverage of 1, 2 sigma",
    "time, s",
    "verdict",
]
NOTE = """
The fit `BayesianMLP([D, 50, K]).fit_posterior(x, y)` without other settings ("default") and other methods are
fitted to seventeen small data sets: one split, seed 0. The columns from
"default" on have the LPD (mean log predictive density per test row, in the units of the target) of each method,
the best in bold. The columns before are of the default fit: RMSE in the units of the target, or accuracy for
classes; the share of test rows within 1 and 2 predicted standard deviations (sigma); the wall-clock time of the
process. Other methods take the logarithm of the targets if the default fit does. For targets without noise,
rounded targets and outliers, normal noise with one scale is the wrong model; all other methods have it. Four
data sets are here because an earlier default fit failed on them: sine, waves, Friedman 2 and more inputs than
rows. No rule was tuned on the others. The verdict "usable for means, not yet for error bars" is called "usable
for means" since version 0.3.0.
"""


def rows_of(name, python, folder):
    """The NPZ file of a table, which the interpreter with scikit-learn writes, and what it holds."""
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        run_child([python, Path(__file__).with_name("tables.py"), name, path], TIME_LIMIT)
    with np.load(path) as file:
        return path, dict(file)


def methods_of(kind):
    """The default, and the rivals for a kind of targets."""
    unfit = "ridge" if kind == CLASSES else "logistic"
    return [DEFAULT, *(name for name in RIVALS if name != unfit)]


def measure(method, path, python, extra):
    """Fits one row in a new process: its scores, commit and wall seconds, or why it failed."""
    command = [sys.executable if method == DEFAULT else python, HERE / "lib" / "default_work.py"]
    command += [method, path, *extra]
    began = time.perf_counter()
    try:
        found = run_child(command, TIME_LIMIT)
    except subprocess.TimeoutExpired:
        found = {"failed": f"not done after {TIME_LIMIT:.0f} s"}
    except RuntimeError as error:
        found = {"failed": str(error).splitlines()[-1]}
    return {"wall": round(time.perf_counter() - began, 2), "commit": revision()} | found


def report(rows):
    """Markdown of all rows."""
    lines = []
    for name in TABLES:
        found = {row["method"]: row for row in rows if row["table"] == name}
        if DEFAULT not in found:
            continue
        ours = found[DEFAULT]
        scores = [found.get(method, {}).get("lpd") for method in (DEFAULT, *RIVALS)]
        best = max((score for score in scores if score is not None), default=None)
        cells = [
            "" if score is None else f"**{score:.3f}**" if score == best else f"{score:.3f}"
            for score in scores
        ]
        score = ours.get("rmse", ours.get("accuracy", np.nan))
        coverage = ", ".join(f"{share:.2f}" for share in ours.get("coverage", ()))
        size = f"{ours['num_rows']}, {ours['num_inputs']}"
        verdict = ours.get("failed") or ours["verdict"].split(" (")[0]
        wall = f"{ours['wall']:.0f}"
        lines.append([name, size, f"{score:.4g}", coverage, wall, verdict, *cells])
    commits = commits_of(row for row in rows if row["method"] == DEFAULT)
    table = markdown([*HEADER, DEFAULT, *RIVALS], lines)
    return f"# Small data sets\n{NOTE}\n{table}\n\nThe default fits are of the commits {commits}."


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=[DEFAULT, *RIVALS])
    parser.add_argument("--rivals-python", default=sys.executable, help="has scikit-learn")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder, python = output_folder(options), options.rivals_python
    store = Store("other_tables", options.fresh, folder)
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.tables[: 1 if options.quick else None]:
            path, rows = rows_of(name, python, scratch)
            about = {"table": name, "num_rows": len(rows["x"]), "num_inputs": rows["x"].shape[1]}
            for method in methods_of(rows["kind"]):
                key = f"{name}, {method}"
                if key in store or method not in (options.methods or (method,)):
                    continue
                extra = ["--quick"] if options.quick else []
                ours = store.rows.get(f"{name}, {DEFAULT}", {})
                if method != DEFAULT and not ours.get("log", True):
                    extra.append("--plain")
                found = measure(method, path, python, extra)
                store.add(key, about | {"method": method} | found)
                row = store.rows[key]
                print(key, row.get("lpd"), row.get("failed", f"{row.get('wall')} s"), flush=True)
    keep("other_tables.md", report(list(store.rows.values())), folder)


if __name__ == "__main__":
    main()
