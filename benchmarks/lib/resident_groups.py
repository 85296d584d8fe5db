"""A child of benchmarks that time gradients in turns: builds chain groups and advances them, see resident.py."""

import gc
import hashlib
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # the repository, of which this is a part

from benchmarks.lib.process_memory import forget_largest, resident_megabytes
from benchmarks.lib.resident import answer
from benchmarks.lib.timed_groups import TimedGroups, random_rows
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density import data

_groups = {}


def arrange(pieces, most_rows, at_once):
    """Before anything else: whether that many rows are in pieces, and how many operations run at once."""
    data._ROWS_IN_PIECES = most_rows + (0 if pieces else 1)
    tf.config.threading.set_inter_op_parallelism_threads(at_once)


def bits(name):
    """Digits of the log density of the first group, which is float64, and of its gradient."""
    group = _groups[name].groups[0]
    found = group.program.value_and_gradient(group.state.z.numpy())
    return hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest()


def build(name, layers, num_rows, num_groups=1):
    """Makes chain groups by a name; seconds of compilation."""
    _groups[name] = TimedGroups(layers, *random_rows(layers, num_rows), num_groups)
    return _groups[name].compilation


def run(name, num_groups=1):
    """Wall-clock seconds per gradient of some of the chain groups of a name, on as many threads as in a fit."""
    return _groups[name].seconds(num_groups, len(os.sched_getaffinity(0)))


def drop(name):
    """Forgets chain groups."""
    del _groups[name]


def grow(name, layers, num_rows, few_rows, num_groups=1):
    """Build chain groups like `build`, after one that makes gradients; return the bytes by which memory grows.

    A chain group with a few rows goes before, so that libraries and compilers have what they need. The
    user's own arrays are there before it is looked.
    """
    TimedGroups(layers, *random_rows(layers, few_rows)).seconds()
    x, y = random_rows(layers, num_rows)
    gc.collect()
    before, _ = resident_megabytes()
    forget_largest()
    groups = _groups[name] = TimedGroups(layers, x, y, num_groups)
    for _ in range(2):
        groups.seconds()
    gc.collect()
    now, largest = resident_megabytes()
    return {
        "steady": 2**20 * (now - before),
        "largest": 2**20 * (largest - before),
        "rows": 4 * (x.size + y.size),
        "given": x.nbytes + y.nbytes,
    }


if __name__ == "__main__":
    answer(
        {"arrange": arrange, "build": build, "run": run, "bits": bits, "drop": drop, "grow": grow}
    )
