"""Milliseconds per gradient of HMC against the width of 5-n-1 on 11 746 rows, and the limit.

    python benchmarks/cpu_gpu.py [--quick --output FOLDER] [--chains 1]

Every device that TensorFlow sees, with and without XLA: the package's own compiled blocks, after
compilation. Next to each time stands the least it could be: the products of the network at the
device's rate of a large float32 product, plus one tanh per hidden unit and row at XLA's rate in the
cache, on all cores (limit.py). For three widths blackjax, numpyro and TFP's own HMC sample the same
density on the CPU; they are left out where they are not installed. All of one width take turns, and
medians are reported. Data are random numbers of the shape of the neutralino table: the cost of a
gradient does not depend on their values. The figure is of transitions of 512 leapfrog steps.
"""

import argparse
from statistics import median

import tensorflow as tf
from common import add_common_options, in_turns, keep, markdown, output_folder
from hmc_rivals import rivals
from limit import least_seconds, seconds_per_operation, seconds_per_tanh
from timed_lanes import (
    NUM_LEAPFROG_STEPS,
    STEP_SIZE,
    TimedLanes,
    num_transitions,
    random_rows,
    start,
)

from tfbnn.plots.canvas import line_looks, styled_figure

NUM_ROWS, REPEATS = 11_746, 5
WIDTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
WITH_RIVALS = (32, 512, 4096)
MODES = {"XLA": True, "graph": False}
# Hidden units and seconds of a transition of 512 leapfrog steps on a P100, from the thesis.
P100, P100_STEPS = {1024: 0.521, 8192: 3.734}, 512


def main(arguments=None):
    """Times all widths on all devices and keeps table and figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--chains", type=int, default=1, help="chains batched in one program")
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    widths, with_rivals, repeats = WIDTHS, WITH_RIVALS, REPEATS
    if options.quick:
        widths, with_rivals, repeats = WIDTHS[:1], WIDTHS[:1], 1
    found = {
        device: measure(device, widths, with_rivals, options.chains, repeats)
        for device in devices()
    }
    keep("cpu_gpu.md", report(found, options.chains, repeats), folder)
    figure(found, folder / "cpu_gpu.png")


def devices():
    """Names of the devices to time, such as "CPU:0"."""
    names = [d.name.removeprefix("/physical_device:") for d in tf.config.list_physical_devices()]
    return [name for name in names if name.startswith(("CPU", "GPU"))]


def measure(device, widths, with_rivals, chains, repeats):
    """Dict width -> dict of median seconds, of compile seconds and of the limit's two parts."""
    found = {}
    with tf.device(f"/device:{device}"):
        limits = {"operation": seconds_per_operation(), "tanh": seconds_per_tanh()}
        for width in widths:
            others = width in with_rivals and device.startswith("CPU") and chains == 1
            found[width] = measure_width(width, limits, others, chains, repeats)
            print(device, width, found[width], flush=True)
    # One limit for all widths: it is the machine's.
    for name in limits:
        rate = median(row[name] for row in found.values())
        for row in found.values():
            row[name] = rate
    return found


def measure_width(width, limits, with_rivals, chains, repeats):
    """Median seconds per gradient of all modes and rivals of a width, and of the limits' units."""
    layers = [5, width, 1]
    x, y = random_rows(layers, NUM_ROWS)
    functions, compilation = dict(limits), {}
    for mode, jit_compile in MODES.items():
        try:
            lanes = TimedLanes(layers, x, y, chains_each=chains, jit_compile=jit_compile)
            lanes.seconds()
        except tf.errors.ResourceExhaustedError:
            continue
        functions[mode], compilation[mode] = lanes.seconds, lanes.compilation
    if with_rivals:
        theta, count = start(7 * width + 1)[0], num_transitions(layers, NUM_ROWS)
        functions |= rivals(layers, x, y, theta, STEP_SIZE, NUM_LEAPFROG_STEPS, count)
    medians = {name: median(values) for name, values in in_turns(functions, repeats).items()}
    return medians | {"compilation": compilation}


