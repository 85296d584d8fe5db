"""Memory of a run whose draws go to a folder: benchmarks/results/memory.md, in a few minutes.

Run from a checkout with the package installed: python -m benchmarks memory

Needs Linux and 2.5 GB of disk; --quick needs 50 MB.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import tfbnn
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.process_memory import resident_megabytes
from tfbnn.engine.running.advance import advance_group

LAYERS = [5, 50, 50, 50, 1]

INTRODUCTION = """\
# Memory of a run that writes to a folder

One chain of a 5-50-50-50-1 network ({size} weights in float32) is sampled by random walk on {rows} rows, with
`output=` and the default `commit_interval`. Every transition is kept. The table has the resident memory of
the whole process, TensorFlow included, after the block in which the number of draws was reached, and the
largest until then. Up to 64 MB of draws wait for a commit. While they are written, they take three times as
much memory.

From {settled} draws to {last}, the largest resident memory grew by {growth:.1f} MB. The draws themselves take
{draws:.0f} MB, which a run without a folder needs in addition.
"""


def main(arguments=None):
    """Samples and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    num_draws, commit_interval = (2000, 0.0) if options.quick else (100_000, 30.0)
    with tempfile.TemporaryDirectory() as root:
        rows, seconds = sample(Path(root) / "run", num_draws, commit_interval)
    keep("memory.md", table(rows, seconds), folder)


def sample(folder, num_draws, commit_interval):
    """Rows (draws, resident MB, largest resident MB so far) of a run, and its seconds."""
    begin(folder, num_draws)
    marks = [max(1, num_draws * percent // 100) for percent in (1, 2, 5, 10, 20, 40, 60, 80, 100)]
    rows, began = [], time.perf_counter()

    def watch(event):
        if marks and event.num_kept >= marks[0]:
            while marks and event.num_kept >= marks[0]:
                marks.pop(0)
            rows.append((event.num_kept, *resident_megabytes()))
        return False

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


def table(rows, seconds):
    """The result as Markdown."""
    size = network().spec.layout.num_parameters
    settled = next(row for row in rows if row[0] >= rows[-1][0] / 10)
    text = INTRODUCTION.format(
        size=size,
        rows=20,
        settled=settled[0],
        last=rows[-1][0],
        growth=rows[-1][2] - settled[2],
        draws=rows[-1][0] * size * 4 / 1e6,
    )
    body = [(draws, f"{now:.0f}", f"{most:.0f}") for draws, now, most in rows]
    header = ["draws", "resident memory, MB", "largest so far, MB"]
    return f"{text}\n{markdown(header, body)}\n\nThe run took {seconds:.0f} s."


if __name__ == "__main__":
    main()
