"""Transitions per second on the network of XOR, where overhead is everything.

    taskset -c 0 python -m benchmarks small_network_speed [--quick --output FOLDER]

One iteration advances all ten chains of MALA on a 2-2-1 network and four rows: by `fit_posterior`,
by its compiled block alone, by TFP as its manual has it under XLA, by blackjax if it is installed,
and by NumPy. A second table says when chains had better share a program. Runs alternate; rates are
the best of the repeats, per second of wall clock and of processor time, because others may share
the machine. Run it on one core: that is what `fit_posterior` needs for chains that share a program.
"""

import argparse
import importlib.util
import itertools
import time

import numpy as np

import tfbnn
from benchmarks.lib.blocks import make_group
from benchmarks.lib.chains import quiet
from benchmarks.lib.common import add_common_options, keep, output_folder
from benchmarks.studies.small_network_speed.report import report
from benchmarks.studies.small_network_speed.rivals import rivals
from tfbnn.kernels import MALA

X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = np.array([[0.0], [1.0], [1.0], [0.0]])
NUM_CHAINS, STEP_SIZE = 10, 0.5
KERNEL = MALA(step_size=STEP_SIZE, preconditioner="identity")
# Networks, rows: from XOR to one where arithmetic costs more than overhead.
SIZES = (
    ((2, 2, 1), 4),
    ((2, 5, 1), 20),
    ((4, 3, 1), 150),
    ((6, 10, 1), 300),
    ((5, 20, 20, 1), 1000),
)
SHARED = (1, 4, 10)


def network(layers):
    """A classifier with the N(0, I) prior."""
    return tfbnn.BayesianMLP(
        layers,
        activation="sigmoid",
        prior=tfbnn.priors.Normal(1.0),
        likelihood=tfbnn.likelihoods.Bernoulli(),
        x_transform=None,
    )


def starts(num_parameters, num_chains=NUM_CHAINS):
    return np.random.default_rng(0).normal(size=(num_chains, num_parameters)).astype(np.float32)


def block(layers, x, y, num_chains, length, num_blocks):
    """Function () -> seconds of wall clock and of processor time per iteration, on the block."""
    spec = network(layers).spec
    theta = starts(spec.layout.num_parameters, num_chains)
    group, _ = make_group(spec, KERNEL, x, y, theta, length, num_blocks)

    def run():
        wall, processor = time.perf_counter(), time.process_time()
        group.advance()
        return (time.perf_counter() - wall) / length, (time.process_time() - processor) / length

    return run


def fitting(length):
    """The same through `fit_posterior`: its sampling phase; what follows is not counted."""
    model, marks = network([2, 2, 1]), []

    def mark(event):
        if event["phase"] == "sampling":
            marks.append((event["transition"], time.perf_counter(), time.process_time()))

    def run():
        marks.clear()
        with quiet():
            model.fit_posterior(
                X,
                Y,
                kernel=KERNEL,
                num_chains=NUM_CHAINS,
                num_results=length,
                num_burnin_steps=0,
                pretraining=None,
                verbose=0,
                callbacks=[mark],
            )
        # The first block only starts the clock.
        (first, *began), (last, *ended) = marks[0], marks[-1]
        return tuple((end - begin) / (last - first) for begin, end in zip(began, ended))

    return run


def best_of(runs, repeats):
    """Dict name -> the smallest (wall, processor) seconds of alternating runs; the first warms up."""
    found = {name: [] for name in runs}
    for repeat, (name, run) in itertools.product(range(repeats + 1), runs.items()):
        seconds = run()
        if repeat:
            found[name].append(seconds)
    return {name: tuple(np.min(seconds, axis=0)) for name, seconds in found.items()}


def sharing(sizes, chains, length, repeats):
    """Rows (layers, number of rows, {chains: processor seconds per iteration of all of them})."""
    found = []
    for layers, num_rows in sizes:
        generator = np.random.default_rng(1)
        x = generator.normal(size=(num_rows, layers[0]))
        y = generator.integers(2, size=(num_rows, 1)).astype(float)
        count = max(16, length // (1 + num_rows // 20))
        runs = {n: block(layers, x, y, n, count, repeats + 1) for n in chains}
        best = best_of(runs, repeats)
        found.append((layers, num_rows, {n: processor for n, (_, processor) in best.items()}))
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    length, repeats = (256, 1) if options.quick else (4096, 8)
    runs = {
        "fit_posterior, sampling phase": fitting(3 * length if options.quick else 40_000),
        "its compiled block": block((2, 2, 1), X, Y, NUM_CHAINS, length, repeats + 1),
        "one chain at a time, ten blocks": _ten_times(
            block((2, 2, 1), X, Y, 1, length, repeats + 1)
        ),
        **rivals(X, Y, starts(9), STEP_SIZE, length),
    }
    speeds = best_of(runs, repeats)
    sizes, chains = (SIZES[:1], (1, NUM_CHAINS)) if options.quick else (SIZES, SHARED)
    shared = sharing(sizes, chains, length, repeats)
    missing = [name for name in ("jax", "blackjax") if importlib.util.find_spec(name) is None]
    keep("small_network_speed.md", report(speeds, shared, NUM_CHAINS, missing), folder)


def _ten_times(run):
    return lambda: tuple(NUM_CHAINS * seconds for seconds in run())


if __name__ == "__main__":
    main()
