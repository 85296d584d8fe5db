"""A million rows on two cores: the leading-order cross section, smeared by 20 %, fitted with nothing given.

    python -m benchmarks million_rows [--work FOLDER] [--fresh] [--quick --output FOLDER]

Each part is a process of its own; rows, and the run that goes on after a kill, are in FOLDER, by
default one beside other temporary files. Finished parts are kept, and a script that was killed goes on
with the run. The parts: what a fit of few transitions takes in memory, for several numbers of rows; the
fit, which is killed by SIGKILL in its warm-up and goes on; the table is
benchmarks/results/million_rows.md. Needs Linux.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.lib.common import add_common_options, keep, machine, markdown, output_folder
from benchmarks.lib.store import Store
from tfbnn.datasets import neutralino_pairs

NAME, SMEARING, KILL_AFTER = "million_rows", 0.2, 10
# What a process takes at most is a matter of chance by some ten megabytes.
MEMORY_RUNS = 5
# Few transitions, and a search that has each of its parts.
SHORT = {"num_results": 4, "num_burnin_steps": 4, "until": None}
FULL = {
    "layers": [5, 20, 20, 1],
    "numbers": [10_000, 100_000, 1_000_000],
    "memory_runs": MEMORY_RUNS,
    "held_out": 20_000,
    "pretraining": None,
    "options": {},
    "search": {"epochs": 2, "batch_size": 512, "newton_iterations": 1, "search_rows": 65_536},
    "kill_after": KILL_AFTER,
}
QUICK = {
    "layers": [5, 4, 1],
    "numbers": [1_000, 3_000],
    "memory_runs": 1,
    "held_out": 500,
    "pretraining": {"epochs": 2, "newton_iterations": 1, "search_rows": 500},
    "options": SHORT,
    "search": {"epochs": 2, "newton_iterations": 1, "search_rows": 500},
    "kill_after": 1,
}


def main(arguments=None):
    """Makes rows, runs the parts that are not there yet, and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--work", type=Path, help="folder of rows and run")
    options = parser.parse_args(arguments)
    study, folder = QUICK if options.quick else FULL, output_folder(options)
    work = options.work or Path(tempfile.gettempdir()) / NAME
    make_rows(work, max(study["numbers"]) + study["held_out"])
    store = Store(NAME, options.fresh, folder)
    for part, asked in parts(study):
        if part not in store:
            found = {"num_rows": asked["num_rows"], **fit(work, asked)}
            store.add(part, found | {"machine": machine()})
    keep(f"{NAME}.md", table(study, store.rows), folder)


def make_rows(work, count):
    """x, y and the exact targets as NPY files, unless they are there."""
    work.mkdir(parents=True, exist_ok=True)
    if (work / "exact.npy").exists() and len(np.load(work / "exact.npy", mmap_mode="r")) == count:
        return
    exact = neutralino_pairs(count, seed=1)
    smear = np.exp(SMEARING * np.random.default_rng(2).standard_normal(count))
    for name, values in (("x", exact.x), ("y", exact.y * smear), ("exact", exact.y)):
        np.save(work / f"{name}.npy", values)


def parts(study):
    """(Name, what `fit.py` is asked for) of each."""
    for number, num_rows in itertools.product(range(study["memory_runs"]), study["numbers"]):
        yield (
            f"memory of {num_rows}, run {number}",
            {
                "num_rows": num_rows,
                "layers": study["layers"],
                "options": SHORT,
                "num_leapfrog_steps": 2,
                "pretraining": study["search"],
                "held_out": study["held_out"],
                "kill_after": 0,
            },
        )
    names = ("layers", "options", "pretraining", "held_out", "kill_after")
    whole = {name: study[name] for name in names}
    yield "fit", {"num_rows": max(study["numbers"]), **whole}


def fit(work, asked):
    """Run a fit, again each time it is killed, and return what it found and how often it was killed."""
    command = [sys.executable, Path(__file__).with_name("fit.py"), work, json.dumps(asked)]
    kills = 0
    while True:
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if ended.returncode != -9:
            break
        kills += 1
    if ended.returncode:
        raise SystemExit(f"The fit ended with {ended.returncode}.")
    return {"kills": kills, **json.loads(ended.stdout.splitlines()[-1])}


def table(study, rows):
    """The text of the table."""
    found = rows["fit"]
    seconds = ", ".join(f"{name} {value:.0f}" for name, value in found["seconds"].items())
    inside = " and ".join(f"{100 * share:.1f} %" for share in found["coverage"])
    return (
        "# A million rows\n\n"
        f"The fit is `BayesianMLP({study['layers']}).fit_posterior(x, y)` with {found['num_rows']} rows of leading-order "
        "cross sections with 20 % of noise. The rows are in memory-mapped files. The kernel is "
        f"{found['kernel']}. The fit was killed by SIGKILL in warm-up and resumed ({found['kills']} "
        f"kill{'' if found['kills'] == 1 else 's'}).\n\n"
        f"- RMSE of log10 of {study['held_out']} held-out rows: {found['rmse']:.4f}. The noise alone has "
        f"{found['floor']:.4f}, and the fit {100 * (found['rmse'] / found['floor'] - 1):.1f} % more.\n"
        f"- Held-out rows within one and two standard deviations: {inside} (68.3 % and 95.4 % are right)\n"
        f"- Time of both processes: {sum(found['seconds'].values()) / 60:.1f} minutes; in seconds: {seconds}\n"
        f"- Verdict: {found['verdict']}\n"
        f"- Machine and versions: {found['machine']}\n\n"
        "The table has the growth of memory in a fit of four transitions with two gradients each: the largest resident "
        "memory of the process, minus that after a fit of 300 rows. Cells have the median and the range of "
        f"{study['memory_runs']} runs. Rows are float64 in memory-mapped files, whose pages are counted. The last column "
        "is the growth minus that of the line above, divided by the same difference of the rows. From 65 536 rows on, "
        "starts are sought on 65 536 rows; the second line includes this memory.\n\n"
        + markdown(
            ["rows", "size of the rows, MB", "growth, MB", "growth per size"],
            memory_lines(study, rows),
        )
    )


def memory_lines(study, rows):
    """A line on each number of rows, with the growth per growth of the rows since the one before."""
    lines, before = [], None
    for count in study["numbers"]:
        runs = [row for key, row in rows.items() if key.startswith(f"memory of {count},")]
        size, growths = runs[0]["rows"], [row["growth"] for row in runs]
        now = size, float(np.median(growths))
        slope = f"{(now[1] - before[1]) / (size - before[0]):.1f}" if before else ""
        growth = f"{now[1]:.0f} ({min(growths):.0f} to {max(growths):.0f})"
        lines.append([count, f"{size:.3g}", growth, slope])
        before = now
    return lines


if __name__ == "__main__":
    main()
