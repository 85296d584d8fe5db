"""Check whether a gradient has the same bits whatever the number of cores and threads.

    python -m benchmarks thread_bits [--quick --output FOLDER]

Every setting has a process of its own, which is pinned to so many cores before TensorFlow is there
and gives its operations so many threads: XLA cuts its loops by the first, TensorFlow its products by
the second. What is compared is the density with its gradient at one point, and the points that chains
of HMC, and in some cases of NUTS, have reached after a few transitions. The table is
benchmarks/results/thread_bits.md.
"""

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.resident import ended_child

# Layers, rows, dtype.
CASES = (
    ((5, 8, 1), 150, "float32"),
    ((5, 20, 20, 1), 11_746, "float32"),
    ((5, 20, 20, 1), 11_746, "float64"),
    ((5, 512, 1), 11_746, "float32"),
    ((5, 4096, 1), 1_700, "float32"),
    ((9, 450, 1), 1_700, "float32"),
    ((9, 450, 1), 41_000, "float32"),
)
# Those with chains of NUTS too, of so many transitions; each compiles for seconds.
NUTS_CASES = CASES[:2]
NUM_NUTS_TRANSITIONS = 4
# Cores, threads of an operation.
SETTINGS = ((1, 1), (2, 1), (2, 2), (2, 4), (4, 4))


def main(arguments=None):
    """Compares the settings that this machine has cores for and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    num_cases = 1 if options.quick else len(CASES)
    if options.child:
        print(json.dumps(hashes(*options.child, CASES[:num_cases])))
        return
    folder = output_folder(options)
    available = len(os.sched_getaffinity(0))
    settings = [setting for setting in SETTINGS if setting[0] <= available]
    settings = settings[:2] if options.quick else settings
    found = [measure(*setting, quick=options.quick) for setting in settings]
    lines = []
    for (layers, num_rows, dtype), *of_case in zip(CASES[:num_cases], *found):
        for what in of_case[0]:
            values = [case[what] for case in of_case]
            same = "the same" if len(set(values)) == 1 else "DIFFERENT"
            lines.append(["-".join(map(str, layers)), num_rows, dtype, what, *values, same])
    header = ["network", "rows", "dtype", "result", *map(title, settings), "bits"]
    keep(
        "thread_bits.md",
        "# Equal bits with any number of cores and threads\n\nCells have the first eight digits of the SHA-256 of the "
        "result: the density or its gradient at one point, or the states of chains after a few transitions. Each column is "
        "a process that may use this number of cores, and gives this number of threads to an operation. The last column "
        f"says whether all bits are equal.\n\n{markdown(header, lines)}",
        folder,
    )


def title(setting):
    """Return the title of a column."""
    cores, threads = setting
    return f"{cores} core{'s' if cores > 1 else ''}, {threads} thread{'s' if threads > 1 else ''}"


def measure(cores, threads, quick):
    """The hashes of all cases in a process of its own."""
    arguments = [__file__, "--child", cores, threads]
    found, _ = ended_child([*arguments, "--quick"] if quick else arguments)
    return found


def hashes(cores, threads, cases):
    """For every case a dict: what -> hash of its bits, with so many cores and threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    import tensorflow as tf

    import tfbnn
    from benchmarks.lib.blocks import make_group
    from benchmarks.lib.timed_groups import TimedGroups, random_rows, start

    nuts = tfbnn.kernels.NUTS(step_size=1e-3, max_tree_depth=5, preconditioner="identity")
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    found = []
    for case in cases:
        layers, num_rows, dtype = case
        x, y = random_rows(layers, num_rows)
        (group,) = TimedGroups(layers, x, y, dtype=dtype).groups
        theta = start(group.program.spec.layout.num_parameters, dtype=dtype)
        value, gradient = group.program.value_and_gradient(theta)
        group.advance()
        hashed = {
            "density": digest(value),
            "gradient": digest(gradient),
            "HMC": digest(group.state.z.numpy()),
        }
        if case in NUTS_CASES:
            spec = group.program.spec
            group, _ = make_group(spec, nuts, x, y, theta, NUM_NUTS_TRANSITIONS, num_blocks=1)
            group.advance()
            hashed["NUTS"] = digest(group.state.z.numpy())
        found.append(hashed)
    return found


def digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()[:8]


if __name__ == "__main__":
    main()
