"""Measure the longest block of a fit, during which its chain group can neither report nor be stopped.

    python -m benchmarks prompt_blocks [--quick --output FOLDER]

Fits through the public API whose transitions cost very different amounts, every call of
`ChainGroup.advance` timed. A block should take about a second at most, or its one transition if that takes
longer. The table is benchmarks/results/prompt_blocks.md.
"""

import argparse
import sys
import time
import warnings
from typing import NamedTuple

import tfbnn
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.timed_groups import network, random_rows


class Fit(NamedTuple):
    """A fit whose blocks are timed: tanh, unit noise, no pretraining.

    Attributes:
        title: In the table.
        layers: Sizes of the layers.
        num_rows: Rows, random ones.
        kernel: Kernel or its name.
        num_transitions: Of warm-up, and as many draws.
        num_chains: Chains.
    """

    title: str
    layers: tuple
    num_rows: int
    kernel: object
    num_transitions: tuple
    num_chains: int = 4


SMALL = (3, 8, 1)
FITS = (
    Fit("NUTS", SMALL, 300, "nuts", (60, 60)),
    Fit("NUTS, depth 6", (9, 450, 1), 17_000, tfbnn.kernels.NUTS(max_tree_depth=6), (8, 4), 1),
    Fit("HMC, 64 steps", (5, 512, 1), 11_746, tfbnn.kernels.HMC(), (10, 10), 1),
    Fit("PowerPosterior of NUTS", SMALL, 300, tfbnn.kernels.PowerPosterior("nuts"), (20, 20), 1),
    Fit("random walk", SMALL, 300, "random_walk_metropolis", (20_000, 20_000)),
)
QUICK = (Fit("HMC, 64 steps", SMALL, 300, tfbnn.kernels.HMC(), (10, 10), 1),)


class Call(NamedTuple):
    """One block: seconds of the wall clock, of the process meanwhile, and the work it made."""

    seconds: float
    processor: float
    transitions: int
    gradients: int


def main(arguments=None):
    """Times the blocks of all fits and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    lines = []
    for fit in QUICK if options.quick else FITS:
        began = time.perf_counter()
        lines.append(line(fit, calls(fit)))
        print(*lines[-1], f"{time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    header = ["kernel", "network", "rows", "chains", "transitions", "blocks", "longest block, s"]
    of_longest = ["its processor time, s", "its transitions", "its gradients", "ms per gradient"]
    keep(
        "prompt_blocks.md",
        "# Time of the longest block of a fit\n\nA block is the part of a chain between two points at which the fit can be "
        "stopped. The table has the transitions (warm-up + sampling) of each chain, and the number of blocks of all "
        "chains, which share the cores. The other columns are of the longest block: its wall-clock time, the processor time of all "
        "threads in it, its transitions, its gradients, which follow each other, and the time of one gradient. If the "
        "processor time is much less than the wall-clock time, other processes ran.\n\n"
        f"{markdown([*header, *of_longest], lines)}",
        folder,
    )


def calls(fit):
    """All blocks of a fit, in the order in which they ended."""
    from tfbnn.engine.sampling.chain_group import ChainGroup

    found, advance = [], ChainGroup.advance

    def timed(group, at_most=None):
        began, processor = time.perf_counter(), time.process_time()
        made = advance(group, at_most)
        processor = time.process_time() - processor
        found.append(Call(time.perf_counter() - began, processor, *made))
        return made

    num_burnin_steps, num_results = fit.num_transitions
    ChainGroup.advance = timed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few draws have converged nowhere
            network(fit.layers, "float32").fit_posterior(
                *random_rows(fit.layers, fit.num_rows),
                kernel=fit.kernel,
                num_chains=fit.num_chains,
                num_burnin_steps=num_burnin_steps,
                num_results=num_results,
                pretraining=None,
                seed=0,
                verbose=0,
            )
    finally:
        ChainGroup.advance = advance
    return found


def line(fit, found):
    """Return the line of the table for one fit."""
    longest = max(found)
    shape = "-".join(map(str, fit.layers))
    transitions = " + ".join(map(str, fit.num_transitions))
    cost = f"{1e3 * longest.seconds / longest.gradients:.3g}" if longest.gradients else "none"
    seconds = f"{longest.seconds:.2f}", f"{longest.processor:.2f}"
    cells = *seconds, longest.transitions, longest.gradients, cost
    return [fit.title, shape, fit.num_rows, fit.num_chains, transitions, len(found), *cells]


if __name__ == "__main__":
    main()
