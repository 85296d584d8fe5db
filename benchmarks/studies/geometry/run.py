"""Measure what start and geometry are worth, with three preconditioners x two starts on five problems.

    TFBNN_DATA=folder python -m benchmarks geometry [--only PROBLEM ...]

Two short chains of HMC per row. Rows are kept as they finish, so that the script goes on where it
was killed; table and figure are benchmarks/results/geometry.*.
"""

import argparse
import dataclasses
import itertools

import numpy as np

from benchmarks.lib.chains import convergence, fit, num_gradients, predictions, quiet, scores
from benchmarks.lib.common import RESULTS, keep, revision
from benchmarks.lib.problems import adam, load
from benchmarks.lib.store import Store
from benchmarks.studies.geometry.report import figure, report
from tfbnn.kernels import HMC

PRECONDITIONERS = ("identity", "diagonal", "gauss_newton")
STARTS = ("ADAM", "ADAM + LM")
NUM_CHAINS, NUM_LEAPFROG_STEPS, EPOCHS = 2, 32, 1000
TRACE_POINTS = 100


@dataclasses.dataclass(frozen=True)
class Case:
    """One problem, and how much a row of it may cost.

    Attributes:
        data: Name for `problems.load`.
        layers: As for `BayesianMLP`.
        newton_iterations: Levenberg-Marquardt iterations per chain, at most.
        num_burnin_steps, num_results: Transitions per chain.
    """

    data: str
    layers: tuple
    newton_iterations: int
    num_burnin_steps: int
    num_results: int


CASES = {
    "neutralino 5-20-20-1": Case("raw", (5, 20, 20, 1), 100, 300, 300),
    "neutralino 5-50-1": Case("raw", (5, 50, 1), 100, 300, 300),
    # An iteration, and each renewal of the whitening, takes seconds per chain with 2901 parameters;
    # a shorter warm-up would leave too few transitions to settle the step size.
    "neutralino 5-50-50-1": Case("raw", (5, 50, 50, 1), 12, 100, 40),
    "airfoil 5-32-32-1": Case("airfoil", (5, 32, 32, 1), 60, 200, 150),
    "yacht 6-50-1": Case("yacht", (6, 50, 1), 100, 600, 600),
}


def measure(case, preconditioner, start, quick, seed):
    """Runs one row; returns what the table and the figure need, as JSON values."""
    problem, settings = load(case.data)
    iterations = (3 if quick else case.newton_iterations) if "LM" in start else 0
    shorten = 10 if quick else 1
    model, run = fit(
        case.layers,
        settings,
        problem,
        kernel=HMC(num_leapfrog_steps=NUM_LEAPFROG_STEPS, preconditioner=preconditioner),
        pretraining=adam(EPOCHS // shorten, iterations),
        num_chains=NUM_CHAINS,
        num_burnin_steps=case.num_burnin_steps // shorten,
        num_results=case.num_results // shorten,
        seed=seed,
    )
    test, draws = scores(model, problem), predictions(model, problem)
    with quiet():
        log_prob = model.posterior.sample_stats["lp"].mean(axis=0)
    quarter = max(1, len(log_prob) // 4)
    every = -(-len(log_prob) // TRACE_POINTS)
    return {
        "preconditioner": preconditioner,
        "start": start,
        "parameters": model.spec.layout.num_parameters,
        "num_burnin_steps": run.num_burnin_steps,
        "num_results": run.num_results,
        "newton_iterations": iterations,
        "step_size": float(np.median(run.step_size)),
        "acceptance": float(run.acceptance_rate.mean()),
        "log_prob_start": float(run.start_log_prob.mean()),
        "log_prob_first": float(log_prob[:quarter].mean()),
        "log_prob_last": float(log_prob[-quarter:].mean()),
        "trace": [round(float(value), 1) for value in log_prob[::every]],
        "trace_every": every,
        "rmse": test.get("rmse_log10", test["rmse"]),
        "gradients": num_gradients(run, "sampling"),
        **convergence(draws),
        "seconds": run.seconds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES), metavar="PROBLEM")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget all rows of earlier runs")
    parser.add_argument("--quick", action="store_true", help="a tenth of the length, to try it")
    options = parser.parse_args()
    store = Store("geometry", fresh=options.fresh)
    everything = list(itertools.product(CASES, PRECONDITIONERS, STARTS))
    for name, preconditioner, start in everything:
        key = f"{name}, {preconditioner}, {start}"
        if name in options.only and key not in store:
            case = CASES[name]
            row = measure(case, preconditioner, start, options.quick, options.seed)
            store.add(key, {"problem": name, "commit": revision(), **row})
            print(key, store.rows[key]["seconds"], flush=True)
    keys = (", ".join(parts) for parts in everything)
    rows = [store.rows[key] for key in keys if key in store]
    keep("geometry.md", report(rows))
    figure(rows, RESULTS / "geometry.png")


if __name__ == "__main__":
    main()
