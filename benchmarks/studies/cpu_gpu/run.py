"""Milliseconds per gradient of HMC against the width of 5-n-1 on 11 746 rows, and the limit.

    python -m benchmarks cpu_gpu [--quick --output FOLDER] [--chains 1 16]
        [--devices GPU CPU] [--modes XLA graph]

Every device that TensorFlow sees, with and without XLA: the package's own compiled blocks, after
compilation. Next to each time stands the least it could be: the products of the network at the
device's rate of a large float32 product, plus one tanh per hidden unit and row at XLA's rate in the
cache, on all cores, and on a GPU the traffic of activations through its memory (limit.py). For three
widths blackjax, numpyro and TFP's own HMC sample the same density on the CPU; they are left out where
they are not installed. All of one width take turns, and medians are reported. Data are random numbers
of the shape of the neutralino table: the cost of a gradient does not depend on their values. Rows are
kept as they finish, also those of other machines, in benchmarks/results/cpu_gpu.jsonl, and the table
and the figure are made of all of them; --fresh forgets them.
"""

import argparse
from statistics import median

import tensorflow as tf

from benchmarks.lib.common import (
    add_common_options,
    gpu_name,
    in_turns,
    machine,
    output_folder,
    processor_name,
)
from benchmarks.lib.hmc_rivals import rivals
from benchmarks.lib.store import Store
from benchmarks.lib.timed_groups import (
    NUM_LEAPFROG_STEPS,
    STEP_SIZE,
    TimedGroups,
    num_transitions,
    random_rows,
    start,
)
from benchmarks.studies.cpu_gpu.limit import (
    seconds_per_byte,
    seconds_per_operation,
    seconds_per_tanh,
)
from benchmarks.studies.cpu_gpu.report import NUM_ROWS, report

REPEATS = 5
WIDTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
WITH_RIVALS = (32, 512, 4096)
MODES = {"XLA": True, "graph": False}
# About, at the largest width, of a GPU and a processor's core: it decides how long is timed.
GPU_TIMES_FASTER = 50


def main(arguments=None):
    """Times what is missing, and keeps table and figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--chains", type=int, nargs="+", default=[1], help="chains of one program")
    parser.add_argument("--devices", nargs="+", default=["GPU", "CPU"], choices=["GPU", "CPU"])
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("cpu_gpu", fresh=options.fresh, folder=folder)
    widths, repeats = (WIDTHS[:1], 1) if options.quick else (WIDTHS, REPEATS)
    for kind in options.devices:
        for number in range(len(tf.config.list_physical_devices(kind))):
            for chains in options.chains:
                measure(store, kind, number, chains, widths, options.modes, repeats)
    report(list(store.rows.values()), folder)


def measure(store, kind, number, chains, widths, modes, repeats):
    """Keeps a row for each width: median seconds, those of compilation, and the limit's parts."""
    name = gpu_name(number) if kind == "GPU" else processor_name()
    with tf.device(f"/device:{kind}:{number}"):
        limits = {"operation": seconds_per_operation(), "tanh": seconds_per_tanh()}
        if kind == "GPU":
            limits["byte"] = seconds_per_byte()
        for width in widths:
            key = f"{name}, {chains} chains, {width}"
            if key in store:
                continue
            functions, compilation = groups_of(width, modes, chains, kind == "GPU")
            if width in WITH_RIVALS and kind == "CPU" and chains == 1:
                functions |= others(width)
            found = in_turns(limits | functions, repeats)
            row = {"kind": kind, "device": name, "chains": chains, "width": width}
            row |= {name: median(values) for name, values in found.items()}
            row |= {"compilation": compilation, "machine": machine()}
            store.add(key, row)
            print(key, row, flush=True)


def groups_of(width, modes, chains, on_gpu):
    """(functions () -> seconds per gradient, seconds of compilation) of a width, by mode."""
    layers = [5, width, 1]
    x, y = random_rows(layers, NUM_ROWS)
    functions, compilation = {}, {}
    for mode in modes:
        try:
            groups = TimedGroups(
                layers,
                x,
                y,
                chains_each=chains,
                jit_compile=MODES[mode],
                times_faster=GPU_TIMES_FASTER if on_gpu else 1,
            )
            groups.seconds()
        except tf.errors.ResourceExhaustedError:
            continue
        functions[mode], compilation[mode] = groups.seconds, groups.compilation
    return functions, compilation


def others(width):
    """Functions () -> seconds per gradient of other libraries' HMC."""
    layers = [5, width, 1]
    x, y = random_rows(layers, NUM_ROWS)
    theta, count = start(7 * width + 1)[0], num_transitions(layers, NUM_ROWS)
    return rivals(layers, x, y, theta, STEP_SIZE, NUM_LEAPFROG_STEPS, count)


if __name__ == "__main__":
    main()
