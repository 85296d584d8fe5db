"""Measure the gain from summing over rows in pieces, on as many cores at once as there are.

    python -m benchmarks row_pieces [--quick --output FOLDER]

HMC's compiled block, float32, tanh networks. Every setting is a resident process of its own, whose
TensorFlow runs so many operations at once; all take turns. The first is one program of XLA for all rows,
as below 262 144 of them. Bits are those of the density and its gradient where the first chain is, whether
one piece was summed at a time or two. The table is benchmarks/results/row_pieces.md.
"""

import argparse
import sys
from contextlib import ExitStack
from functools import partial

import numpy as np

from benchmarks.lib.common import add_common_options, in_turns, keep, markdown, output_folder
from benchmarks.lib.resident import Resident

TURNS = 5
# Whether rows are in pieces, and how many operations run at once.
SETTINGS = {
    "one program": {"pieces": False, "at_once": 2},
    "pieces, one at a time": {"pieces": True, "at_once": 1},
    "pieces, two at a time": {"pieces": True, "at_once": 2},
}
ONE, ALONE, TOGETHER = SETTINGS
# Network, rows, chains, each a chain group.
CASES = (
    ((5, 8, 1), 300_000, 1),
    ((5, 20, 20, 1), 300_000, 1),
    ((5, 20, 20, 1), 1_000_000, 1),
    ((5, 20, 20, 1), 1_000_000, 4),
    ((5, 256, 1), 1_000_000, 1),
)
QUICK = (((5, 4, 1), 2_000, 1),)


def main(arguments=None):
    """Measures all cases and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    cases, turns = (QUICK, 1) if options.quick else (CASES, TURNS)
    lines = [measure(*case, turns) for case in cases]
    header = ["network", "rows", "chains", *(f"{name}, ms" for name in SETTINGS)]
    header += ["one at a time / two at a time", "one program / two at a time", "bits of the pieces"]
    keep(
        "row_pieces.md",
        "# Time of a gradient with rows in pieces\n\n"
        "One program sums over all rows, or several programs sum over pieces of the rows, one or two at a time. Times "
        f"are milliseconds per gradient, medians of {turns} runs in turns on two cores; ratios are medians of the ratios. "
        "Four chains run as in a fit: chains of one program on a thread per core, others in turn. Their "
        "times are divided by the gradients of all chains. The last column says whether the density and its gradient have the "
        "same bits with one and with two pieces at a time.\n\n" + markdown(header, lines),
        output_folder(options),
    )


def measure(layers, num_rows, num_chains, turns):
    """A line of the table."""
    with ExitStack() as stack:
        residents = {
            name: stack.enter_context(Resident("lib/resident_groups.py")) for name in SETTINGS
        }
        for name, resident in residents.items():
            resident.ask("arrange", most_rows=num_rows, **SETTINGS[name])
            resident.ask(
                "build", name="it", layers=layers, num_rows=num_rows, num_groups=num_chains
            )
        functions = {
            name: partial(resident.ask, "run", name="it", num_groups=num_chains)
            for name, resident in residents.items()
        }
        found = {name: np.array(seconds) for name, seconds in in_turns(functions, turns).items()}
        bits = {name: resident.ask("bits", name="it") for name, resident in residents.items()}
    line = ["-".join(map(str, layers)), num_rows, num_chains]
    line += [f"{1e3 * np.median(found[name]):.3g}" for name in SETTINGS]
    line += [f"{np.median(found[name] / found[TOGETHER]):.2f}" for name in (ALONE, ONE)]
    line.append("the same" if bits[ALONE] == bits[TOGETHER] else "DIFFERENT")
    print(*line, file=sys.stderr, flush=True)
    return line


if __name__ == "__main__":
    main()
