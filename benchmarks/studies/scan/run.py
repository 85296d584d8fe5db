"""From spectra and results to a scan of 10 000 points by `tfbnn slha`: scores, time per point, ranks of MPI.

    [TFBNN_DATA=folder] python -m benchmarks scan [--tables made real] [--work FOLDER] [--fresh]

made: two processes that the package computes itself (`points.py`). real: one process at
next-to-leading order, where TFBNN_DATA is set, by a default fit. `tfbnn slha table` makes the tables, `tfbnn fit`
fits the networks, `tfbnn slha make` writes the folder, `tfbnn slha eval` reads 10 000 points; commands are
timed as whole processes. Rows are kept
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

import tfbnn
from benchmarks.lib.common import add_common_options, data_folder, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.scan import points as scan_points
from benchmarks.studies.scan.report import report
from tfbnn.data.tables import read_table
from tfbnn.hep import CrossSectionPredictor

NUM_POINTS, NUM_ALONE, RANKS = 10_000, 300, (1, 2, 4)
# As long as the fit of `tfbnn demo`; and as long as one waits.
FITS = {"made": "--layers 20,20 --max-seconds 90", "real": ""}
QUICK_FIT = (
    "--prior normal --layers 3 --num-chains 2 --num-results 12 --num-burnin-steps 12 "
    "--no-pretraining --no-jit-compile"
)
REAL_TARGET = "nlo_alphas_up_fb"
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
        scan_points.make(folder, 100 if quick else 2000, num_points)
    else:
        real(folder, num_points)
    row = {"fit": fit, "points": num_points, "machine_load": os.getloadavg()[0]}
    row["make"] = make(folder, fit)
    row["scores"] = scores(folder)
    row["ways"] = ways(folder, num_points, quick)
    row["ranks"] = [ranks(folder, count, 5 if quick else NUM_ALONE) for count in (0, *RANKS)]
    return row


def make(folder, fit):
    """Seconds that the tables, all fits and `tfbnn slha make` take, or took when the folder was made."""
    kept = folder / "make.json"
    if not kept.exists():
        several = (folder / "gauginos.toml").read_text().count("[[process]]") > 1
        output = "tables" if several else "tables/1000022_1000022.csv"
        (folder / "tables").mkdir(exist_ok=True)
        seconds = command(folder, "slha", "table", "fitted", "gauginos.toml", "-o", output)[0]
        for table in sorted((folder / "tables").glob("*.csv")):
            data = (f"tables/{table.name}", "--target", "xsec")
            seconds += command(folder, "fit", *data, *fit.split(), "-o", f"{table.stem}.h5")[0]
        seconds += command(folder, "slha", "make", "gauginos.toml", "-o", "gauginos")[0]
        kept.write_text(json.dumps(seconds))
    return json.loads(kept.read_text())


def real(folder, num_points):
    """The process at next-to-leading order: spectra of its training rows, its test rows."""
    table = read_table(data_folder() / "nlo_neutralino" / "chi10chi10.csv")
    split, names = table.column("split"), scan_points.columns_of(1)
    values = table.select([*names, REAL_TARGET]).values
    train, test = values[split == 0], values[split == 2]
    scan_points.write_spectra(folder / "fitted", train[:, :1], train[:, None, 1:-1])
    lines = [f"1000022 1000022 {value:.6g}" for value in train[:, -1]]
    (folder / "results.dat").write_text("\n".join(lines) + "\n")
    text = scan_points.DESCRIPTION.replace("qcd_order = 0", "qcd_order = 1")
    text = text.replace(', "low", "high"', "")
    (folder / "gauginos.toml").write_text(text + scan_points.process_text(1000022))
    scan_points.write_csv(folder / "test.csv", [*names, "xsec_1000022"], test)
    points = values[:num_points, :-1]
    scan_points.write_csv(folder / "points.csv", names, points)
    scan_points.write_spectra(folder / "spectra", points[:, :1], points[:, None, 1:])


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


def scores(folder):
    """Scores on points that no fit has seen, of the cross sections as a scan gets them: dict pair -> dict."""
    predictor = CrossSectionPredictor(folder / "gauginos")
    table = read_table(folder / "test.csv")
    found, scores = predictor.predict(table), {}
    for index, pids in enumerate(found.pids):
        truth, central = table.column(f"xsec_{pids[0]}"), found.central[:, index]
        error = np.abs(central / truth - 1.0)
        process = predictor.processes[pids]
        values = process.values({name: table.column(name) for name in process.places})
        x = np.column_stack([values[name] for name in process.features])
        off = np.abs(process.model.predict_distribution(x).cdf(truth) - 0.5)
        scores[str(pids)] = {
            "relative_error_median": float(np.median(error)),
            "relative_error_mean": float(np.mean(error)),
            "relative_error_q90": float(np.quantile(error, 0.9)),
            "rmse_log10": float(np.sqrt(np.mean(np.square(np.log10(central / truth))))),
            "within": [float(np.mean(off < share / 2)) for share in (0.6827, 0.9545)],
            "rows": len(truth),
        }
    return scores


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
