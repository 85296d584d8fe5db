"""A run of run.py in a process of its own: prints the rows of its memory, and its seconds, as JSON.

python benchmarks/studies/memory/sample.py NUM_DRAWS COMMIT_INTERVAL
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tfbnn
from benchmarks.lib.process_memory import resident_megabytes
from tfbnn.engine.running.advance import advance_group

LAYERS = [5, 50, 50, 50, 1]


def sample(num_draws, commit_interval):
    """Return the rows (draws, resident MB, largest resident MB so far) of a run, and its seconds."""
    marks = [max(1, num_draws * percent // 100) for percent in (1, 2, 5, 10, 20, 40, 60, 80, 100)]
    rows = []

    def watch(event):
        if marks and event.num_kept >= marks[0]:
            while marks and event.num_kept >= marks[0]:
                marks.pop(0)
            rows.append((event.num_kept, *resident_megabytes()))
        return False

    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "run"
        begin(folder, num_draws)
        began = time.perf_counter()
        advance_group(folder, 0, commit_interval=commit_interval, notify=watch)
        return rows, time.perf_counter() - began


def network():
    """The model; its noise scale is fixed."""
    return tfbnn.BayesianMLP(
        LAYERS, prior=tfbnn.priors.Normal(1.0), likelihood=tfbnn.likelihoods.Gaussian(0.1)
    )


def begin(folder, num_draws):
    """Makes the run folder; the run is stopped at its first block."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(20, LAYERS[0]))
    network().fit_posterior(
        x,
        np.sin(x[:, 0]),
        kernel=tfbnn.kernels.RandomWalkMetropolis(step_size=1e-3, preconditioner="identity"),
        num_chains=1,
        num_results=num_draws,
        num_burnin_steps=1,
        pretraining=None,
        output=folder,
        verbose=0,
        callbacks=[lambda event: True],
    )


if __name__ == "__main__":
    print(json.dumps(sample(int(sys.argv[1]), float(sys.argv[2]))))
