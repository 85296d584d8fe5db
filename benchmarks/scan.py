"""A scan of 10 000 points by `tfbnn slha`: folder of processes, time per point, ranks of MPI.

    [TFBNN_DATA=folder] python benchmarks/scan.py [--tables made real] [--work FOLDER] [--fresh]

made: tables of two processes that the package computes itself (`scan_points.py`). real: one process
at next-to-leading order, where TFBNN_DATA is set. `tfbnn fit` fits the networks, `tfbnn slha make` writes
the folder, `tfbnn slha eval` reads 10 000 points; commands are timed as whole processes. Rows are kept
as they finish; the table is benchmarks/results/scan.md. A folder of processes that --work has by an
earlier run is used again.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scan_points
from common import add_common_options, data_folder, output_folder
from scan_report import report
from store import Store

import tfbnn
from tfbnn.data.tables import read_table
from tfbnn.hep import CrossSectionPredictor

NUM_POINTS, NUM_ALONE, RANKS = 10_000, 300, (1, 2, 4)
# As long as the fit of `tfbnn demo`; and as long as one waits.
FITS = {
    "made": "--num-burnin-steps 300 --num-results 200",
    "real": "--layers 20,20 --until max_seconds=240",
}
QUICK_FIT = (
    "--prior normal --layers 3 --num-chains 2 --num-results 12 --num-burnin-steps 12 "
    "--no-pretraining --no-jit-compile"
)
REAL_TARGET, REAL_INPUTS = "nlo_alphas_up_fb", ("m_chi10_GeV", "N11", "N12", "N13", "N14")
# What every rank does: point by point, as GAMBIT calls; then how much memory it has.
RANK = """
import sys, time
import numpy as np
began = time.process_time()
if len(sys.argv) > 1:
    from tfbnn.data.tables import read_table
    from tfbnn.hep import CrossSectionPredictor
    predictor = CrossSectionPredictor(sys.argv[1])
    table = read_table(sys.argv[2])
    loaded = time.process_time()
    for row in table.values[:int(sys.argv[3])].tolist():
        predictor.set_parameters(dict(zip(table.columns, row)))
        predictor.get_xsections()
    print(loaded - began, time.process_time() - loaded)
else:
    import h5py
    print(0.0, 0.0)
lines = open("/proc/self/smaps_rollup").read().splitlines()
sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
print(sizes["Rss"] / 1024, sizes["Pss"] / 1024)
"""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    tables = ["made", "real"] if os.environ.get("TFBNN_DATA") else ["made"]
    parser.add_argument("--tables", nargs="*", choices=FITS, default=tables)
    parser.add_argument("--work", type=Path, help="folder for what is made; default: a new one")
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("scan", options.fresh, folder)
    for name in options.tables:
        if name not in store:
            with tempfile.TemporaryDirectory() as new:
                store.add(name, measure(name, (options.work or Path(new)) / name, options.quick))
        report(store.rows, folder)


def measure(name, folder, quick):
    """Makes, evaluates and times one folder of processes."""
    num_points = 200 if quick else NUM_POINTS
    fit = QUICK_FIT if quick else FITS[name]
    if name == "made":
        tests = made(folder, 100 if quick else 2000, num_points)
    else:
        tests = real(folder, num_points)
    row = {"fit": fit, "points": num_points, "machine_load": os.getloadavg()[0]}
    row["make"] = make(folder, fit)
    processes = CrossSectionPredictor(folder / "gauginos").processes
    row["scores"] = {str(pids): score(processes[pids].model, *tests[pids]) for pids in tests}
    row["ways"] = ways(folder, num_points, quick)
    row["ranks"] = [ranks(folder, count, 5 if quick else NUM_ALONE) for count in (0, *RANKS)]
    return row


def make(folder, fit):
    """Seconds that all fits and `tfbnn slha make` take, or took when the folder was made."""
    kept = folder / "make.json"
    if not kept.exists():
        seconds = 0.0
        for table in sorted(folder.glob("chi*.csv")):
            data = (table.name, "--target", read_table(table).columns[-1])
            model = f"{table.stem}.h5"
            seconds += command(folder, "fit", *data, *fit.split(), "-o", model)[0]
        seconds += command(folder, "slha", "make", "gauginos.toml", "-o", "gauginos")[0]
        kept.write_text(json.dumps(seconds))
    return json.loads(kept.read_text())


def made(folder, num_rows, num_points):
    """Tables of the package's own; returns dict pids -> (inputs, targets) to test on."""
    scan_points.make(folder, num_rows, num_points)
    tests = {}
    for k, pid in scan_points.PIDS.items():
        table = read_table(folder / f"test{k}0.csv")
        tests[pid, pid] = table.select(scan_points.columns_of(k)), table.values[:, -1]
    return tests


