"""Airfoil self-noise: tfbnn against bde, Bayesian deep ensembles by MILE, on the same rows.

    TFBNN_DATA=folder python -m benchmarks airfoil [--seeds 0 1 2] [--bde-python PATH] [--fresh]

Every row of the table is fitted in a process of its own, one after the other, so that the threads
of one package do not disturb the other. The optional peer is `sklearn-contrib-bde==1.0.2`; its
import name is bde. `--bde-python` names an interpreter that has it. Finished rows are kept, so that
a killed script goes on where it was; the table is benchmarks/results/airfoil.md.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

import numpy as np

from benchmarks.studies.airfoil.rival import fit_bde

LAYERS = (5, 16, 16, 16, 16, 16, 1)
NUM_CHAINS, NUM_BURNIN, NUM_RESULTS = 10, 600, 200
VALIDATION_SHARE = 0.1
OURS = (
    f"{'-'.join(map(str, LAYERS))} silu, ntk, learned Gaussian noise, ADAM 10 000, "
    f"HMC 64, {NUM_CHAINS} x ({NUM_BURNIN} + {NUM_RESULTS})"
)
ABOUT = {
    "bde": "5-16-16-16-16-2 ReLU, heteroscedastic, 4 x (50 000 + 1000 thinned by 10)",
    "tfbnn": f"same inputs as bde, {OURS}",
    "log_frequency": f"log10 of the frequency as input, {OURS}",
    "stacking": f"90 % of the training rows, the rest for stacking, {OURS}",
}
RESULT, MISSING = "RESULT ", "No module named 'bde'"


def fit_tfbnn(rows, seed, log_frequency=False, stacks=False):
    """Fits our setting and scores it, with `stacks` also after chain stacking."""
    began = time.perf_counter()
    import tfbnn
    from tfbnn.kernels import HMC
    from tfbnn.likelihoods import Gaussian
    from tfbnn.priors import Normal

    imported = time.perf_counter()
    inputs = _log_frequency if log_frequency else np.asarray
    model = tfbnn.BayesianMLP(
        LAYERS,
        activation="silu",
        parameterization="ntk",
        prior={"kernel": Normal(2.5), "bias": Normal(1.0)},
        likelihood=Gaussian("learned"),
    )
    run = model.fit_posterior(
        inputs(rows["x"]),
        rows["y"],
        kernel=HMC(num_leapfrog_steps=64, preconditioner="diagonal"),
        num_chains=NUM_CHAINS,
        num_burnin_steps=NUM_BURNIN,
        num_results=NUM_RESULTS,
        # No Newton polish: on noisy rows it costs more than ADAM and fits the noise of the start.
        pretraining=tfbnn.Pretraining(
            epochs=10_000,
            batch_size=None,
            learning_rate=0.02,
            learning_rate_schedule="cosine",
            newton_iterations=0,
        ),
        seed=seed,
        verbose=0,
    )
    test = inputs(rows["x_test"]), rows["y_test"]
    result = {"scores": _scores(model, test), "convergence": _convergence(run)}
    if stacks:
        stacking = model.stack_chains(inputs(rows["x_validation"]), rows["y_validation"])
        result |= {"stacked": _scores(model, test), "weights": list(map(float, stacking.weights))}
    return result | {"seconds": {"import": imported - began} | run.seconds}


def _log_frequency(x):
    return np.column_stack([np.log10(x[:, 0]), x[:, 1:]])


def _scores(model, test):
    scores = model.evaluate(*test)
    return {
        "rmse": scores["rmse_transformed"],
        "lpd": scores["log_predictive_density_transformed"],
        "moment_matched": scores["log_predictive_density_moment_matched"],
        "coverage": [scores["coverage"][k] for k in (1, 2)],
    }


def _convergence(run):
    rhat, ess = run.diagnosis.rhat_function, run.diagnosis.ess_function
    return {
        "rhat": float(np.nanmedian(rhat)),
        "rhat_q95": float(np.nanquantile(rhat, 0.95)),
        "ess": float(np.nanmedian(ess)),
        "divergent": int(run.num_divergent.sum()),
    }


FITS = {
    "bde": fit_bde,
    "tfbnn": fit_tfbnn,
    "log_frequency": lambda rows, seed: fit_tfbnn(rows, seed, log_frequency=True),
    "stacking": lambda rows, seed: fit_tfbnn(rows, seed, stacks=True),
}


def work(name, seed, path):
    """Fit one row and print it as JSON, in a process of its own."""
    with np.load(path) as rows:
        result = FITS[name](dict(rows), seed)
    print(RESULT + json.dumps(result, default=float), flush=True)


def fit_row(name, seed, python, folder):
    """Fits one row in a new process: its result with wall seconds, or {"skipped": why}."""
    command = [
        python,
        __file__,
        "--work",
        name,
        "--seeds",
        str(seed),
        "--rows",
        _rows(name, folder),
    ]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.perf_counter() - began
    lines = [line for line in done.stdout.splitlines() if line.startswith(RESULT)]
    if done.returncode == 0 and lines:
        return {**json.loads(lines[-1][len(RESULT) :]), "wall": wall}
    # Only the absence of the peer is a reason to go on: any other failure is to be seen.
    if name == "bde" and MISSING in done.stderr:
        return {"skipped": f"{MISSING} in the interpreter of --bde-python"}
    raise SystemExit(f"Row {name}, seed {seed}, failed:\n{done.stderr[-2000:]}")


def _rows(name, folder):
    """Writes the raw rows of one table row to a file, which every package reads alike."""
    from benchmarks.lib.problems import airfoil

    problem = airfoil(VALIDATION_SHARE if name == "stacking" else 0.0)
    parts = {"": problem.train, "_test": problem.test, "_validation": problem.validation}
    arrays = {
        f"{letter}{part}": array
        for part, pair in parts.items()
        if pair is not None
        for letter, array in zip("xy", pair)
    }
    path = Path(folder) / f"{name}.npz"
    np.savez(path, **arrays)
    return str(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=FITS, default=list(FITS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--bde-python", default=sys.executable, help="interpreter that has bde")
    parser.add_argument("--fresh", action="store_true", help="forget the rows of an earlier run")
    parser.add_argument("--work", choices=FITS, help=argparse.SUPPRESS)
    parser.add_argument("--rows", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.seeds[0], options.rows)
    from benchmarks.lib.common import keep
    from benchmarks.lib.store import Store
    from benchmarks.studies.airfoil.report import report

    store, skipped = Store("airfoil", options.fresh), []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            for seed in options.seeds:
                if (key := f"{name}/{seed}") not in store:
                    python = options.bde_python if name == "bde" else sys.executable
                    row = {"row": name, "seed": seed, **fit_row(name, seed, python, folder)}
                    # A skipped row is not kept: the peer may be there next time.
                    skipped.append(row) if "skipped" in row else store.add(key, row)
                keep("airfoil.md", report([*store.rows.values(), *skipped], ABOUT))


if __name__ == "__main__":
    main()
