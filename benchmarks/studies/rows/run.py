"""Cost of a gradient and resident memory against the number of rows.

    python -m benchmarks rows [--quick --output FOLDER]

HMC's compiled block, float32, one resident process per number of rows; those of one network take
turns, so that all see the same machine. One chain, and for the network of 5000 weights also four on
threads, as a fit has them. Memory is that of the process as a chain group is built and makes
gradients, over what it was when the user's own float64 arrays were there and a chain group of a few
rows had run: the group's memory, without what a fit has besides (pretraining, transforms, kept
draws); needs Linux. The table is benchmarks/results/rows.md.
"""

import argparse
import sys
from contextlib import ExitStack
from functools import partial

import numpy as np

from benchmarks.lib.common import add_common_options, in_turns, keep, markdown, output_folder
from benchmarks.lib.resident import Resident

TURNS, FEW_ROWS = 5, 100
DECADES = (1_000, 10_000, 100_000, 1_000_000)
# Network, numbers of rows, which of them the others are compared with, numbers of chains.
STUDIES = (
    ((5, 20, 20, 1), DECADES, 10_000, (1,)),
    ((5, 256, 1), DECADES, 10_000, (1,)),
    ((9, 450, 1), (1_700, 17_000, 41_000), 1_700, (1, 4)),
)
QUICK = (((5, 4, 1), (1_000, 2_000), 1_000, (1, 4)),)


def main(arguments=None):
    """Measures all studies and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    studies, turns = (QUICK, 1) if options.quick else (STUDIES, TURNS)
    times, memory = [], []
    for study in studies:
        study_times, study_memory = measure(*study, turns)
        times += study_times
        memory += study_memory
    header = ["network", "chains", "rows", "ms per gradient", "relative rows", "relative time"]
    grown = ["network", "rows", "size of the rows, MB", "arrays of the user, MB", "growth, MB", "growth per size", "largest growth, MB", "the same per size"]  # fmt: skip
    keep(
        "rows.md",
        "# Time and memory against the number of rows\n\n"
        f"Times are divided by the gradients of all chains, and are medians of {turns} runs in turns. Relative rows and "
        "times are those divided by the values of the line with 1.\n\n"
        f"{markdown(header, times)}\n\n"
        "The second table has the growth of resident memory while chain groups are built and compute gradients, and the "
        "largest growth meanwhile. It contains the memory of the chain groups, but not that of pretraining and kept draws. "
        "Rows have their size in float32. The float64 arrays of the user are not counted. The growth per size is the growth minus "
        "that with the fewest rows, divided by the same difference of the rows. Compilers take and release some MB, so the "
        "number means something only for a million rows, and is left out for fewer.\n\n"
        f"{markdown(grown, memory)}",
        folder,
    )


def measure(layers, numbers, reference, chains, turns):
    """Lines of the table of times, and of that of memory, of one network."""
    shape, times, seen = "-".join(map(str, layers)), [], {}
    with ExitStack() as stack:
        residents = {n: stack.enter_context(Resident("lib/resident_groups.py")) for n in numbers}
        for n, resident in residents.items():
            found = resident.ask(
                "grow",
                name="it",
                layers=layers,
                num_rows=n,
                few_rows=FEW_ROWS,
                num_groups=max(chains),
            )
            seen[n] = found
            print(shape, n, found, file=sys.stderr, flush=True)
        for count in chains:
            functions = {
                n: partial(resident.ask, "run", name="it", num_groups=count)
                for n, resident in residents.items()
            }
            found = {n: np.array(seconds) for n, seconds in in_turns(functions, turns).items()}
            for n, seconds in found.items():
                ratio = np.median(seconds / found[reference])
                cells = f"{1e3 * np.median(seconds):.3g}", f"{n / reference:.3g}", f"{ratio:.3g}"
                times.append([shape, count, n, *cells])
                print(*times[-1], file=sys.stderr, flush=True)
    fewest = seen[min(numbers)]
    return times, [[shape, n, *memory_cells(found, fewest)] for n, found in seen.items()]


def memory_cells(found, fewest):
    """MB of rows and arrays, of growth and peak, and their slopes from the fewest rows."""
    cells = [f"{found['rows'] / 1e6:.3g}", f"{found['given'] / 1e6:.3g}"]
    more = found["rows"] - fewest["rows"]
    for name in ("steady", "largest"):
        slope = f"{(found[name] - fewest[name]) / more:.1f}" if more > 1e7 else ""
        cells += [f"{found[name] / 1e6:.3g}", slope]
    return cells


if __name__ == "__main__":
    main()
