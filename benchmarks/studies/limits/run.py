"""A limit in seconds: is it kept, does it end with draws, and what do these miss?

    TFBNN_DATA=folder python -m benchmarks limits [--tables example ...] [--networks 50 50-50] [--fresh]

`BayesianMLP([D, 50, 1])` and `[D, 50, 50, 1]` with `max_seconds=` and nothing else, each row in a process
of its own, one after the other. Scores are held against those of the same fit without a limit: the row of
benchmarks/results/default.jsonl, and of the README's example one that this script fits. The table is
benchmarks/results/limits.md.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.lib.common import (
    HERE,
    RESULTS,
    add_common_options,
    keep,
    markdown,
    output_folder,
    revision,
)
from benchmarks.lib.store import Store
from benchmarks.studies.default.run import rows_of as rows_of_table
from benchmarks.studies.default.run import run_child

EXAMPLE, UNLIMITED = "README's example", "no limit"
SMALL = (EXAMPLE, "yacht", "concrete")
TABLES = (*SMALL, "airfoil", "kin8nm", "neutralino raw")
LIMITS, LEAST_LIMIT = (60, 120), 30
NETWORKS = ("50", "50-50")
INTRODUCTION = """\
Each fit is `BayesianMLP([D, 50, 1])` or `BayesianMLP([D, 50, 50, 1])` with `max_seconds=` and no other
settings, in a process of its own, one after the other. The time of the call includes compilation and
calibration; the next five columns are its parts. LPD is the mean log predictive density per test row. Loss is
the LPD without a limit minus that of this fit. Fits without a limit are those of `default.md`, and for
README's example those of this table. Coverage is the share of test rows within 1 and 2 predicted standard
deviations (sigma). Load is the load average when the process began."""
# What is asked: seconds beyond the limit, draws in all, and what may be missing of the density after
# some seconds on all tables but one.
LATE, FEWEST_DRAWS, MISSING = 5.0, 100, {60: 0.10, 120: 0.03}
TIME_LIMIT = 900.0


class Job(NamedTuple):
    """One row: a network on a table, in so many seconds or without a limit."""

    table: str
    network: str
    limit: int | None

    @property
    def key(self):
        return f"{self.table}, {self.network}, {self.limit or UNLIMITED}"


def jobs(options):
    """All rows that the options ask for."""
    for table in options.tables:
        for network in options.networks:
            if table == EXAMPLE:
                yield Job(table, network, None)
            for limit in options.limits or (*([LEAST_LIMIT] if table in SMALL else []), *LIMITS):
                yield Job(table, network, limit)


def example():
    """The rows of the README's first example, and a thousand new ones."""
    generator, noise = np.random.default_rng(0), np.random.default_rng(1)
    x = generator.uniform(-3, 3, (200, 2))
    y = np.sin(x[:, 0]) * x[:, 1] + 0.1 * noise.standard_normal(200)
    x_test = generator.uniform(-3, 3, (1000, 2))
    y_test = np.sin(x_test[:, 0]) * x_test[:, 1] + 0.1 * noise.standard_normal(1000)
    return {"x": x, "y": y, "x_test": x_test, "y_test": y_test, "kind": "regression"}


def measure(job, options, folder):
    """Fits one row in a new process."""
    if job.table == EXAMPLE:
        path = Path(folder) / "example.npz"
        np.savez(path, **example())
    else:
        path = rows_of_table(_Split(job.table), options.rows_python, folder)
    command = [
        sys.executable,
        HERE / "lib" / "default_work.py",
        "short" if job.limit else "default",
        path,
    ]
    command += ["--hidden", *job.network.split("-")]
    command += ["--max-seconds", job.limit] if job.limit else []
    load = round(os.getloadavg()[0], 2)
    return {**job._asdict(), "commit": revision(), "load": load} | run_child(command, TIME_LIMIT)


class _Split(NamedTuple):
    table: str
    split: int = 0