def real(folder, num_points):
    """The table at next-to-leading order, its training rows and its test rows."""
    table = read_table(data_folder() / "nlo_neutralino" / "chi10chi10.csv")
    split = table.select(["split"]).values[:, 0]
    values = table.select([*REAL_INPUTS, REAL_TARGET]).values
    folder.mkdir(parents=True, exist_ok=True)
    scan_points.write_csv(
        folder / "chi10chi10.csv", [*REAL_INPUTS, REAL_TARGET], values[split == 0]
    )
    text = scan_points.DESCRIPTION
    (folder / "gauginos.toml").write_text(
        text.replace("qcd_order = 0", "qcd_order = 1")
        + scan_points.PROCESS.format(k=1, pid=scan_points.PIDS[1])
    )
    points = values[:num_points, :-1]
    scan_points.write_csv(folder / "points.csv", REAL_INPUTS, points)
    scan_points.write_spectra(folder, points[:, :1], points[:, None, 1:])
    pid, test = scan_points.PIDS[1], table.take(split == 2)
    return {(pid, pid): (test.select(REAL_INPUTS), test.select([REAL_TARGET]).values[:, 0])}


def command(folder, *arguments):
    """(seconds, CPU seconds) of a command of tfbnn as a whole process."""
    began, cpu = time.perf_counter(), cpu_of_children()
    subprocess.run([sys.executable, "-m", "tfbnn", *arguments], cwd=folder, env=paths(), check=True)
    return time.perf_counter() - began, cpu_of_children() - cpu


def cpu_of_children():
    """CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def paths(**more):
    """The environment in which a process finds the package, wherever it works."""
    return os.environ | {"PYTHONPATH": str(Path(tfbnn.__file__).parents[1])} | more


def score(model, x, y):
    """Scores on rows that the fit has not seen."""
    scores = model.evaluate(x, y)
    names = ("relative_error_median", "relative_error_mean", "relative_error_q90", "rmse_log10")
    found = {name: scores.get(name) for name in names}
    return found | {"within": [scores["coverage"][k] for k in (1, 2)], "rows": len(y)}


def ways(folder, num_points, quick):
    """Seconds of each way to get all cross sections, dict what -> [seconds, points]."""
    evaluate = ("slha", "eval", "gauginos", "--trusted")
    shutil.rmtree(folder / "copies", ignore_errors=True)
    found = {
        "a table to CSV": command(folder, *evaluate, "--table", "points.csv", "-o", "table.csv"),
        "spectra to CSV": command(folder, *evaluate, "spectra", "-o", "spectra.csv"),
        "spectra to copies with XSECTION": command(folder, *evaluate, "spectra", "-w", "copies"),
    }
    found = {what: [*seconds, num_points] for what, seconds in found.items()}
    predictor = CrossSectionPredictor(folder / "gauginos")
    table = read_table(folder / "points.csv")
    together = predictor.predict(table)

    def one_by_one(count):
        for row in table.values[:count].tolist():
            predictor.set_parameters(dict(zip(table.columns, row)))
            predictor.get_xsections()

    count = 5 if quick else NUM_ALONE
    found["Python, all points at once"] = [*timed(lambda: predictor.predict(table)), num_points]
    found["Python, one by one as GAMBIT calls"] = [*timed(lambda: one_by_one(count)), count]
    written = read_table(folder / "spectra.csv", ["central_fb"]).values
    np.testing.assert_allclose(written.reshape(together.central.shape), together.central, rtol=1e-4)
    return found


def timed(function):
    """(seconds, CPU seconds) of a call in this process."""
    began, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - began, time.process_time() - cpu


def ranks(folder, count, num_points):
    """Several processes that work on one folder at the same time; 0: one that has only NumPy, h5py.

    Returns:
        Dict with their number, mean CPU seconds to load and per point, mean RSS and PSS in MB.
    """
    arguments = ["gauginos", "points.csv", str(num_points)] if count else []
    line = [sys.executable, "-c", RANK, *arguments]
    settings = {"cwd": folder, "env": paths(OMP_NUM_THREADS="1"), "stdout": subprocess.PIPE}
    started = [subprocess.Popen(line, text=True, **settings) for _ in range(max(count, 1))]
    outputs = [process.communicate()[0].split() for process in started]
    load, work, rss, pss = np.mean(np.array(outputs, dtype=float), axis=0).tolist()
    return {"ranks": count, "load": load, "point": work / num_points, "rss": rss, "pss": pss}


if __name__ == "__main__":
    main()
