"""Ten million points from a saved model: seconds, memory, and how far float32 is off.

    python -m benchmarks ten_million [--quick --output FOLDER]

1000 networks 5-50-1 with random weights, as in benchmarks/studies/prediction/run.py. `predict(x, batch_size=100_000)` reads
a memory-mapped array of 1, 3 and 10 million points, each in a process of its own, whose largest resident
memory is told; `tfbnn predict` reads a CSV file. The limit is that of benchmarks/studies/prediction/run.py: bytes that
have to be read, multiplications and tanh, on all cores. The table is benchmarks/results/ten_million.md.
Needs Linux.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tfbnn
from benchmarks.lib.common import HERE, add_common_options, keep, markdown, output_folder
from benchmarks.studies.prediction.run import (
    NUM_CHAINS,
    NUM_RESULTS,
    WIDTH,
    in_turns,
    limits,
    random_model,
)
from tfbnn.system.threads import num_cores

INTRODUCTION = """\
1000 networks 5-50-1 predict the mean and standard deviation of each point with `predict(x,
batch_size=100_000)`. The points are in a memory-mapped file. Other memory is the largest resident memory
minus that before the call and the results. The last row is `tfbnn predict` with a CSV file, as a whole
process."""
LAYERS, BATCH, LEVELS = [5, WIDTH, 1], 100_000, [0.05, 0.16, 0.5, 0.84, 0.95]
PREDICT = """
import sys, time
import numpy as np
sys.path.append({scripts!r})
from benchmarks.lib.process_memory import resident_megabytes
import tfbnn
model = tfbnn.load({model!r})
x = np.load({points!r}, mmap_mode="r")
model.predict(x[:1000])
before, began = resident_megabytes()[0], time.perf_counter()
found = model.predict(x, batch_size={batch})
seconds = time.perf_counter() - began
kept = (found.mean.nbytes + found.stddev.nbytes) / 2**20
print(seconds, resident_megabytes()[1] - before - kept, kept)
"""


def main(arguments=None):
    """Measures, and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    counts = (10_000, 20_000) if options.quick else (1_000_000, 3_000_000, 10_000_000)
    batch, lines = (1000 if options.quick else BATCH), counts[0]
    model = random_model(LAYERS)
    with tempfile.TemporaryDirectory() as folder:
        path, points, table = (str(Path(folder) / name) for name in ("m.h5", "x.npy", "x.csv"))
        model.save(path)
        rows = []
        for count in counts:
            write_points(points, count)
            code = PREDICT.format(scripts=str(HERE.parent), model=path, points=points, batch=batch)
            output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
            seconds, more, kept = map(float, output.stdout.split())
            size = f"{count * 40 / 2**20:.0f}"
            rows.append([f"{count:,}", f"{seconds:.1f}", f"{1e6 * seconds / count:.2f}", size])
            rows[-1] += [f"{more:.0f}", f"{kept:.0f}"]
        seconds = time_command(path, table, lines)
    rows.append(
        [f"{lines:,}, command, CSV", f"{seconds:.1f}", f"{1e6 * seconds / lines:.2f}", *"---"]
    )
    header = ["points", "time, s", "time per point, us", "array of points, MB", "other memory, MB", "results, MB"]  # fmt: skip
    shortest = min(float(row[2]) for row in rows)
    parts = [markdown(header, rows), limit_text(shortest), float32_text(model)]
    parts.append(quantiles_text(model, 128 if options.quick else 4096))
    text = "\n\n".join(["# Predictions for ten million points", INTRODUCTION, *parts])
    keep("ten_million.md", text, output_folder(options))


def write_points(path, count):
    """An array [count, 5] of standard normal numbers, float64, written a part at a time."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(count, 5))
    for start in range(0, count, BATCH):
        part = array[start : start + BATCH]
        part[:] = np.random.default_rng(start).normal(size=part.shape)


def time_command(model, table, count):
    """Seconds of `tfbnn predict` for a CSV file of so many points."""
    np.savetxt(
        table,
        np.random.default_rng(0).normal(size=(count, 5)),
        "%.8g",
        ",",
        header="a,b,c,d,e",
        comments="",
    )
    command = [sys.executable, "-m", "tfbnn", "predict", model, table, "-o", f"{table}.out.csv"]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def limit_text(shortest):
    """Return a text on the least time that a point takes, and whether the `shortest` time in us agrees."""
    able, networks, cores = limits(), NUM_CHAINS * NUM_RESULTS, num_cores()
    tanh = networks * WIDTH / able["tanh"] / cores
    products = networks * (WIDTH * 6 + WIDTH + 1) / able["products"]
    bytes_ = (5 + 2) * 8 / able["bytes"]
    told = ""
    if 1e6 * (tanh + products) > shortest:
        told = (
            "Whole predictions took less, so this is not a lower limit: the machine was probably slower when the speed was "
            "measured. "
        )
    return (
        "The speed of this machine was measured after the predictions. At this speed NumPy's tanh and products alone, on "
        f"arrays in the cache, take {1e6 * (tanh + products):.1f} us per point on {cores} cores ({1e6 * tanh:.1f} and "
        f"{1e6 * products:.1f} us). {told}Reading inputs and writing results at the bandwidth of one core, {able['bytes'] / 1e9:.1f} GB/s, takes "
        f"{1e6 * bytes_:.3f} us, so memory is not the limit."
    )


def float32_text(model):
    """Return a text on how far predictions in float32 are from those of the same weights in float64."""
    x = np.random.default_rng(2).normal(size=(2000, 5))
    double = tfbnn.BayesianMLP.from_ensemble(model.posterior.in_double)
    (mean, spread), (exact, stddev) = (
        one.predict(x, space="transformed") for one in (model, double)
    )
    return (
        "Networks are computed in float32. At 2000 points, compared with float64, means differ by at most "
        f"{np.max(np.abs(mean - exact) / stddev):.1e} standard deviations, and standard deviations by at most "
        f"{np.max(np.abs(spread / stddev - 1.0)):.1e} (relative)."
    )


def quantiles_text(model, count):
    """Time exact quantiles beside those of `predict`, without and with a calibration, and return a text."""
    x, ratios = np.random.default_rng(3).normal(size=(count, 5)), []
    for _ in range(2):

        def by_points(model=model):
            return model.predict(x, include_noise=True, quantiles=LEVELS)

        def exact(model=model):
            return model.predict_distribution(x).quantile(LEVELS)

        points, inverted = np.median(in_turns((by_points, exact), 5), axis=1)
        ratios.append(f"{1e3 * points:.0f} and {1e3 * inverted:.0f} ms ({inverted / points:.2f})")
        rows = np.random.default_rng(4).normal(size=(300, 5))
        noise = 1.0 + 0.5 * np.random.default_rng(5).normal(size=(300, 1))
        model.calibrate(rows, model.predict(rows).mean * np.abs(noise))
    return (
        f"Five quantiles at {count} points are computed by `predict(quantiles=...)`, which uses weighted points, and "
        "exactly by `predict_distribution(x).quantile(...)`. They take "
        f"{ratios[0]}, and with a calibration {ratios[1]}; ratios are in brackets."
    )


if __name__ == "__main__":
    main()
