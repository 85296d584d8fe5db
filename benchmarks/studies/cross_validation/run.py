"""Measure what each fold of a five-fold cross-validation of a tiny network costs besides its transitions.

    python -m benchmarks cross_validation [--quick --output FOLDER]

`BayesianMLP([3, 8, 1])`, four chains of few transitions, in a new process for every kernel and way to
cut the rows: 307 rows in five folds, which are of two sizes, and 310 in five of all different sizes.
Overhead is the wall clock of the fit and of the score of the rows left out, without pretraining's
steps, warm-up and sampling. Programs are those that XLA compiled by TensorFlow's log, traces those of
all functions that the package hands to it. The table is benchmarks/results/cross_validation.md.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder, revision
from benchmarks.lib.resident import HERE, ended_child
from benchmarks.lib.xla_log import LOGGING, NEXT_PART, compilations

CUTS = {"five equal folds": (62, 62, 61, 61, 61), "five unequal folds": (30, 45, 60, 75, 100)}
KERNELS = {"hmc": "HMC, 16 leapfrog steps", "nuts": "NUTS"}


def main(arguments=None):
    """Fits all folds and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument(
        "--checkout", type=Path, default=HERE.parent, help="whose package; default: this one"
    )
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    checkout = options.checkout.resolve()
    cuts, kernels = CUTS, KERNELS
    if options.quick:
        cuts, kernels = {"two folds": (20, 30)}, {"hmc": KERNELS["hmc"]}
    lines, totals = [], []
    for kernel, title in kernels.items():
        for cut, sizes in cuts.items():
            folds, programs = measure(checkout, kernel, sizes)
            lines += fold_lines(title, folds, programs)
            totals.append([title, cut, sum(map(len, programs)), *total_cells(folds)])
            print(*totals[-1], file=sys.stderr, flush=True)
    header = [
        "kernel",
        "folds",
        "programs",
        "overhead of the first fold, s",
        "largest overhead of the others, s",
    ]
    each = [
        "kernel",
        "rows",
        "programs",
        "traces",
        "fit, s",
        "CPU time of the fit, s",
        "overhead, s",
    ]
    keep(
        "cross_validation.md",
        f"# Cross-validation of 3-8-1: time besides the transitions\n\nRevision {revision(checkout)}. Each fold is a "
        "fit with 4 chains of 30 transitions. Programs are those that XLA compiles. Overhead is the wall-clock time of "
        "the fit and of `evaluate` on the rows left out, without pretraining, warm-up and sampling. Most of it is "
        "compilation. The second table has a line for each fold. The column traces has the number of functions that TensorFlow traces.\n\n"
        f"{markdown(header, totals)}\n\n"
        f"{markdown([*each, 'pretraining, s', 'compilation, s', 'evaluate, s'], lines)}",
        folder,
    )


def measure(checkout, kernel, sizes):
    """The seconds of each fold, and the list of programs that XLA compiled in it."""
    arguments = [Path(__file__).with_name("folds.py"), kernel, ",".join(map(str, sizes))]
    folds, log = ended_child(arguments, checkout, **LOGGING)
    _, *logs = log.split(NEXT_PART)
    return folds, list(map(compilations, logs))


def overhead(fold):
    """Wall-clock seconds of a fit and its score that are no steps of pretraining and of chains."""
    return fold["fit"] + fold["evaluate"] - fold["pretraining"] - fold["warmup"] - fold["sampling"]


def fold_lines(title, folds, programs):
    """Lines of the table of single folds."""
    for fold, compiled in zip(folds, programs):
        names = ", ".join(name for name, _ in compiled)
        seconds = ("fit", "processor", overhead, "pretraining", "compile", "evaluate")
        values = [part(fold) if callable(part) else fold[part] for part in seconds]
        count = f"{len(compiled)} ({names})" if compiled else "0"
        yield [title, fold["rows"], count, fold["traces"], *(f"{value:.2f}" for value in values)]


def total_cells(folds):
    """Overhead of the first fold, and the largest of the others."""
    first, *others = map(overhead, folds)
    return f"{first:.2f}", f"{max(others):.2f}"


if __name__ == "__main__":
    main()
