"""Transitions per second of `tfbnn.sample`, beside `tfp.mcmc.sample_chain` with the same kernel.

    python -m benchmarks sample_speed [--quick --output FOLDER]

A standard normal density in 50 dimensions, 4 chains and 16, float32, no warm-up: what is timed are the
transitions and what each package does around them, not the compilation. Both use XLA, take turns, and
keep every position; tfbnn keeps six statistics besides, TFP the acceptance. The table is
benchmarks/results/sample_speed.md.
"""

import argparse
import time
import warnings

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

import tfbnn
from benchmarks.lib.common import add_common_options, in_turns, keep, markdown, output_folder

INTRODUCTION = """\
A standard normal density in 50 dimensions is sampled by 4 or 16 chains in float32, without warm-up and after
compilation. The table has the transitions per second of each chain. tfbnn is `tfbnn.sample` and TFP is
`tfp.mcmc.sample_chain`. Both use XLA, take turns, and keep every position. tfbnn also keeps six statistics of
each transition, TFP the acceptance. Cells are medians."""
DIMENSIONS = 50
KERNELS = {
    "HMC, 16 steps": (
        tfbnn.kernels.HMC(
            num_leapfrog_steps=16, step_size=0.2, trajectory_jitter=0.0, preconditioner="identity"
        ),
        lambda target: tfp.mcmc.HamiltonianMonteCarlo(target, step_size=0.2, num_leapfrog_steps=16),
        20_000,
    ),
    "MALA": (
        tfbnn.kernels.MALA(step_size=0.04, preconditioner="identity"),
        lambda target: tfp.mcmc.MetropolisAdjustedLangevinAlgorithm(target, step_size=0.04),
        50_000,
    ),
}


def log_prob(x):
    """The density, up to a constant."""
    return -0.5 * tf.reduce_sum(x**2, axis=-1)


def main(arguments=None):
    """Measures and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    repeats, share = (1, 0.02) if options.quick else (3, 1.0)
    rows = []
    for name, (ours, theirs, count) in KERNELS.items():
        for num_chains in (4, 16):
            rows.append(row_of(name, ours, theirs, int(share * count), num_chains, repeats))
    header = ["kernel", "chains", "transitions", "tfbnn, 1/s", "TFP, 1/s", "tfbnn / TFP"]
    parts = ["# Transitions per second", INTRODUCTION, markdown(header, rows)]
    keep("sample_speed.md", "\n\n".join(parts), output_folder(options))


def row_of(name, ours, theirs, count, num_chains, repeats):
    """A line of the table: medians of the transitions per second of a chain."""
    start = np.random.default_rng(0).normal(size=(num_chains, DIMENSIONS)).astype("float32")
    kernel = theirs(log_prob)

    @tf.function(jit_compile=True, autograph=False)
    def chain(state):
        return tfp.mcmc.sample_chain(
            count,
            state,
            kernel=kernel,
            trace_fn=lambda _, results: results.is_accepted,
            seed=tf.constant([0, 1]),
        )

    def seconds_of_tfp():
        began = time.perf_counter()
        chain(tf.constant(start))[0].numpy()
        return time.perf_counter() - began

    def seconds_of_tfbnn():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tfbnn.ConvergenceWarning)
            samples = tfbnn.sample(
                log_prob, start, ours, num_results=count, num_burnin_steps=0, verbose=0
            )
        return samples.seconds["sampling"]

    found = in_turns({"tfbnn": seconds_of_tfbnn, "tfp": seconds_of_tfp}, repeats)
    speed = {package: count / np.median(seconds) for package, seconds in found.items()}
    ratio = speed["tfbnn"] / speed["tfp"]
    return [name, num_chains, count, f"{speed['tfbnn']:.0f}", f"{speed['tfp']:.0f}", f"{ratio:.2f}"]


if __name__ == "__main__":
    main()
