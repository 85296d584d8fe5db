"""Basins of nearly noise-free tables: R-hat within, weights in nats.

    TFBNN_DATA=folder python -m benchmarks basins [--only ROW ...] [--runs FOLDER] [--minutes 6]

Settings are rows of benchmarks/studies/convergence/run.py. With --runs a row goes on where an earlier call has
left it, for so many minutes at a time; the table is benchmarks/results/basins.md.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import numpy as np

import tfbnn
from benchmarks.lib.chains import Deadline, convergence, fit, predictions, quiet
from benchmarks.lib.common import keep
from benchmarks.lib.problems import load
from benchmarks.lib.store import Store
from benchmarks.studies.basins.report import report
from benchmarks.studies.convergence.run import ROWS as SETTINGS
from benchmarks.studies.convergence.run import plan


@dataclasses.dataclass(frozen=True)
class Row:
    """One run.

    Attributes:
        setting: Name of a row of benchmarks/studies/convergence/run.py.
        options: What differs, as arguments of `fit_posterior`.
        minutes: Wall clock that it is planned for, basins not included.
    """

    setting: str
    options: dict = dataclasses.field(default_factory=dict)
    minutes: float = 6.0


ROWS = {
    "tiny": Row("tiny"),
}


def measure(row, minutes, quick, seed, folder):
    """Runs one row, or goes on with it; returns what the table needs, as JSON values.

    None before the first draws.
    """
    setting = SETTINGS[row.setting]
    model, run, problem = sample(row, setting, minutes, quick, seed, folder)
    if not run.num_results:
        return None
    began = time.perf_counter()
    found = run.basins()
    seconds = time.perf_counter() - began
    print(run.report(details=True), flush=True)
    with quiet():
        log_prob = model.posterior.sample_stats["lp"]
    return {
        "about": setting.about,
        "layers": setting.layers,
        "parameters": model.spec.layout.num_parameters,
        "draws": run.num_results,
        "num_burnin_steps": run.num_burnin_steps,
        "notes": run.notes,
        "seconds": run.seconds | {"basins": seconds},
        # The last quarter: where the chain is now, not where it came from.
        "log_prob": log_prob[:, -(-3 * run.num_results // 4) :].mean(axis=1).tolist(),
        "labels": found.labels.tolist(),
        "log_evidence": found.log_evidence.tolist(),
        "log_evidence_stderr": found.log_evidence_stderr.tolist(),
        "is_bridged": np.isfinite(found.log_evidence_stderr).tolist(),
        "log_weights": found.log_weights.tolist(),
        "log_weight_stderr": found.log_weight_stderr.tolist(),
        "all": convergence(predictions(model, problem)),
        "within": [
            convergence(predictions(model, problem)[found.labels == basin])
            for basin in range(len(found.log_evidence))
        ],
        **errors(model, problem, found.labels),
    }


def sample(row, setting, minutes, quick, seed, folder):
    """(Model, Run, Problem) of a row."""
    problem, settings = load(setting.problem)
    deadline = Deadline(60.0 * (minutes or row.minutes))
    if folder is not None and folder.exists():
        with quiet():
            return *tfbnn.resume(folder, callbacks=[deadline]), problem
    numbers = plan(setting, 60.0 * row.minutes)
    model, run = fit(
        setting.layers,
        settings | setting.model,
        problem,
        kernel=setting.kernel,
        pretraining=setting.pretraining(quick),
        seed=seed,
        callbacks=[deadline],
        output=folder,
        **(numbers | row.options),
    )
    return model, run, problem


def errors(model, problem, labels):
    """RMSE on the test rows, transformed: of the average over all chains and of the best basin."""
    with quiet():
        posterior = model.posterior
        best = posterior.with_chain_weights((labels == 0) / np.sum(labels == 0))
        return {
            name: one.evaluate(*problem.test)["rmse_transformed"]
            for name, one in (
                ("rmse", model),
                ("rmse_best", tfbnn.BayesianMLP.from_ensemble(best)),
            )
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--minutes", type=float, help="of this call, for every row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget all rows of earlier runs")
    parser.add_argument("--again", action="store_true", help="run the rows named even if kept")
    parser.add_argument("--quick", action="store_true", help="short pretraining, to try the script")
    parser.add_argument("--runs", type=Path, help="folder for run folders, to go on in")
    options = parser.parse_args()
    if options.runs is not None:
        options.runs.mkdir(parents=True, exist_ok=True)
    store = Store("basins", fresh=options.fresh)
    for name in options.only:
        if name in store and not options.again:
            continue
        row = ROWS[name]
        folder = None if options.runs is None else options.runs / name
        found = measure(row, options.minutes, options.quick, options.seed, folder)
        if found is None:
            print(f"{name} has no draws yet: call the script again.")
            continue
        store.add(name, found)
        keep("basins.md", report({name: store.rows[name] for name in ROWS if name in store}))


if __name__ == "__main__":
    main()
