"""Transitions per second of four chains in worker processes: benchmarks/results/workers.md.

Run from a checkout with the package installed: python benchmarks/workers.py. About ten minutes, on
a machine that has nothing else to do.
"""

import argparse
import dataclasses
import statistics
import time
import warnings

import numpy as np
from common import add_common_options, keep, markdown, output_folder

import tfbnn

NUM_ROWS, LAYERS = 11_746, [5, 20, 20, 1]
NUM_CHAINS, NUM_LEAPFROG_STEPS = 4, 64

INTRODUCTION = f"""\
# Four chains in worker processes

Network 5-20-20-1 on {NUM_ROWS} rows, HMC with {NUM_LEAPFROG_STEPS} leapfrog steps, float32. HMC
transitions per second over all chains, in the sampling phase, from the moment when all chains have
begun with it: imports and compilation are left out. The arrangements take turns; medians of
{{rounds}} turns of {{seconds:.0f}} s each, and the smallest and largest ratio to the first row of the
same turn.

- one after another: one chain has both cores, as TensorFlow divides its operations among them;
- threads of one process: `num_workers=1`, the default of short runs: blocks of two chains run at a
  time, each with both cores to divide its operations among;
- worker processes: `num_workers=2`, one thread per operation, draws by way of the disk.
"""


@dataclasses.dataclass(frozen=True)
class Arrangement:
    """How chains share the machine.

    Attributes:
        name: That of the row.
        num_chains, num_workers: Arguments of `fit_posterior`. One chain alone stands for several,
            one after another.
    """

    name: str
    num_chains: int
    num_workers: int


ARRANGEMENTS = (
    Arrangement("one after another", 1, 1),
    Arrangement("threads of one process", NUM_CHAINS, 1),
    Arrangement("worker processes", NUM_CHAINS, 2),
)


class Stopwatch:
    """A callback that counts transitions for some time, and then stops the run."""

    def __init__(self, seconds):
        self._seconds, self._first, self._last = seconds, None, None

    def __call__(self, event):
        lanes = event.get("lanes", [])
        done = [lane["transitions"]["sampling"] for lane in lanes]
        if not done or min(done) == 0:
            return False
        self._last = time.perf_counter(), sum(done)
        self._first = self._first or self._last
        return self._last[0] - self._first[0] > self._seconds

    @property
    def rate(self):
        """Transitions per second."""
        (began, before), (ended, after) = self._first, self._last
        return (after - before) / (ended - began)


def measure(arrangement, seconds):
    """Transitions per second over all chains."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(NUM_ROWS, LAYERS[0]))
    y = np.sin(x[:, 0] + x[:, 1]) + 0.05 * generator.normal(size=NUM_ROWS)
    stopwatch = Stopwatch(seconds)
    with warnings.catch_warnings():
        # The run is stopped long before it has converged.
        warnings.simplefilter("ignore")
        tfbnn.BayesianMLP(LAYERS, prior=tfbnn.priors.Normal(1.0)).fit_posterior(
            x,
            y,
            # On the step size the time of a transition does not depend.
            kernel=tfbnn.kernels.HMC(
                step_size=1e-4, num_leapfrog_steps=NUM_LEAPFROG_STEPS, preconditioner="identity"
            ),
            num_chains=arrangement.num_chains,
            num_workers=arrangement.num_workers,
            num_results=20_000,
            num_burnin_steps=1,
            pretraining=None,
            verbose=0,
            callbacks=[stopwatch],
        )
    return stopwatch.rate


def table(rates):
    """Markdown of the rates of every turn, a dict name -> list."""
    first = rates[ARRANGEMENTS[0].name]
    rows = []
    for name, values in rates.items():
        ratios = sorted(value / base for value, base in zip(values, first))
        median = statistics.median(ratios)
        rows.append(
            [
                name,
                f"{statistics.median(values):.1f}",
                f"{median:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
            ]
        )
    return markdown(["chains", "transitions per second", "ratio"], rows)


def main(arguments=None):
    """Measures and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    rounds, seconds = (1, 2.0) if options.quick else (5, 18.0)
    rates = {arrangement.name: [] for arrangement in ARRANGEMENTS}
    for _ in range(rounds):
        for arrangement in ARRANGEMENTS:
            rates[arrangement.name].append(measure(arrangement, seconds))
            print(arrangement.name, f"{rates[arrangement.name][-1]:.1f} per second", flush=True)
    text = INTRODUCTION.format(rounds=rounds, seconds=seconds)
    keep("workers.md", "\n".join([text, table(rates)]), folder)


if __name__ == "__main__":
    main()
