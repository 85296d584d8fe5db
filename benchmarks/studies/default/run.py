"""One line against what a user would pick instead: `fit_posterior(x, y)` with nothing else given.

    TFBNN_DATA=folder python -m benchmarks default [--tables yacht ...] [--methods ours | rivals | ...]
        [--splits 0 1 ...] [--seeds 0 ...] [--networks 50 50-50 ...] [--rivals-python PATH] [--bde-python PATH] [--fresh]

`BayesianMLP()`, networks that are given on the first split, and the package's baselines, beside
scikit-learn, NGBoost, CatBoost, SciPy and bde, all from the same raw rows. Every row is fitted in a process of
its own, one after the other, in at most fifteen minutes. Finished rows are kept, so that a killed
script goes on where it was; the table is benchmarks/results/default.md.

Rivals need scikit-learn and ngboost, and one of them `sklearn-contrib-bde==1.0.2`: they may have
interpreters of their own. The tables of classes are loaded by that of --rivals-python.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.lib.common import (
    HERE,
    add_common_options,
    data_folder,
    keep,
    output_folder,
    revision,
)
from benchmarks.lib.default_class_rivals import CLASS_RIVALS
from benchmarks.lib.default_ours import OUR_HETEROSCEDASTIC, OURS
from benchmarks.lib.default_rivals import RIVALS
from benchmarks.lib.default_tables import CLASSES, NOISE_FREE, REGRESSION, TABLES
from benchmarks.lib.default_work import RESULT
from benchmarks.lib.store import Store
from benchmarks.studies.default.report import report

TIME_LIMIT = 900.0
PYTHONS = "--rivals-python or --bde-python an interpreter that has it"
# Methods of some kinds of tables only, and of their first splits.
KINDS = {"spline": (NOISE_FREE,), "bde": (REGRESSION,), OUR_HETEROSCEDASTIC: (REGRESSION,)}
MAX_SPLITS = {"bde": 1, "short": 1, OUR_HETEROSCEDASTIC: 1}
GROUPS = {"ours": tuple(OURS), "rivals": tuple(dict.fromkeys([*RIVALS, *CLASS_RIVALS]))}
METHODS = [*GROUPS["ours"], *GROUPS["rivals"]]


class Job(NamedTuple):
    """One row: a method on one split of a table."""

    table: str
    split: int
    method: str
    seed: int = 0
    hidden: tuple = ()  # of our networks; none where the rows choose
    plain: bool = False  # a rival without log10 of the target where the rule says log10

    @property
    def key(self):
        network = "-".join(map(str, self.hidden)) or ("auto" if self.method in OURS else "rival")
        plain = ", plain" if self.plain else ""
        return (
            f"{self.table}, split {self.split}, {self.method}{plain}, {network}, seed {self.seed}"
        )


def jobs(options):
    """All rows that the options ask for, split by split."""
    wanted = [method for name in options.methods for method in GROUPS.get(name, (name,))]
    for name in options.tables:
        table = TABLES[name]
        splits = options.splits or range(1 if options.quick else table.num_splits)
        for split in (split for split in splits if split < table.num_splits):
            for method in (method for method in wanted if _applies(method, table, split)):
                if method in OURS:
                    found = _our_jobs(name, split, method, options)
                    yield from itertools.islice(found, 1 if options.quick else None)
                else:
                    yield Job(name, split, method)
                    if table.plain and method != "bde":
                        yield Job(name, split, method, plain=True)


def _applies(method, table, split):
    known = OURS | (CLASS_RIVALS if table.kind == CLASSES else RIVALS)
    kinds = KINDS.get(method, (table.kind,))
    return method in known and table.kind in kinds and split < MAX_SPLITS.get(method, split + 1)


def _our_jobs(name, split, method, options):
    table = TABLES[name]
    networks = {(50,): table.seeds[:1]}
    if method == "default":  # of the networks that were given, the first split will do
        networks = {(): table.seeds} | (table.also if split == 0 else {})
    for hidden, its_seeds in networks.items():
        if options.networks and ("-".join(map(str, hidden)) or "auto") not in options.networks:
            continue
        for seed in its_seeds if split == 0 else its_seeds[:1]:
            if options.seeds is None or seed in options.seeds:
                yield Job(name, split, method, seed, hidden)


def measure(job, options, folder):
    """Fits one row in a new process: its scores, wall and processor seconds.

    Raises:
        RuntimeError: If it failed for another reason than time, with the end of its complaint.
    """
    rows = rows_of(job, options.rivals_python, folder)
    python = {"bde": options.bde_python}.get(job.method, options.rivals_python)
    command = [sys.executable if job.method in OURS else python, HERE / "lib" / "default_work.py"]
    command += [job.method, rows, "--seed", str(job.seed)]
    command += ["--hidden", *map(str, job.hidden)] if job.method in OURS else []
    command += [f"--{name}" for name in ("plain",) if job.plain]
    command += ["--quick"] if options.quick else []
    if options.runs is not None and job.method == "default":
        options.runs.mkdir(parents=True, exist_ok=True)
        command += ["--output", options.runs / job.key.replace(" ", "_").replace(",", "")]
    load, used, began = os.getloadavg()[0], _processor_seconds(), time.perf_counter()
    about = {**job._asdict(), "commit": revision(), "load_before": round(load, 2)}
    try:
        found = run_child(command, TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return about | {"failed": f"not done after {TIME_LIMIT:.0f} s"}
    about["wall"] = round(time.perf_counter() - began, 2)
    about["processor"] = round(_processor_seconds() - used, 2)
    return about | {"load_after": round(os.getloadavg()[0], 2)} | found


def rows_of(job, python, folder):
    """The file with the rows of a split, which the interpreter with scikit-learn writes."""
    path = Path(folder) / f"{job.table}-{job.split}.npz"
    if not path.exists():
        run_child(
            [python, HERE / "lib" / "default_tables.py", job.table, str(job.split), path],
            TIME_LIMIT,
        )
    return path


def run_child(command, limit):
    """The JSON that a child prints, {} if none; a RuntimeError with its last words if it failed."""
    environment = os.environ | {"PYTHONPATH": str(HERE.parent), "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=limit, env=environment
    )
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-3:])
        if "ModuleNotFoundError" in last:
            last = f"{last.splitlines()[-1]}, of {command[0]}. Give {PYTHONS}."
        raise RuntimeError(last)
    lines = [line for line in done.stdout.splitlines() if line.startswith(RESULT)]
    return json.loads(lines[-1][len(RESULT) :]) if lines else {}


def _processor_seconds():
    """Return the processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument(
        "--methods", nargs="+", choices=[*GROUPS, *METHODS], default=list(GROUPS), metavar="METHOD"
    )
    parser.add_argument("--splits", nargs="+", type=int, help="default: all of the table")
    parser.add_argument("--networks", nargs="+", help="hidden units of ours, or auto; default all")
    parser.add_argument("--seeds", nargs="+", type=int, help="of our fits; default: the table's")
    parser.add_argument("--rivals-python", default=sys.executable, help="has scikit-learn, ngboost")
    parser.add_argument("--bde-python", default=sys.executable, help="has sklearn-contrib-bde")
    parser.add_argument("--runs", type=Path, help="keep default runs here, score those that are")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    if any(TABLES[name].data for name in options.tables):
        data_folder()  # says what is missing before anything is fitted
    folder = output_folder(options)
    store, failures = Store("default", options.fresh, folder), 0
    with tempfile.TemporaryDirectory() as scratch:
        for job in jobs(options):
            if job.key in store:
                continue
            try:
                store.add(job.key, measure(job, options, scratch))
            except RuntimeError as error:
                # Not kept: what is missing may be there next time.
                failures += 1
                print(f"{job.key}: {error}", file=sys.stderr, flush=True)
            else:
                _show(store.rows[job.key])
    keep("default.md", report(list(store.rows.values())), folder)
    if failures:
        raise SystemExit(f"{failures} rows failed, see above, and are not in the table.")


def _show(row):
    scores = [f"{name} {row[name]:.4g}" for name in ("rmse", "accuracy", "lpd") if name in row]
    print(row["key"], *scores, row.get("failed", f"{row.get('wall', 0):.1f} s"), flush=True)


if __name__ == "__main__":
    main()
