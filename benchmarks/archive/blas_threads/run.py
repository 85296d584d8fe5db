"""Measure how often NumPy's products are wrong that two threads compute at the same time.

    python -m benchmarks blas_threads [--quick --output FOLDER]

BLAS has one thread for itself, so that no product is shared among threads: each thread multiplies
its own matrices, again and again for some seconds, and compares the result with the one that it got
alone. For each order of the two factors, in a process of its own, as some crash; with the kernels
that OpenBLAS chooses for this processor and, where it has AVX-512, with those for Intel's. At the end
our own predictions: of 1000 networks on 256 rows in two threads, against one row at a time. The table
is benchmarks/results/blas_threads.md.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

import numpy as np

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder

NUM_THREADS, STACK = 2, 40
# Rows and columns of the product, and what is summed over: a first layer, later ones, and large.
SHAPES = ((50, 125, 6), (50, 125, 60), (200, 3, 60), (200, 300, 60))
DTYPES, ORDERS = ("float32", "float64"), ("TT", "TN", "NT", "NN")
PREDICTIONS = "predictions"
AVX_512 = "SkylakeX"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--child", nargs="+", help="what a process of its own is to measure")
    options = parser.parse_args(arguments)
    if options.child:
        return print(json.dumps(measure(*options.child)))
    folder = output_folder(options)
    seconds, types, whats = "4", core_types(), [(d, s) for d in DTYPES for s in SHAPES]
    if options.quick:
        seconds, types, whats = "0.2", types[:1], whats[:1]
    lines = [line(what, cores, seconds) for cores in types for what in whats]
    ours = [
        f"{cell([PREDICTIONS], cores, seconds)} with {cores or 'default'} kernels"
        for cores in types
    ]
    text = [
        f"# Wrong matrix products of NumPy from {NUM_THREADS} threads at a time",
        f"Each thread multiplies its own matrices again and again for {seconds} seconds, {STACK} products (a "
        "stack) at a time. A stack is wrong if it differs from what the thread computes alone. Cells have the "
        "number of wrong stacks and of all stacks, and in brackets the largest error divided by the largest "
        "entry. M x N x K is the product of an M x K and a K x N matrix. The two letters of a column stand for "
        "the left and the right factor: N is an array in C order, T a transposed view of such an array. OpenBLAS "
        f"chooses its kernels for the processor (default); {AVX_512} are those for Intel processors with AVX-512.",
        markdown(["kernels of OpenBLAS", "dtype", "M x N x K", *ORDERS], lines),
        "The package avoids TT, which earlier versions used. In the same way, each thread made predictions with this "
        f"version, from 1000 networks on 256 rows. Wrong predictions: {', '.join(ours)}.",
    ]
    keep("blas_threads.md", "\n\n".join(text), folder)


def core_types():
    """The kernels OpenBLAS would take, then those for AVX-512 where the processor has it."""
    described = Path("/proc/cpuinfo")
    has_avx_512 = described.exists() and "avx512vl" in described.read_text()
    return [None, AVX_512] if has_avx_512 else [None]


def line(what, cores, seconds):
    """A line of the table: products of a type and a shape, in each order."""
    dtype, shape = what
    sizes = [str(size) for size in shape]
    cells = [cell([dtype, order, *sizes], cores, seconds) for order in ORDERS]
    return [cores or "default", dtype, " x ".join(sizes), *cells]


def cell(case, cores, seconds):
    """Run a case in a process of its own and return its cell of the table."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    if cores:
        environment["OPENBLAS_CORETYPE"] = cores
    command = [sys.executable, __file__, "--child", seconds, *case]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    print(cores, *case, done.stdout.strip() or done.stderr[-80:], file=sys.stderr, flush=True)
    if done.returncode:
        return "crashed"
    found = json.loads(done.stdout)
    size = f" ({found['largest']:.1g})" if found["wrong"] else ""
    return f"{found['wrong']} of {found['calls']}{size}"


def measure(seconds, *case):
    """Calls, how many were wrong, and by how much."""
    make, case = (prediction, ()) if case == (PREDICTIONS,) else (product, case)
    made = [make(number, *case) for number in range(NUM_THREADS)]
    end = time.monotonic() + float(seconds)

    def relative_errors(of_thread):
        """One for each call that a thread makes until the end, zero where it is as it should be."""
        function, expected, tolerance = of_thread
        errors, size = [], np.abs(expected).max()
        while time.monotonic() < end:
            error = float(np.abs(function() - expected).max() / size)
            errors.append(0.0 if error <= tolerance else error)
        return errors

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        errors = [error for found in pool.map(relative_errors, made) for error in found]
    return {"calls": len(errors), "wrong": int(np.count_nonzero(errors)), "largest": max(errors)}


def product(number, dtype, order, *shape):
    """(function () -> stack of products, what it gives alone, tolerance) of a thread."""
    m, n, k = map(int, shape)
    n += 6 * number  # threads with sizes of their own
    generator = np.random.default_rng(number)

    def factor(rows, columns, kind):
        if kind == "N":
            return generator.normal(size=(STACK, rows, columns)).astype(dtype)
        return generator.normal(size=(STACK, columns, rows)).astype(dtype).swapaxes(1, 2)

    a, b = factor(m, k, order[0]), factor(k, n, order[1])
    out = np.empty((STACK, m, n), dtype)
    return (lambda: np.matmul(a, b, out=out)), np.matmul(a, b), 0.0


def prediction(number):
    """The same of the networks' mean; rows one by one and in tiles differ by rounding."""
    from benchmarks.studies.prediction.run import random_model

    model = random_model([5, 50, 1])
    x = np.random.default_rng(number).normal(size=(256, 5))

    def mean(rows):
        return model.predict(rows, space="transformed").mean

    alone = np.concatenate([mean(row[None]) for row in x])
    return (lambda: mean(x)), alone, 1e-5


if __name__ == "__main__":
    main()
