"""Milliseconds per gradient of HMC and NUTS, and compile seconds, against blackjax.

    python benchmarks/gradient_cost.py      # needs the optional packages jax and blackjax

One chain, 11 746 rows, 5-20-20-1 and 5-50-50-1, the same potential (tanh, N(0, 1) prior, learned
noise scale), the same step size and number of leapfrog steps in one process, runs of the two
alternating. NUTS gets a step so small that every tree is full, so that both take the same number
of gradients. JAX has no thread setting of its own, so both use all cores. Nothing here asserts a
time: figures are medians of interleaved runs and their ratio.
"""

import time
import warnings

import numpy as np
from common import keep, markdown

warnings.filterwarnings("ignore")
NUM_ROWS, REPEATS = 11_746, 7
STEP_SIZE, NUM_LEAPFROG_STEPS, TREE_DEPTH = 1e-4, 64, 6
# Transitions per timed run.
COUNT = 16


def rows():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(NUM_ROWS, 5))
    return x, np.sin(x[:, :1] + x[:, 1:2]) + 0.05 * generator.normal(size=(NUM_ROWS, 1))


def ours(layer_sizes, kernel):
    """(function () -> (seconds, gradients), compile seconds)."""
    from blocks import make_lane

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
    lane, compilation = make_lane(spec, kernel, *rows(), theta, COUNT, REPEATS + 1)

    def run():
        before = lane.counters.num_gradients["sampling"].sum()
        began = time.perf_counter()
        lane.advance()
        return time.perf_counter() - began, lane.counters.num_gradients["sampling"].sum() - before

    return run, compilation


def start(layer_sizes):
    """A start with small weights and unit noise scale, in tfbnn's order of parameters."""
    num = sum((a + 1) * b for a, b in zip(layer_sizes[:-1], layer_sizes[1:])) + 1
    theta = 0.3 * np.random.default_rng(1).normal(size=num)
    theta[-1] = 0.0
    return theta.astype(np.float32)


def theirs(layer_sizes, name):
    """The same for blackjax, its density written as a JAX user would."""
    import blackjax
    import jax
    import jax.numpy as jnp

    x, y = (jnp.asarray(array, jnp.float32) for array in rows())

    def log_density(theta):
        hidden, place = x, 0
        for index, (a, b) in enumerate(zip(layer_sizes[:-1], layer_sizes[1:])):
            kernel = theta[place : place + a * b].reshape(a, b)
            hidden = hidden @ kernel + theta[place + a * b : place + a * b + b]
            place += a * b + b
            hidden = jnp.tanh(hidden) if index < len(layer_sizes) - 2 else hidden
        log_scale = theta[-1]
        scale = jnp.exp(log_scale)
        prior = -0.5 * jnp.sum(theta[:-1] ** 2) - 0.5 * scale**2 + log_scale
        return prior - 0.5 * jnp.sum(((y - hidden) / scale) ** 2) - len(x) * log_scale

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


def compare(layer_sizes, name, kernel):
    """One line: medians of interleaved runs, and the median of their ratios."""
    (our_run, our_compile), (their_run, their_compile) = (
        ours(layer_sizes, kernel),
        theirs(layer_sizes, name),
    )
    pairs = []
    for repeat in range(REPEATS + 1):
        our, their = our_run(), their_run()
        if repeat:  # the first pair warms caches and clocks
            pairs.append((1e3 * our[0] / our[1], 1e3 * their[0] / their[1]))
    pairs = np.array(pairs)
    return [
        "-".join(map(str, layer_sizes)),
        name,
        f"{np.median(pairs[:, 0]):.3f}",
        f"{np.median(pairs[:, 1]):.3f}",
        f"{np.median(pairs[:, 0] / pairs[:, 1]):.2f}",
        f"{our_compile:.1f}",
        f"{their_compile:.1f}",
    ]


def main():
    from tfbnn.kernels import HMC, NUTS

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
        "tfbnn ms/gradient",
        "blackjax ms/gradient",
        "ratio",
        "tfbnn compile s",
        "blackjax compile s",
    ]
    lines = [
        compare(layer_sizes, name, kernel)
        for layer_sizes in ([5, 20, 20, 1], [5, 50, 50, 1])
        for name, kernel in kernels.items()
    ]
    keep(
        "gradient_cost.md",
        f"# Cost of a gradient, one chain, {NUM_ROWS} rows\n\n"
        f"{markdown(header, lines)}\n\nMedians of {REPEATS} interleaved runs of {COUNT} "
        "transitions; both use all cores. Below 1 the ratio favours tfbnn.",
    )


if __name__ == "__main__":
    main()
