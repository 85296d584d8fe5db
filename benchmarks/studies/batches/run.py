"""Rows that arrive in four batches, each under the posterior of those before it as prior.

    TFBNN_DATA=folder python -m benchmarks batches [--seeds 0 1 2] [--keep 2000] [--fresh]
                                                   [--quick --output FOLDER]

pp -> chi10 chi10 as in the study neutralino, 5-20-20-1, its training rows in a random order. All fits have the
same kernel, warm-up and draws; what a gradient costs goes with the rows of the batch and the earlier ones that
are kept for it: here all, or with --keep as few as the package would of a table beyond its limit. Scores are of
the test rows. Rows are kept as they finish.
"""

import argparse
import time
from functools import partial

import numpy as np

from benchmarks.lib.chains import fit, num_gradients, scores
from benchmarks.lib.common import add_common_options, machine, output_folder
from benchmarks.lib.problems import NTK, Problem, neutralino
from benchmarks.lib.store import Store
from tfbnn.fit import condensing
from tfbnn.kernels import HMC
from tfbnn.priors import FromPosterior

BATCHES, LAYERS = 4, [5, 20, 20, 1]
# Of batches before which few rows are kept.
FEW = ", few kept"
KERNEL = HMC(num_leapfrog_steps=32, preconditioner="gauss_newton", target_accept_prob=0.8)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--keep", type=int, help="earlier rows that are kept at least")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    store = Store("batches", options.fresh, output_folder(options))
    lengths = {"num_burnin_steps": 200, "num_results": 100}
    most, seeds = None, options.seeds
    if options.quick:
        lengths, most, seeds = {"num_burnin_steps": 20, "num_results": 10}, 80, [0]
    few = ""
    if options.keep is not None:
        condensing._FEWEST, few = options.keep, FEW
    for seed in seeds:
        given = (seed, most, lengths)
        for batch in range(BATCHES):
            _keep(store, f"batch {batch + 1}{few}", seed, partial(_sequence, batch, *given))
        _keep(store, "the last batch alone", seed, partial(_alone, -1, *given))
        _keep(store, "all rows at once", seed, partial(_alone, None, *given))
    text = report(list(store.rows.values()))
    (output_folder(options) / "batches.md").write_text(text)
    print(text)


_MODELS = {}


def _keep(store, what, seed, measure):
    key = f"{what} {seed}"
    if key not in store:
        store.add(key, {"what": what, "seed": seed, **measure(), "machine": machine()})


def _sequence(batch, seed, most, lengths):
    """The fit to one batch, after those before it, in this process."""
    for earlier in range(batch):
        if (seed, earlier) not in _MODELS:
            _sequence(earlier, seed, most, lengths)
    began, settings = time.perf_counter(), dict(NTK)
    if batch:
        settings = {"prior": FromPosterior(_MODELS[seed, batch - 1])}
    condensed = time.perf_counter() - began
    model, row = _fit(_rows(batch, seed, most), settings, seed, lengths)
    _MODELS[seed, batch] = model
    return row | {"condensing": condensed}


def _alone(batch, seed, most, lengths):
    return _fit(_rows(batch, seed, most), dict(NTK), seed, lengths)[1] | {"condensing": 0.0}


def _rows(batch, seed, most):
    """The Problem with one batch of the training rows, or all of them, in the order of a seed."""
    problem = neutralino()
    x, y = problem.train
    order = np.random.default_rng(seed).permutation(len(x))[:most]
    chosen = order if batch is None else np.array_split(order, BATCHES)[batch]
    return Problem((x[chosen], y[chosen]), None, problem.test)


def _fit(problem, settings, seed, lengths):
    model, run = fit(
        LAYERS,
        settings,
        problem,
        kernel=KERNEL,
        until=None,
        calibrate=False,
        seed=seed,
        verbose=0,
        **lengths,
    )
    found = scores(model, problem)
    noise = model.posterior.draws[:, :, model.spec.layout.log_noise_scale]
    return model, {
        "rows": len(problem.train[0]),
        "kept": 0 if model.spec.earlier is None else model.spec.earlier.num_kept,
        "lpd": float(found["log_predictive_density"]),
        "noise": float(np.exp(noise).mean()),
        "gradients": sum(num_gradients(run, phase) for phase in ("warmup", "sampling")),
        "seconds": run.seconds,
        "pretraining": run.pretraining,
    }


def report(rows):
    """The table as Markdown."""
    lines = [
        "# Four batches of rows, one after the other",
        "",
        "The training rows of pp -> chi10 chi10 (cross sections in fb, networks 5-20-20-1) arrive in four batches. "
        "The prior of a batch is the posterior of the earlier batches (`priors.FromPosterior`). It is represented by "
        'all their rows or, in the fits "few kept", by four rows per parameter. Every fit computes the same number of '
        'gradients. "Gradients x rows" multiplies this number by the rows of the batch and the earlier rows kept. '
        "The log predictive density is the mean per test row, and the noise scale is in standard deviations of log10 of the "
        "target. Condensing is the choice of the earlier rows to keep.",
        "",
        "| fit | seed | rows | earlier rows kept | log predictive density | noise scale | gradients x rows | "
        "pretraining, s | chains, s | condensing, s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        seconds = row["seconds"]
        chains = sum(seconds.get(name, 0.0) for name in ("warmup", "sampling", "compile"))
        lines.append(
            f"| {row['what']} | {row['seed']} | {row['rows']} | {row['kept']} | {row['lpd']:.3f} | "
            f"{row['noise']:.4f} | {row['gradients'] * (row['rows'] + row['kept']):.2e} | "
            f"{seconds['pretraining']:.0f} | {chains:.0f} | {row['condensing']:.0f} |"
        )
    lines += ["", *_means(rows), "", *_machines(rows)]
    return "\n".join(lines) + "\n"


def _machines(rows):
    """A line for each machine, with the fits that ran there."""
    fits = {}
    for row in rows:
        fits.setdefault(row["machine"], {})[row["what"]] = None
    if len(fits) == 1:
        return [*fits]
    return [f"- {'; '.join(names)}: {found}" for found, names in fits.items()]


def _means(rows):
    """Lines on the means over seeds that have all."""
    alone, at_once = "the last batch alone", "all rows at once"
    found = {(row["what"], row["seed"]): row["lpd"] for row in rows}
    lines = []
    for last in (f"batch {BATCHES}", f"batch {BATCHES}{FEW}"):
        names = (last, alone, at_once)
        seeds = sorted(s for w, s in found if w == last and all((n, s) in found for n in names))
        if seeds:
            means = [np.mean([found[name, seed] for seed in seeds]) for name in names]
            lines.append(
                f"- Mean log predictive density over seeds {', '.join(map(str, seeds))}: {means[0]:.3f} "
                f"({last}), {means[1]:.3f} ({alone}), {means[2]:.3f} ({at_once})."
            )
    return lines


if __name__ == "__main__":
    main()
