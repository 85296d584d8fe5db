"""Milliseconds per gradient against the rows of a block: what the rule of row_blocks.py rests on.

    python -m benchmarks row_blocks [--quick --output FOLDER]

Every network with blocks of several lengths, all rows in one block among them, by one chain that has
all cores and by a chain on every core, as the chain groups of a fit run. Times are minima of some turns:
what they are compared for is the work, not the machine's other guests. The table is
benchmarks/results/row_blocks.md; the length that the rule chooses stands in bold.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder

NUM_ROWS = 12_288
NETWORKS = (
    (5, 20, 20, 1),
    (5, 64, 1),
    (5, 128, 1),
    (5, 256, 1),
    (5, 512, 1),
    (5, 2048, 1),
    (5, 8192, 1),
    (5, 64, 64, 64, 1),
    (5, 256, 256, 256, 1),
    (9, 450, 1),
)
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 6144, NUM_ROWS)
SECONDS, REPEATS = 0.05, 4


def main(arguments=None):
    """Times all networks and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    networks, lengths = (NETWORKS, LENGTHS) if not options.quick else (NETWORKS[:1], LENGTHS[-1:])
    lines = [line for network in networks for line in lines_of(network, lengths)]
    header = ["network", "chains", *(length if length < NUM_ROWS else "all" for length in lengths)]
    keep(
        "row_blocks.md",
        f"# Time of a gradient of {NUM_ROWS} rows in blocks, ms\n\n{markdown(header, lines)}\n\n"
        "Columns have the number of rows of a block; in the last one, all rows are one block. Cells are milliseconds per "
        'gradient of a chain, the least of several turns, in float32 with tanh and XLA. "Alone" is one chain that has all '
        'cores, "each" a chain on every core. The package chooses the block length in bold.',
        folder,
    )


def lines_of(network, lengths):
    """The two lines of a network."""
    from tfbnn.engine.density.row_blocks import rows_per_block
    from tfbnn.system.threads import num_cores

    spec, potential, data, theta = problem(network)
    most = min(rows_per_block(spec, 1), NUM_ROWS)
    chosen = max(length for length in lengths if length <= most)
    found = {"alone": [], "each": []}
    for length in lengths:
        steps = compiled_steps(potential, length)
        for name, count in (("alone", 1), ("each", num_cores())):
            value = f"{1e3 * best(steps, theta, data, count):.3g}"
            found[name].append(f"**{value}**" if length == chosen else value)
        print(network, length, found["alone"][-1], found["each"][-1], flush=True)
    title = "-".join(map(str, network))
    return [[title, name, *values] for name, values in found.items()]


def problem(network):
    """(ModelSpec, its Potential, Data, theta [1, P])."""
    import tensorflow as tf

    from benchmarks.lib.timed_groups import network as network_of
    from benchmarks.lib.timed_groups import random_rows, start
    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.density.potential import Potential

    spec = network_of(network, "float32").spec
    data = make_data(*random_rows(network, NUM_ROWS), None, spec.dtype)
    theta = tf.constant(start(spec.layout.num_parameters))
    return spec, Potential(spec), data, theta


def compiled_steps(potential, length):
    """Compiled function (theta, Data, count): so many gradients, each where the last one led."""
    import tensorflow as tf

    from tfbnn.engine.basis.compile import compiled
    from tfbnn.engine.density.row_blocks import value_and_gradient_over_rows

    def steps(theta, data, count):
        def step(index, theta):
            _, gradient = value_and_gradient_over_rows(
                potential.row_log_likelihood, theta, data, length
            )
            return index + 1, theta + 1e-9 * gradient

        start = (tf.constant(0), theta)
        return tf.while_loop(lambda index, _: index < count, step, start, parallel_iterations=1)[1]

    return compiled(steps, jit_compile=True)


def best(steps, theta, data, num_chains):
    """The least seconds per gradient of chains that run side by side."""
    import tensorflow as tf

    steps(theta, data, tf.constant(0))
    began = time.perf_counter()
    steps(theta, data, tf.constant(2))
    count = tf.constant(max(2, int(SECONDS / (time.perf_counter() - began) * 2)))

    def turn():
        began = time.perf_counter()
        with ThreadPoolExecutor(num_chains) as pool:
            list(pool.map(lambda _: steps(theta, data, count).numpy(), range(num_chains)))
        return (time.perf_counter() - began) / int(count)

    return float(np.min([turn() for _ in range(REPEATS)]))


if __name__ == "__main__":
    main()
