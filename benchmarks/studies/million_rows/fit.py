"""One fit of `run.py` in a process of its own, which may be killed: JSON in, JSON out.

    python benchmarks/studies/million_rows/fit.py WORK '{"num_rows": 1000000, "layers": [5, 20, 20, 1], ...}'

WORK has x.npy, y.npy and exact.npy; the first `num_rows` are fitted, the last `held_out` scored. The last line
that is printed is the result.
"""

import json
import os
import signal
import sys
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

import numpy as np

import tfbnn
from benchmarks.lib.process_memory import forget_largest, resident_megabytes
from tfbnn.kernels import HMC

# Of a fit before the one that counts: what TensorFlow and compilers take once.
FEW_ROWS = 300


def main():
    """Fits, scores, prints."""
    work, asked = Path(sys.argv[1]), json.loads(sys.argv[2])
    x, y, exact = (np.load(work / f"{name}.npy", mmap_mode="r") for name in ("x", "y", "exact"))
    count, layers = asked["num_rows"], asked["layers"]
    settings, search = dict(asked["options"]), asked["pretraining"]
    if search is not None:
        settings["pretraining"] = tfbnn.Pretraining(**search)
    if "num_leapfrog_steps" in asked:
        settings["kernel"] = HMC(num_leapfrog_steps=asked["num_leapfrog_steps"])
    warnings.simplefilter("ignore")
    warm_up(layers, x, y)
    forget_largest()
    baseline, _ = resident_megabytes()
    mark = work / "killed"

    def kill(event):
        """Ends this process as kill -9 does, once, after so many transitions of warm-up."""
        if event["phase"] == "warmup" and event["transition"] >= asked["kill_after"]:
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    model = tfbnn.BayesianMLP(layers)
    if asked["kill_after"]:
        settings |= {"output": work / "run", "resume": True, "callbacks": [kill]}
    run = model.fit_posterior(x[:count], y[:count], verbose=1, **settings)
    _, largest = resident_megabytes()
    held_out = slice(len(x) - asked["held_out"], None)
    scores = model.evaluate(x[held_out], y[held_out])
    floor = float(np.sqrt(np.mean(np.log10(y[held_out] / exact[held_out]) ** 2)))
    print(run.report(details=True), file=sys.stderr, flush=True)
    found = {
        "seconds": dict(run.seconds),
        "growth": largest - baseline,
        "rows": (x[:count].nbytes + y[:count].nbytes) / 2**20,
        "rmse": float(scores["rmse_log10"]),
        "floor": floor,
        "coverage": [float(scores["coverage"][level]) for level in (1, 2)],
        "verdict": run.diagnosis.headline,
        "kernel": run.kernel,
    }
    print(json.dumps(found), flush=True)


def warm_up(layers, x, y):
    """A fit of a few rows by the programs that the other has."""
    settings = dict(num_results=4, num_burnin_steps=4, until=None, verbose=0)
    settings["pretraining"] = tfbnn.Pretraining(epochs=2, newton_iterations=2)
    settings["kernel"] = HMC(num_leapfrog_steps=2)
    tfbnn.BayesianMLP(layers).fit_posterior(x[:FEW_ROWS], y[:FEW_ROWS], **settings)


if __name__ == "__main__":
    main()
