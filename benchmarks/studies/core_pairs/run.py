"""Gradients and the compile time of a short fit in pairs with another checkout.

    python -m benchmarks core_pairs --old CHECKOUT [--new CHECKOUT --quick --output FOLDER]

Gradients: two resident processes, one with either checkout, take turns, so that both sides of a pair
see the same machine; one chain, and four on threads, as a fit has them. A short fit by NUTS has a process
of its own each time: wall clock and processor time from the call of `fit_posterior` to its end,
imports apart, of few transitions, so that nearly all of it is tracing and compiling; what the run's
own clock says; and what XLA compiled by TensorFlow's log. The table is benchmarks/results/core_pairs.md.
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder, revision
from benchmarks.lib.resident import HERE, Resident, ended_child
from benchmarks.lib.xla_log import LOGGING, compilations

NUM_ROWS, CHAINS = 11_746, (1, 4)
NETWORKS = ((5, 20, 20, 1), *((5, width, 1) for width in (32, 128, 512, 2048, 4096)))
TURNS, FITS = 7, 3
FIT = """
import json, time, warnings
import numpy as np, tfbnn
import tensorflow_probability
tensorflow_probability.mcmc.HamiltonianMonteCarlo  # its parts are imported at first use
warnings.simplefilter("ignore")
generator = np.random.default_rng(0)
x = generator.normal(size=(300, 3))
y = np.sin(x[:, :1]) + 0.1 * generator.normal(size=(300, 1))
wall, processor = time.perf_counter(), time.process_time()
model = tfbnn.BayesianMLP([3, 8, 1], prior=tfbnn.priors.Normal(1.0))
options = dict(kernel="nuts", pretraining=tfbnn.Pretraining(), num_burnin_steps=20, num_results=10)
run = model.fit_posterior(x, y, verbose=0, **options)
wall, processor = time.perf_counter() - wall, time.process_time() - processor
print(json.dumps({"wall": wall, "processor": processor, **run.seconds}))
"""


def main(arguments=None):
    """Times all pairs and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--old", type=Path, required=True, help="folder of a checkout")
    parser.add_argument("--new", type=Path, default=HERE.parent, help="default: this checkout")
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    sides = [side.resolve() for side in (options.old, options.new)]
    networks, turns, fits = (((5, 4, 1),), 1, 1) if options.quick else (NETWORKS, TURNS, FITS)
    with ExitStack() as stack:
        residents = [
            stack.enter_context(Resident("lib/resident_groups.py", side)) for side in sides
        ]
        lines = [line for layers in networks for line in gradients(residents, layers, turns)]
    header = ["network", "chains", "old, ms", "new, ms", "old / new, median", "old / new, range"]
    keep(
        "core_pairs.md",
        "# Time of the sampling engine at two revisions, measured in pairs\n\n"
        f"Old is the revision {revision(sides[0])}, new the revision {revision(sides[1])}. Times are medians over "
        "pairs. The ratio is the median of the ratios of the pairs, which differs from the ratio of the medians.\n\n"
        f"## Milliseconds per gradient of HMC on {NUM_ROWS} rows\n\n"
        f"The time of a run is divided by the gradients of all chains ({turns} pairs).\n\n"
        f"{markdown(header, lines)}\n\n## A short fit of 3-8-1 by NUTS on 300 rows\n\n"
        f"A fit has 4 chains of 30 transitions, in a process of its own ({fits} pairs). The run's clock is what "
        f"`run.seconds` says.\n\n{fit_table(sides, fits)}",
        folder,
    )


def gradients(residents, layers, turns):
    """Yields a line of the table for every number of chains."""
    for resident in residents:
        resident.ask("build", name="it", layers=layers, num_rows=NUM_ROWS, num_groups=max(CHAINS))
    for chains in CHAINS:
        pairs = []
        for turn in range(turns + 1):
            # Who goes first changes, too; the first turn warms up.
            order = (0, 1) if turn % 2 else (1, 0)
            found = {
                side: residents[side].ask("run", name="it", num_groups=chains) for side in order
            }
            if turn:
                pairs.append([found[0], found[1]])
        yield ["-".join(map(str, layers)), chains, *compared(pairs, 1e3)]
        print(layers, chains, pairs, file=sys.stderr, flush=True)
    for resident in residents:
        resident.ask("drop", name="it")


def fit_table(sides, fits):
    """The table of the short fit."""
    pairs = [[short_fit(side) for side in sides] for _ in range(fits)]
    names = {
        "wall clock of the fit": lambda one: one["wall"],
        "processor time of the fit": lambda one: one["processor"],
        "wall clock without warm-up and sampling": lambda one: (
            one["wall"] - one["warmup"] - one["sampling"]
        ),
        "the run's clock: startup": lambda one: one["startup"],
        "the run's clock: compile": lambda one: one["compile"],
        "the run's clock: pretraining": lambda one: one["pretraining"],
        "inside XLA's compiler": lambda one: one["compiler"],
    }
    lines = [
        [name, *compared([[value(old), value(new)] for old, new in pairs])]
        for name, value in names.items()
    ]
    programs = [", ".join(name for name, _ in side["programs"]) for side in pairs[0]]
    header = ["quantity", "old, s", "new, s", "old / new, median", "old / new, range"]
    return (
        f"{markdown(header, lines)}\n\nXLA compiles these programs at the old revision: {programs[0]}; "
        f"and these at the new one: {programs[1]}."
    )


def short_fit(side):
    """Seconds of a fit in a process of its own, and what XLA compiled there."""
    seconds, log = ended_child(["-c", FIT], side, **LOGGING)
    programs = compilations(log)
    return seconds | {"programs": programs, "compiler": sum(s for _, s in programs)}


def compared(pairs, factor=1.0):
    """Medians of old and new, times a factor, and median and range of the ratios old / new."""
    pairs = np.array(pairs)
    old, new = np.median(pairs, axis=0) * factor
    low, middle, high = np.quantile(pairs[:, 0] / pairs[:, 1], (0.0, 0.5, 1.0))
    return f"{old:.3g}", f"{new:.3g}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"


if __name__ == "__main__":
    main()
