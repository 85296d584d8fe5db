"""Seconds per HMC transition (512 leapfrog steps) against the width of 5-n-1 on 11 746 rows.

    python benchmarks/cpu_gpu.py [--quick] [--chains 1]

Every device that TensorFlow sees, with and without XLA. The programs are the package's own compiled
blocks; one transition is timed after compilation. Data are random numbers of the shape of the
neutralino table: the cost of a transition does not depend on their values. Next to each time stands
the arithmetic limit: 6 operations per weight and row and gradient over the device's measured rate
of a large float32 matrix product.
"""

import argparse
import time

import numpy as np
import tensorflow as tf
from common import RESULTS, keep, markdown

from tfbnn.engine.basis.adaptation import (
    DualAveraging,
    RunningMoments,
    restart_dual_averaging,
    restart_moments,
)
from tfbnn.engine.density.potential import make_data
from tfbnn.engine.sampling.block import BlockControl, ChainState, bootstrap, make_block
from tfbnn.engine.sampling.linear_map import DiagonalMap, identity_map
from tfbnn.kernels import HMC
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal
from tfbnn.spec.model_spec import make_spec

NUM_ROWS, NUM_LEAPFROG_STEPS = 11_746, 512
WIDTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
# A transition that would take longer than this is timed with fewer leapfrog steps and scaled up.
TIME_LIMIT = 4.0


def build(width, chains):
    """The model 5-width-1 with data and a start."""
    spec = make_spec(
        [5, width, 1],
        activation="tanh",
        prior=Normal(1.0),
        likelihood=Gaussian(1.0),
        parameterization="ntk",
        x_transform=None,
        y_transform=None,
        dtype="float32",
    )
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(NUM_ROWS, 5)), generator.normal(size=(NUM_ROWS, 1))
    theta = generator.normal(size=(chains, spec.layout.num_parameters)).astype("float32")
    return spec, make_data(x, y, None, "float32"), theta


def seconds_per_transition(width, chains, jit_compile):
    """Wall seconds of one transition of 512 leapfrog steps, and of compilation."""
    spec, data, theta = build(width, chains)
    probe = _time_block(spec, data, theta, 4, jit_compile)[0] / 4
    steps = int(np.clip(TIME_LIMIT / probe, 8, NUM_LEAPFROG_STEPS))
    seconds, compilation = _time_block(spec, data, theta, steps, jit_compile)
    return seconds * NUM_LEAPFROG_STEPS / steps, compilation


def _time_block(spec, data, theta, num_leapfrog_steps, jit_compile):
    settings = HMC(num_leapfrog_steps=num_leapfrog_steps, step_size=1e-5)
    block = make_block(spec, settings, 2, jit_compile)
    step = DualAveraging(*map(tf.constant, restart_dual_averaging(np.full(len(theta), 1e-5))))
    linear_map = DiagonalMap(*map(tf.constant, identity_map(theta.shape, theta.dtype)))
    reference = tf.zeros([len(theta)], tf.float64)
    state = ChainState(
        z=tf.constant(theta),
        results=bootstrap(spec, settings, data, theta, linear_map, reference, step),
        linear_map=linear_map,
        reference=reference,
        step=step,
        moments=RunningMoments(*map(tf.constant, restart_moments(theta.shape, theta.dtype))),
    )
    keys = tf.constant([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])

    def run(count):
        control = BlockControl(*map(tf.constant, (count, NUM_LEAPFROG_STEPS, 0, 1, False, False)))
        began = time.perf_counter()
        block(data, state, keys, control)[1].draws.numpy()
        return time.perf_counter() - began

    compilation = run(0)
    return min(run(1) for _ in range(2)), compilation


def matrix_rate():
    """Measured operations per second of a large float32 matrix product."""
    a = tf.random.stateless_normal([4096, 4096], [0, 0])
    multiply = tf.function(lambda a: tf.reduce_sum(a @ a))
    multiply(a).numpy()
    began = time.perf_counter()
    for _ in range(3):
        multiply(a).numpy()
    return 3 * 2 * 4096**3 / (time.perf_counter() - began)


def measure(widths, chains):
    """{(device, jit): {width: (seconds, compile seconds)}} and {device: rate}."""
    times, rates = {}, {}
    devices = [d.name.removeprefix("/physical_device:") for d in tf.config.list_physical_devices()]
    for device in devices:
        if not device.startswith(("CPU", "GPU")):
            continue
        with tf.device(f"/device:{device}"):
            rates[device] = matrix_rate()
            for jit_compile in (True, False):
                column = times.setdefault((device, jit_compile), {})
                for width in widths:
                    try:
                        column[width] = seconds_per_transition(width, chains, jit_compile)
                    except tf.errors.ResourceExhaustedError:
                        break
                    print(device, jit_compile, width, column[width], flush=True)
    return times, rates


def table(times, rates, widths, chains):
    """Absolute seconds per device, the GPU's gain, and the arithmetic limit."""

    def cell(device, jit, width):
        found = times.get((device, jit), {}).get(width)
        return f"{found[0]:.3g}" if found else ""

    rows = []
    for width in widths:
        cpu, gpu = (times.get((name, True), {}).get(width) for name in ("CPU:0", "GPU:0"))
        flops = 6.0 * NUM_ROWS * (7 * width + 1) * NUM_LEAPFROG_STEPS * chains
        limits = [f"{flops / rates[d]:.2g}" if d in rates else "" for d in ("CPU:0", "GPU:0")]
        rows.append(
            [
                width,
                7 * width + 1,
                cell("CPU:0", True, width),
                cell("CPU:0", False, width),
                limits[0],
                cell("GPU:0", True, width),
                cell("GPU:0", False, width),
                limits[1],
                f"{cpu[0] / gpu[0]:.1f}" if cpu and gpu else "",
                f"{cpu[1]:.1f}" if cpu else "",
            ]
        )
    header = [
        "n",
        "P",
        "CPU XLA s",
        "CPU graph s",
        "CPU limit s",
        "GPU XLA s",
        "GPU graph s",
        "GPU limit s",
        "CPU / GPU (XLA)",
        "compile s (CPU XLA)",
    ]
    return markdown(header, rows)


def figure(times, path):
    """Seconds per transition against width on log-log axes."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(6, 4), layout="constrained")
    axes = canvas.subplots()
    for (device, jit), column in times.items():
        label = f"{device.split(':')[0]}, {'XLA' if jit else 'graph'}"
        axes.loglog(list(column), [s for s, _ in column.values()], "o-", label=label)
    axes.loglog([1024, 8192], [0.521, 3.734], "k^:", label="P100 (thesis)")
    axes.set(xlabel="hidden units n of 5-n-1", ylabel="seconds per transition (L = 512)")
    axes.legend()
    canvas.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small widths")
    parser.add_argument("--chains", type=int, default=1, help="chains batched in one program")
    options = parser.parse_args()
    widths = WIDTHS[:2] if options.quick else WIDTHS
    times, rates = measure(widths, options.chains)
    text = table(times, rates, widths, options.chains)
    rate = ", ".join(f"{device} {value / 1e9:.0f} GFLOP/s" for device, value in rates.items())
    keep(
        "cpu_gpu.md",
        f"# One HMC transition, {NUM_LEAPFROG_STEPS} leapfrog steps, {NUM_ROWS} "
        f"rows, {options.chains} chain(s)\n\n{text}\n\nMeasured float32 matrix product: {rate}.\n"
        "The limit is arithmetic alone: products of the network over that rate.",
    )
    figure(times, RESULTS / "cpu_gpu.png")


if __name__ == "__main__":
    main()
