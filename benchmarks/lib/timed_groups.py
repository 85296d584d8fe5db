"""HMC whose gradients are timed: the compiled block of a run, with chain groups on threads as in a fit.

Imported by child processes too, whose package and whose `blocks` may be those of another checkout:
nothing here but public names of the package and `blocks.make_group`.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import tfbnn
from benchmarks.lib.blocks import make_group

NUM_LEAPFROG_STEPS, STEP_SIZE = 16, 1e-5
KERNEL = tfbnn.kernels.HMC(
    step_size=STEP_SIZE,
    num_leapfrog_steps=NUM_LEAPFROG_STEPS,
    trajectory_jitter=0.0,
    preconditioner="identity",
)
# A timed call should take about so long if a hidden unit and row cost so much; at most so many
# transitions, so that a device that is much faster does not come to time its own overhead alone.
_SECONDS, _SECONDS_PER_UNIT_AND_ROW, _MOST_TRANSITIONS = 0.4, 1.5e-9, 64
# More than any script asks for: the plan of a run has an end, a benchmark need not know it.
_NUM_BLOCKS = 1000


def network(layers, dtype):
    """The model of all timings: tanh, N(0, 1) prior, unit noise, no transforms."""
    return tfbnn.BayesianMLP(
        list(layers),
        prior=tfbnn.priors.Normal(1.0),
        likelihood=tfbnn.likelihoods.Gaussian(1.0),
        x_transform=None,
        y_transform=None,
        dtype=dtype,
    )


def random_rows(layers, num_rows):
    """Inputs [N, D] and targets [N, K] of a network; the cost of a gradient does not hang on them."""
    generator = np.random.default_rng(0)
    return generator.normal(size=(num_rows, layers[0])), generator.normal(
        size=(num_rows, layers[-1])
    )


def start(num_parameters, num_chains=1, seed=1, dtype="float32"):
    """Small weights [C, P], whose trajectories no step rejects."""
    generator = np.random.default_rng(seed)
    return (0.1 * generator.normal(size=(num_chains, num_parameters))).astype(dtype)


def num_transitions(layers, num_rows, times_faster=1):
    """Transitions of one timed call: some tenths of a second of work, as far as it can be foreseen.

    On a device that is so many times faster than a processor's core, accordingly more.
    """
    gradient = _SECONDS_PER_UNIT_AND_ROW * num_rows * sum(layers[1:-1]) / times_faster
    return int(np.clip(_SECONDS / (gradient * NUM_LEAPFROG_STEPS), 1, _MOST_TRANSITIONS))


class TimedGroups:
    """Chain groups of one program, ready to sample.

    Attributes:
        compilation: Seconds that compiling took.
    """

    def __init__(
        self,
        layers,
        x,
        y,
        num_groups=1,
        *,
        chains_each=1,
        jit_compile=True,
        dtype="float32",
        kernel=KERNEL,
        times_faster=1,
    ):
        """
        Args:
            layers: Sizes of the layers.
            x, y: Rows [N, D], [N, K].
            num_groups: Chain groups that can be advanced together.
            chains_each: Chains of a chain group, batched in its program.
            jit_compile: Whether XLA compiles it.
            dtype: Dtype of the network.
            kernel: Settings, with KERNEL's number of leapfrog steps and a definite preconditioner.
            times_faster: As in `num_transitions`.
        """
        spec = network(layers, dtype).spec
        starts = [
            start(spec.layout.num_parameters, chains_each, seed=1 + n, dtype=dtype)
            for n in range(num_groups)
        ]
        count = num_transitions(layers, len(x), times_faster)
        group, self.compilation = make_group(
            spec,
            kernel,
            x,
            y,
            starts[0],
            count,
            _NUM_BLOCKS,
            sink=_Nowhere(),
            jit_compile=jit_compile,
        )
        others = [type(group)(group.program, group.chains, at, _Nowhere()) for at in starts[1:]]
        self.groups = [group, *others]
        self._num_gradients = count * NUM_LEAPFROG_STEPS * chains_each

    def seconds(self, num_groups=1, num_threads=1):
        """Wall-clock seconds per gradient of some of the chain groups, all their gradients counted."""
        began = time.perf_counter()
        if num_groups == 1:  # in this thread, whose device is the one to be timed
            self.groups[0].advance()
        else:
            with ThreadPoolExecutor(num_threads) as pool:
                for done in [pool.submit(group.advance) for group in self.groups[:num_groups]]:
                    done.result()
        return (time.perf_counter() - began) / (num_groups * self._num_gradients)


class _Nowhere:
    """A sink that drops the draws: a chain group that runs for ever needs no room for them."""

    checkpoint = None

    def append(self, draws, statistics):
        """Drops them."""

    def after_block(self, group, phase_ended):
        """Nothing is to be committed."""

    def commit(self, group):
        """Nothing is to be committed."""
