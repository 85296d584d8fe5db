"""Dask workers killed mid-chain, ten times in one run: benchmarks/results/cluster_kills.md.

Run from a checkout with the extra `cluster`: python -m benchmarks cluster_kills. A few minutes.
"""

import argparse
import os
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

import tfbnn
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from tests.support.busy_workers import kill_one  # noqa: E402
from tfbnn.storage.run.folder import RunFolder

INTRODUCTION = """\
# Dask workers killed mid-chain

`tfbnn.cluster.fit` samples two chains of a 5-20-20-1 network on 2000 rows (HMC, 16 leapfrog steps), on two
worker processes of this machine, with commits every second. A busy worker is killed by SIGKILL at a random
moment after a commit, ten times in a full run. Its chain continues from the last commit, on the other worker
or on a new one that Dask starts. The reference is one `fit_posterior` without a run folder, in a process with
one thread per operation."""
NUM_TRANSITIONS = 20_000


def main(arguments=None):
    """Makes both runs and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    target = output_folder(options)
    num_kills, share = (1, 50) if options.quick else (10, 1)

    from distributed import Client, LocalCluster

    with (
        tempfile.TemporaryDirectory() as root,
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")
        as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        settings = settings_of(NUM_TRANSITIONS // share)
        reference = client.submit(serial_draws, settings, pure=False).result()
        folder = os.path.join(root, "run")
        killer = Killer(client, folder, num_kills)
        killer.start()
        model, began = network(), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = tfbnn.cluster.fit(
                model, *rows(), client=client, output=folder, commit_interval=1.0, **settings
            )
        seconds = time.perf_counter() - began
        killer.stop()
    equal = np.array_equal(model.posterior.draws, reference)
    lines = [
        f"Kills: {len(killer.kills)}, in a run of {seconds:.0f} s, in which each new worker imports TensorFlow "
        "and compiles. "
        f"Draws equal to those of the reference, bit by bit: **{'yes' if equal else 'NO'}**.",
        *run_notes(run),
    ]
    table = markdown(
        ["time of the kill, s", "transitions committed until then, by chain"], killer.kills
    )
    keep("cluster_kills.md", "\n\n".join([INTRODUCTION, table, *lines]), target)


def run_notes(run):
    """Return the lines of the report on tasks that were tried again."""
    notes = [note for note in run.notes if "tried again" in note]
    if not notes:
        return []
    text = (
        "Dask itself restarts the task of a killed worker a few times. After that the task fails (KilledWorker), "
        "and `tfbnn.cluster.fit` submits it again. The report of the run has these:\n\n"
    )
    return [text + "\n".join(f"- {note.replace(' 1 times', ' once')}" for note in notes)]


def rows():
    """(x [2000, 5], y [2000])."""
    x = np.random.default_rng(0).normal(size=(2000, 5))
    return x, np.sin(x.sum(axis=1)) + 0.1 * np.random.default_rng(1).normal(size=len(x))


def network():
    """The model, not fitted yet."""
    return tfbnn.BayesianMLP([5, 20, 20, 1], prior=tfbnn.priors.Normal(1.0))


def settings_of(num_transitions):
    """Arguments that both runs have."""
    return {
        "kernel": tfbnn.kernels.HMC(num_leapfrog_steps=16),
        "num_chains": 2,
        "num_burnin_steps": num_transitions // 3,
        "num_results": num_transitions - num_transitions // 3,
        "pretraining": tfbnn.Pretraining(epochs=20, newton_iterations=0),
        "verbose": 0,
    }


def serial_draws(settings):
    """Draws of `fit_posterior`, in memory, where it is called."""
    model = network()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit_posterior(*rows(), **settings)
    return model.posterior.draws


class Killer(threading.Thread):
    """Kills busy workers while chains have begun and have not ended.

    Attributes:
        kills: Rows of the table.
    """

    def __init__(self, client, folder, count):
        super().__init__(daemon=True)
        self.kills = []
        self._client, self._folder, self._count = client, Path(folder), count
        self._generator = np.random.default_rng(5)
        self._stopped = threading.Event()

    def stop(self):
        """Ends the thread."""
        self._stopped.set()
        self.join()

    def run(self):
        began, before = time.perf_counter(), []
        while len(self.kills) < self._count and not self._stopped.wait(self._pause()):
            done = self._committed()
            if done == before or not kill_one(self._client, self._generator):
                continue
            before = done
            self.kills.append([f"{time.perf_counter() - began:.1f}", ", ".join(map(str, done))])

    def _pause(self):
        return self._generator.uniform(1.0, 10.0)

    def _committed(self):
        """Transitions that each group has committed."""
        if not (self._folder / "run.h5").exists():
            return []
        folder = RunFolder.open(self._folder)
        found = [folder.checkpoint(group) for group in range(folder.num_groups)]
        done = [one.counters["transition"] if one else 0 for one in found]
        return done if any(done) else []


if __name__ == "__main__":
    main()
