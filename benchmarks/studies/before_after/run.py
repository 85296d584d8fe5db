"""Measure what a change of the package costs, by two checkouts in pairs; see benchmarks/results/before_after.md.

    python -m benchmarks before_after --old CHECKOUT [--new CHECKOUT --pairs 10]

Every figure comes of a process of its own with one checkout, and the two take turns, so that a
machine that drifts does not decide. A ratio is the median over the pairs of new / old. Gradients are
timed as in gradient_cost, without blackjax; predictions are of 1000 random networks 5-50-50-1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.lib.common import HERE, add_common_options, keep, markdown, output_folder, revision

GRADIENT = """
import json, sys
sys.path.append({root!r})
import tfbnn
from benchmarks.studies.gradient_cost import run as gradient_cost
settings = tfbnn.kernels.HMC(
    step_size=gradient_cost.STEP_SIZE, trajectory_jitter=0.0, preconditioner="identity"
)
run, compilation = gradient_cost.ours({layers}, settings)
times = [seconds / gradients for seconds, gradients in (run() for _ in range(gradient_cost.REPEATS))]
print(json.dumps([1e3 * sorted(times)[len(times) // 2], compilation]))
"""

PREDICTION = """
import json, time
import numpy as np, tfbnn
model, seconds = tfbnn.load({path!r}), []
x = np.random.default_rng(1).normal(size=({points}, 5))
model.predict(x)
for _ in range({repeats}):
    began = time.perf_counter()
    model.predict(x)
    seconds.append(time.perf_counter() - began)
print(json.dumps([1e3 * float(np.median(seconds))]))
"""

COLD = "import tfbnn; tfbnn.load({path!r}).predict([[0.1, 0.2, 0.3, 0.4, 0.5]]); print('[]')"


def main(arguments=None):
    """Times all figures in pairs and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--old", type=Path, required=True, help="folder of a checkout")
    parser.add_argument("--new", type=Path, default=HERE.parent, help="default: this checkout")
    parser.add_argument("--pairs", type=int, default=10, help="default 10")
    options = parser.parse_args(arguments)
    sides = [side.resolve() for side in (options.old, options.new)]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.h5")
        write_model(path)
        lines = [line for figure in figures(path) for line in compare(figure, sides, options.pairs)]
    table = markdown(("quantity", "old", "new", "new / old, median", "new / old, range"), lines)
    names = " and ".join(map(revision, sides))
    keep(
        "before_after.md",
        "# Two revisions in pairs: time of gradients and predictions\n\n"
        f"Old and new are the revisions {names}. Processes with either revision take turns, in {options.pairs} pairs. "
        "Times are medians over the pairs. The ratio is the median of the ratios of the pairs, which differs from the "
        "ratio of the medians; the last column has the smallest and the largest. A gradient is one of HMC, as in "
        "`gradient_cost.md`. Predictions are of 1000 random networks 5-50-50-1.\n\n"
        f"{table}",
        output_folder(options),
    )


def write_model(path):
    """Saves 1000 random networks."""
    from benchmarks.studies.prediction.run import random_model

    random_model([5, 50, 50, 1]).save(path)


def figures(path):
    """Tuples of names, code, and whether the wall-clock seconds of the process are the figure."""
    for layers in ((5, 20, 20, 1), (5, 50, 50, 1)):
        shape = "-".join(map(str, layers))
        names = f"gradient of {shape}, ms", f"compilation of the gradient of {shape}, s"
        yield names, GRADIENT.replace("{layers}", str(layers)), False
    for points, repeats in ((1, 500), (4096, 7)):
        code = PREDICTION.replace("{points}", str(points)).replace("{repeats}", str(repeats))
        yield (
            (f"prediction of {points} row{'s' if points > 1 else ''}, ms",),
            code.replace("{path!r}", repr(path)),
            False,
        )
    yield ("process that only imports tfbnn, s",), "import tfbnn; print('[]')", True
    yield (
        ("process that loads a model and predicts, s",),
        COLD.replace("{path!r}", repr(path)),
        True,
    )


def compare(figure, sides, num_pairs):
    """Yields a line of the table for every name of a figure."""
    names, code, by_wall = figure
    seen = np.array([[measure(code, side, by_wall) for side in sides] for _ in range(num_pairs)])
    ratios = seen[:, 1] / seen[:, 0]
    for index, name in enumerate(names):
        old, new = np.median(seen[:, :, index], axis=0)
        low, middle, high = np.quantile(ratios[:, index], (0.0, 0.5, 1.0))
        yield name, f"{old:.3g}", f"{new:.3g}", f"{middle:.3f}", f"{low:.2f} to {high:.2f}"
        print(name, f"{middle:.3f}", file=sys.stderr, flush=True)


def measure(code, side, by_wall):
    """The numbers that a process with the package of a checkout prints, or its seconds."""
    code = code.replace("{root!r}", repr(str(side)))
    environment = os.environ | {"PYTHONPATH": str(side)}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    wall = time.perf_counter() - began
    return [wall] if by_wall else json.loads(done.stdout)


if __name__ == "__main__":
    main()
