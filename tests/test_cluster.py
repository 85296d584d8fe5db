"""Runs and predictions on a Dask cluster of two processes on this machine, some of them killed."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tfbnn
from tfbnn.cluster import tasks
from tfbnn.engine import compile
from tfbnn.exceptions import ChainError, RunFolderError
from tfbnn.kernels import HMC
from tfbnn.storage import RunFolder

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.sin(X[:, 0])
RUN = dict(
    kernel=HMC(num_leapfrog_steps=3),
    num_chains=2,
    num_results=600,
    num_burnin_steps=200,
    pretraining=tfbnn.Pretraining(epochs=3, batch_size=None, newton_iterations=0),
    seed=2,
    verbose=0,
)
pytestmark = [
    pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning", "ignore:The run was stopped"),
    # Sockets that Dask leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def serial_draws():
    """(draws, statistics) of `fit_posterior` in memory, where it is called."""
    model = tfbnn.BayesianMLP([2, 3, 1])
    model.fit_posterior(X, Y, **RUN)
    return model.posterior.draws, model.posterior.sample_stats


@pytest.fixture(scope="module")
def client():
    """A client of two worker processes, each of one thread."""
    settings = {"distributed.comm.timeouts.connect": "2s"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Looks at the folder often, and pauses briefly before another attempt."""
    monkeypatch.setattr("tfbnn.cluster.watch._LOOK_SECONDS", 0.05)
    monkeypatch.setattr("tfbnn.cluster.attempts._LONGEST_PAUSE_SECONDS", 0.2)


def fit(client, output, **options):
    """(model, run) of a small fit on the cluster."""
    model = tfbnn.BayesianMLP([2, 3, 1])
    options = RUN | {"commit_interval": 0} | options
    return model, tfbnn.cluster.fit(model, X, Y, client=client, output=output, **options)


@pytest.fixture(scope="module")
def whole(client, tmp_path_factory):
    """(model, run, run folder) of a fit on the cluster that nothing interrupted."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return *fit(client, folder), folder


@pytest.fixture
def folder(whole, tmp_path):
    """A run folder with starts and no draws, whose blocks are so short that a chain takes long."""
    path = tmp_path / "run"
    path.mkdir()
    shutil.copy(whole[2] / "run.h5", path)
    begun = RunFolder.open(path)
    plan = begun.description["plan"] | {"length": 2}
    begun.replace_description(begun.description | {"plan": plan})
    return path


def assert_same_draws(model, other):
    np.testing.assert_array_equal(model.posterior.draws, other.posterior.draws)
    for name, values in other.posterior.sample_stats.items():
        np.testing.assert_array_equal(model.posterior.sample_stats[name], values)


def test_equals_the_serial_run(client, whole):
    """Bitwise, on as many threads per operation: the serial run is made in a worker too."""
    model, run, folder = whole
    draws, statistics = client.submit(serial_draws, pure=False).result()
    np.testing.assert_array_equal(model.posterior.draws, draws)
    for name, values in statistics.items():
        np.testing.assert_array_equal(model.posterior.sample_stats[name], values)
    assert_same_draws(tfbnn.load(folder), model)
    assert sorted(os.listdir(folder)) == ["lane-000", "lane-001", "lease", "run.h5"]
    assert run.diagnosis is not None