def report(found, chains, repeats):
    """The text: one table per device, then the rivals and the rates."""
    parts = [
        f"# A gradient of 5-n-1 on {NUM_ROWS} rows, {chains} chain(s)",
        f"Milliseconds per gradient of HMC, medians of {repeats} runs in turns. The limit is products "
        "and tanh by the rates below. Divided by the number of chains, as they share a program.",
    ]
    for device, rows in found.items():
        parts += [f"## {device}", device_table(rows)]
    if gpus := [device for device in found if device.startswith("GPU")]:
        parts += ["## Gain", gain_table(found["CPU:0"], found[gpus[0]])]
    if rival_rows := rival_lines(found["CPU:0"]):
        parts += ["## Others on the same density, one chain, CPU", rival_rows]
    parts += [rates(found)]
    return "\n\n".join(parts)


def device_table(rows):
    """Times of the modes beside the two parts of the limit."""
    header = ["n", "P", "products ms", "tanh ms", "limit ms"]
    for mode in MODES:
        header += [f"{mode} ms", f"{mode} / limit", f"{mode} compile s"]
    lines = []
    for width, row in rows.items():
        products, tanh = least_seconds([5, width, 1], NUM_ROWS, row["operation"], row["tanh"])
        line = [width, 7 * width + 1, *map(milliseconds, (products, tanh, products + tanh))]
        for mode in MODES:
            line += (
                [
                    milliseconds(row[mode]),
                    f"{row[mode] / (products + tanh):.1f}",
                    f"{row['compilation'][mode]:.1f}",
                ]
                if mode in row
                else ["", "", ""]
            )
        lines.append(line)
    return markdown(header, lines)


def gain_table(cpu, gpu):
    """How many times faster the first GPU is than the CPU, both by XLA."""
    both = [width for width in cpu if "XLA" in cpu[width] and "XLA" in gpu[width]]
    lines = [(width, f"{cpu[width]['XLA'] / gpu[width]['XLA']:.1f}") for width in both]
    return markdown(["n", "CPU / GPU (XLA)"], lines)


def rival_lines(rows):
    """The table of the rivals, empty where none was timed."""
    known = {"operation", "tanh", "compilation", *MODES}
    names = list(dict.fromkeys(name for row in rows.values() for name in row if name not in known))
    lines = []
    for width, row in rows.items():
        if names and names[0] in row:
            others = [row[name] for name in names]
            ratios = [f"{row['XLA'] / other:.2f}" for other in others]
            lines.append([width, *map(milliseconds, (row["XLA"], *others)), *ratios])
    header = ["n", "tfbnn ms", *(f"{name} ms" for name in names)]
    return markdown([*header, *(f"tfbnn / {name}" for name in names)], lines) if lines else ""


def rates(found):
    """One line on what the limits are made of."""
    texts = []
    for device, rows in found.items():
        row = next(iter(rows.values()))
        texts.append(
            f"{device} {1e-9 / row['operation']:.0f} GFLOP/s in a float32 product of matrices, "
            f"{1e9 * row['tanh']:.3f} ns a tanh on all cores"
        )
    return f"Measured in the same run: {'; '.join(texts)}."


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g}"


def figure(found, path):
    """Seconds per transition of 512 leapfrog steps against width, on log-log axes."""
    with styled_figure(1, 1, (6.0, 4.0)) as (canvas, panels):
        _draw(panels[0, 0], found)
        canvas.savefig(path, dpi=120)


def _draw(axes, found):
    looks = iter(line_looks(24))
    for device, rows in found.items():
        name = device.split(":")[0]
        for mode in MODES:
            points = {n: P100_STEPS * row[mode] for n, row in rows.items() if mode in row}
            look = next(looks) | {"marker": "o", "label": f"{name}, {mode}"}
            axes.loglog(list(points), list(points.values()), **look)
        parts = {
            n: least_seconds([5, n, 1], NUM_ROWS, r["operation"], r["tanh"])
            for n, r in rows.items()
        }
        limit = [P100_STEPS * sum(part) for part in parts.values()]
        axes.loglog(list(parts), limit, "k--", label=f"{name}, limit")
    axes.loglog(list(P100), list(P100.values()), "k^:", label="P100 (thesis)")
    axes.set(xlabel="hidden units n of 5-n-1", ylabel="seconds per transition (L = 512)")
    axes.legend()


if __name__ == "__main__":
    main()
