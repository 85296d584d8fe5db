"""Measure what whitening by the Gauss-Newton matrix adds to a gradient, and what XLA alone would make of it.

    python -m benchmarks whitening_cost [--quick --output FOLDER]

The compiled block of a run, one chain on every core, in coordinates as they are, whitened, and
whitened with products of a lone column, which XLA on a CPU computes in one loop with the gradient
that makes the column. They take turns in one process; figures are medians, and ratios to the first.
"""

import argparse
from dataclasses import replace
from unittest import mock

import numpy as np

from benchmarks.lib.common import add_common_options, in_turns, keep, markdown, output_folder

# (Layers, rows): four and more times as many rows as weights, as where "auto" whitens.
CASES = (((5, 50, 1), 1600), ((10, 60, 1), 4000), ((5, 20, 20, 1), 11_746), ((11, 100, 1), 6000))
REPEATS = 7


def main(arguments=None):
    """Times all networks and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    cases, repeats = (CASES[:1], 1) if options.quick else (CASES, REPEATS)
    lines = [line_of(layers, num_rows, repeats) for layers, num_rows in cases]
    header = ["network", "P", "N", "plain, ms", "whitened, ms", "whitened / plain", "lone column, ms", "lone column / plain"]  # fmt: skip
    keep(
        "whitening_cost.md",
        f"# Time of a gradient in whitened coordinates\n\n{markdown(header, lines)}\n\n"
        f"Times are milliseconds per gradient of a chain, medians of {repeats} turns, with a chain on every core, in float32 "
        "with tanh and XLA. Ratios are to the plain gradient. P is the number of parameters, N that of rows. Whitening adds "
        "products with two P x P matrices of four bytes per number, which are read from the cache if they fit. Under "
        '"whitened", each matrix is multiplied by two columns, the vector and zeros, for which XLA calls a library. Under '
        '"lone column" it is multiplied by the vector alone, which XLA computes in one loop with the gradient.',
        folder,
    )


def line_of(layers, num_rows, repeats):
    """A line of the table."""
    import tensorflow as tf

    from benchmarks.lib.timed_groups import network
    from tfbnn.system.threads import num_cores

    groups = {"plain": groups_of(layers, num_rows, "identity")}
    groups["whitened"] = groups_of(layers, num_rows, "gauss_newton")
    # Traced anew, as a program of the same settings is shared.
    with mock.patch("tfbnn.engine.density.linear_map._times", tf.linalg.matvec):
        groups["lone"] = groups_of(layers, num_rows, "gauss_newton", nudge=1e-9)
    count = num_cores()
    turns = {
        name: lambda one=one: one.seconds(count, count) * count for name, one in groups.items()
    }
    found = {name: 1e3 * np.median(times) for name, times in in_turns(turns, repeats).items()}
    size = network(layers, "float32").spec.layout.num_parameters
    line = ["-".join(map(str, layers)), size, num_rows, f"{found['plain']:.3g}"]
    for name in ("whitened", "lone"):
        line += [f"{found[name]:.3g}", f"{found[name] / found['plain']:.2f}"]
    print(*line, flush=True)
    return line


def groups_of(layers, num_rows, preconditioner, nudge=0.0):
    """TimedGroups, one for every core; `nudge` is added to the step size."""
    from benchmarks.lib.timed_groups import KERNEL, TimedGroups, random_rows
    from tfbnn.system.threads import num_cores

    step_size = KERNEL.step_size + nudge
    kernel = replace(KERNEL, preconditioner=preconditioner, step_size=step_size)
    return TimedGroups(layers, *random_rows(layers, num_rows), num_cores(), kernel=kernel)


if __name__ == "__main__":
    main()
