"""Milliseconds per gradient of HMC and NUTS, and compile seconds, against blackjax.

    python -m benchmarks gradient_cost [--quick --output FOLDER]   # needs jax and blackjax

One chain, 11 746 rows, 5-20-20-1 and 5-50-50-1, the same potential (tanh, N(0, 1) prior, learned
noise scale), the same step size and number of leapfrog steps in one process, runs of the two
alternating. NUTS gets a step so small that every tree is full, so that both take the same number
of gradients. JAX has no thread setting of its own, so both use all cores. Nothing here asserts a
time: figures are medians of interleaved runs and their ratio.
"""

import argparse
import time
import warnings

import numpy as np

from benchmarks.lib.common import add_common_options, in_turns, keep, markdown, output_folder
from benchmarks.lib.hmc_rivals import jax_log_density

warnings.filterwarnings("ignore")
NUM_ROWS, REPEATS = 11_746, 7
NETWORKS = ([5, 20, 20, 1], [5, 50, 50, 1])
STEP_SIZE, NUM_LEAPFROG_STEPS, TREE_DEPTH = 1e-4, 64, 6
# Transitions per timed run.
COUNT = 16


def rows():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(NUM_ROWS, 5))
    return x, np.sin(x[:, :1] + x[:, 1:2]) + 0.05 * generator.normal(size=(NUM_ROWS, 1))


def ours(layer_sizes, kernel):
    """(function () -> (seconds, gradients), compile seconds)."""
    from benchmarks.lib.blocks import make_group
    from tfbnn.likelihoods import Gaussian
    from tfbnn.priors import Normal
    from tfbnn.spec.model_spec import make_spec

    spec = make_spec(
        layer_sizes,
        activation="tanh",
        prior=Normal(1.0),
        likelihood=Gaussian("learned"),
        parameterization="standard",
        x_transform=None,
        y_transform=None,
        dtype="float32",
    )
    theta = start(layer_sizes)[None]
    group, compilation = make_group(spec, kernel, *rows(), theta, COUNT, REPEATS + 1)

    def run():
        before = group.counters.num_gradients["sampling"].sum()
        began = time.perf_counter()
        group.advance()
        return time.perf_counter() - began, group.counters.num_gradients["sampling"].sum() - before

    return run, compilation


def start(layer_sizes):
    """A start with small weights and unit noise scale, in tfbnn's order of parameters."""
    num = sum((a + 1) * b for a, b in zip(layer_sizes[:-1], layer_sizes[1:])) + 1
    theta = 0.3 * np.random.default_rng(1).normal(size=num)
    theta[-1] = 0.0
    return theta.astype(np.float32)


def theirs(layer_sizes, name):
    """The same for blackjax."""
    import blackjax
    import jax
    import jax.numpy as jnp

    log_density = jax_log_density(layer_sizes, *rows(), learned=True)
    mass = jnp.ones(len(start(layer_sizes)))
    if name == "hmc":
        sampler = blackjax.hmc(log_density, STEP_SIZE, mass, NUM_LEAPFROG_STEPS)
    else:
        sampler = blackjax.nuts(log_density, STEP_SIZE, mass, max_num_doublings=TREE_DEPTH)

    def transitions(state, key):
        def one(state, key):
            state, info = sampler.step(key, state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(one, state, jax.random.split(key, COUNT))

    state = jax.jit(sampler.init)(jnp.asarray(start(layer_sizes)))
    began = time.perf_counter()
    compiled = jax.jit(transitions).lower(state, jax.random.key(0)).compile()
    compilation = time.perf_counter() - began

    def run():
        began = time.perf_counter()
        _, (positions, steps) = compiled(state, jax.random.key(1))
        np.asarray(positions)
        return time.perf_counter() - began, int(np.sum(steps))

    return run, compilation


def compare(layer_sizes, name, kernel, repeats):
    """One line: medians of interleaved runs, and the median of their ratios."""
    our_run, our_compile = ours(layer_sizes, kernel)
    their_run, their_compile = theirs(layer_sizes, name)
    found = in_turns({"ours": our_run, "theirs": their_run}, repeats)
    our, their = (
        1e3 * np.divide(*np.transpose(found[side]).astype(float)) for side in ("ours", "theirs")
    )
    return [
        "-".join(map(str, layer_sizes)),
        name,
        f"{np.median(our):.3f}",
        f"{np.median(their):.3f}",
        f"{np.median(our / their):.2f}",
        f"{our_compile:.1f}",
        f"{their_compile:.1f}",
    ]


def main(arguments=None):
    from tfbnn.kernels import HMC, NUTS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    networks, repeats = (NETWORKS[:1], 1) if options.quick else (NETWORKS, REPEATS)
    kernels = {
        "hmc": HMC(
            step_size=STEP_SIZE,
            num_leapfrog_steps=NUM_LEAPFROG_STEPS,
            preconditioner="identity",
            trajectory_jitter=0.0,
        ),
        "nuts": NUTS(step_size=STEP_SIZE, max_tree_depth=TREE_DEPTH, preconditioner="identity"),
    }
    header = [
        "network",
        "kernel",
        "tfbnn, ms per gradient",
        "blackjax, ms per gradient",
        "tfbnn / blackjax",
        "compilation of tfbnn, s",
        "compilation of blackjax, s",
    ]
    lines = [
        compare(layer_sizes, name, kernel, repeats)
        for layer_sizes in networks
        for name, kernel in kernels.items()
    ]
    keep(
        "gradient_cost.md",
        f"# Time of a gradient, one chain, {NUM_ROWS} rows\n\n"
        f"{markdown(header, lines)}\n\nTimes are medians of {repeats} runs of "
        f"{COUNT} transitions, in which the two packages take turns; the ratio is the median of the ratios. Both use "
        "all cores.",
        folder,
    )


if __name__ == "__main__":
    main()