def unlimited(rows):
    """Dict (table, network) -> log predictive density without a limit."""
    lines = (RESULTS / "default.jsonl").read_text().splitlines()
    found = {
        (row["table"], "-".join(map(str, row["hidden"]))): row["lpd"]
        for row in map(json.loads, lines)
        if (row["method"], row["split"], row["seed"]) == ("default", 0, 0) and "lpd" in row
    }
    own = {(row["table"], row["network"]): row["lpd"] for row in rows if row["limit"] is None}
    return found | own


def report(rows):
    """Markdown of all rows, and of the goals."""
    without = unlimited(rows)
    lines = []
    for row in rows:
        seconds, limit = row["seconds"], row["limit"]
        lines.append(
            [
                row["table"],
                row["network"],
                limit or UNLIMITED,
                f"{row['call']:.1f}",
                *(f"{seconds[name]:.1f}" for name in ("startup", "compile", "pretraining")),
                f"{seconds['warmup']:.1f}",
                f"{seconds['sampling']:.1f}",
                f"{row['draws'][0]} x {row['draws'][1]}",
                f"{row['lpd']:.3f}" if "lpd" in row else "-",
                f"{_missing(row, without):+.3f}"
                if limit and "lpd" in row and _is_compared(row, without)
                else "",
                ", ".join(f"{share:.3f}" for share in row.get("coverage", ())),
                row["verdict"],
                row["load"],
            ]
        )
    header = ["data set", "hidden layers", "limit, s", "call, s", "startup, s", "compilation, s", "pretraining, s"]  # fmt: skip
    header += [
        "warm-up, s",
        "sampling, s",
        "chains x draws",
        "LPD",
        "loss",
        "coverage of 1, 2 sigma",
    ]
    parts = ["# Time limits", INTRODUCTION]
    parts += [markdown([*header, "verdict", "load"], lines), _goals(rows, without)]
    return "\n\n".join(parts)


def _missing(row, without):
    return without[row["table"], row["network"]] - row["lpd"]


def _is_compared(row, without):
    """Check whether there is a fit without a limit to compare with."""
    return (row["table"], row["network"]) in without


def _goals(rows, without):
    limited = [row for row in rows if row["limit"]]
    late = [row for row in limited if row["call"] > row["limit"] + LATE]
    few = [row for row in limited if np.prod(row["draws"]) < FEWEST_DRAWS]
    lines = [
        [
            f"call at most {LATE:g} s longer than the limit",
            f"{len(limited) - len(late)} of {len(limited)}",
        ],
        [
            f"at least {FEWEST_DRAWS} draws of all chains",
            f"{len(limited) - len(few)} of {len(limited)}",
        ],
    ]
    for limit, most in MISSING.items():
        for network in dict.fromkeys(row["network"] for row in limited):
            found = [r for r in limited if (r["limit"], r["network"]) == (limit, network)]
            found = [row for row in found if _is_compared(row, without)]
            near = [row for row in found if "lpd" in row and _missing(row, without) <= most]
            what = f"hidden layers {network}, limit {limit} s: loss at most {most:g}"
            lines.append([what, f"{len(near)} of {len(found)} data sets"])
    return markdown(["goal", "met by"], lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--limits", nargs="+", type=int, help="in seconds; default: the table's")
    parser.add_argument("--rows-python", default=sys.executable, help="reads the tables")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    if options.quick:
        options.tables, options.networks, options.limits = [EXAMPLE], ["50"], [60]
    store = Store("limits", options.fresh, folder)
    with tempfile.TemporaryDirectory() as scratch:
        for job in jobs(options):
            if job.key in store or (options.quick and job.limit is None):
                continue
            store.add(job.key, measure(job, options, scratch))
            row = store.rows[job.key]
            print(job.key, f"{row['call']:.1f} s", row["draws"], row.get("lpd"), flush=True)
    keep("limits.md", report(list(store.rows.values())), folder)


if __name__ == "__main__":
    main()
