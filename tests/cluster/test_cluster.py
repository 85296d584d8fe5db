"""Runs and predictions on a Dask cluster of two processes on this machine, some of them killed."""

import os
import shutil
import subprocess
import sys
import time
import types
import unittest.mock
from pathlib import Path

import numpy as np
import pytest

import tfbnn
from tests.support import small_runs
from tests.support.busy_workers import kill_one
from tests.support.run_folders import created_run
from tests.support.small_runs import X, Y, assert_same_draws, small_model
from tfbnn.cluster import tasks
from tfbnn.cluster.dask_executor import Tasks
from tfbnn.engine.basis import compile
from tfbnn.exceptions import ChainError, RunFolderError, RunLockedError
from tfbnn.run.counters import Clock
from tfbnn.run.plan import Plan, Stage
from tfbnn.storage.run.folder import RunFolder

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

RUN = small_runs.RUN | dict(num_results=160, num_burnin_steps=40, jit_compile=False)
pytestmark = [
    pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning", "ignore:The run was stopped"),
    # Sockets that Dask leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def serial_draws():
    """(draws, statistics) of `fit_posterior` in memory, where it is called."""
    model = small_model()
    model.fit_posterior(X, Y, **RUN)
    return model.posterior.draws, model.posterior.sample_stats


@pytest.fixture(scope="module")
def client():
    """A client of two worker processes, each of one thread."""
    settings = {"distributed.comm.timeouts.connect": "2s"}
    with (
        # Dask sets OMP_NUM_THREADS for workers in this process too, and leaves it.
        unittest.mock.patch.dict(os.environ),
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Looks at the folder often, and pauses briefly before another attempt."""
    monkeypatch.setattr("tfbnn.cluster.dask_executor._LOOK_SECONDS", 0.05)
    monkeypatch.setattr("tfbnn.cluster.dask_executor._LONGEST_PAUSE_SECONDS", 0.2)


def fit(client, output, model=None, **options):
    """(model, run) of a small fit on the cluster."""
    model = model or small_model()
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
    set_block_length(path, 4)
    return path


def set_block_length(path, length):
    begun = RunFolder.open(path)
    plan = begun.description["plan"] | {"length": length}
    begun.replace_description(begun.description | {"plan": plan})


def random_walk(target):
    """A kernel as users build it."""
    import tensorflow_probability as tfp

    return tfp.mcmc.RandomWalkMetropolis(target)


def submit_group(client, path, commit_interval=0):
    """The future of a task that advances a chain group, as `tfbnn.cluster.fit` submits it."""
    run_id, stop = RunFolder.open(path).run_id, str(path / "stop")
    advance = tasks.advance, str(path), run_id, 0, commit_interval, None, stop
    return client.submit(*advance, pure=False)


def is_free(path):
    """Return whether no task has group 0."""
    try:
        with RunFolder.open(path).writer(0):
            return True
    except RunLockedError:
        return False


class Killer:
    """A callback that kills a worker with SIGKILL while it advances a chain, several times."""

    def __init__(self, client, kills, seed=0):
        self._client, self._left, self.transitions = client, kills, []
        self._generator = np.random.default_rng(seed)
        self._next = 1

    def __call__(self, event):
        done = event["transition"] + (event["phase"] == "sampling") * RUN["num_burnin_steps"]
        if not self._left or done < self._next or not kill_one(self._client, self._generator):
            return
        self._left -= 1
        self.transitions.append(done)
        self._next = done + self._generator.integers(1, 10)


def test_equals_the_serial_run(client, whole):
    """Bitwise, on as many threads per operation: the serial run is made in a worker too."""
    model, run, folder = whole
    draws, statistics = client.submit(serial_draws, pure=False).result()
    np.testing.assert_array_equal(model.posterior.draws, draws)
    for name, values in statistics.items():
        np.testing.assert_array_equal(model.posterior.sample_stats[name], values)
    assert_same_draws(tfbnn.load(folder), model)
    assert sorted(os.listdir(folder)) == ["lane-000", "lane-001", "lease", "run.h5"]
    assert run.diagnosis is not None and run.seconds["sampling"] > 0


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_workers_cost_nothing_but_time(client, whole, folder, kills):
    kill = Killer(client, kills)
    model, _ = fit(client, folder, resume=True, callbacks=[kill])
    assert len(kill.transitions) == kills and max(kill.transitions) < 200
    assert_same_draws(model, whole[0])


@pytest.mark.slow
def test_a_worker_that_is_retired_commits(client, whole, folder):
    """Retire a worker, as happens at the end of its lifetime."""
    set_block_length(folder, 1)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as own,
    ):
        submitted = submit_group(own, folder, commit_interval=1e9)
        while not RunFolder.open(folder).checkpoint(0):
            time.sleep(0.02)  # the end of warm-up
        assert submitted.status == "pending"
        own.retire_workers(list(own.scheduler_info()["workers"]))
        while own.scheduler_info()["workers"] or not is_free(folder):
            time.sleep(0.1)
        assert 40 < RunFolder.open(folder).checkpoint(0).counters["transition"] < 200
    assert_same_draws(fit(client, folder, resume=True)[0], whole[0])


def test_one_of_two_tasks_of_a_group_waits(client, whole, folder):
    """It waits for another process too, which this one is; a chain group that is finished is left."""
    with RunFolder.open(folder).writer(0):
        futures = [submit_group(client, folder) for _ in range(2)]
        time.sleep(0.5)
        assert [future.status for future in futures] == ["pending", "pending"]
    assert client.gather(futures) == [True, True]
    before = {path: path.stat().st_mtime_ns for path in (folder / "lane-000").iterdir()}
    assert submit_group(client, folder).result()
    assert {path: path.stat().st_mtime_ns for path in (folder / "lane-000").iterdir()} == before
    draws = RunFolder.open(folder).read(0).draws
    np.testing.assert_array_equal(draws[:, 0], whole[0].posterior.draws[0])


def test_a_new_call_goes_on_after_the_death_of_the_scheduler(client, whole, folder):
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    address = folder / "scheduler.json"
    scheduler = subprocess.Popen(
        [*program, "--port", "0", "--no-dashboard", "--scheduler-file", str(address)], **silent
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address)]
        + ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"],
        **silent,
    )

    def kill(event):
        if event["transition"] > 0:
            scheduler.kill()

    try:
        while not address.exists():
            time.sleep(0.1)
        with (
            distributed.Client(scheduler_file=str(address), timeout=2, set_as_default=False) as own,
            pytest.raises(ConnectionError, match="resume=True"),
        ):
            fit(own, folder, resume=True, callbacks=[kill])
        found = map(RunFolder.open(folder).checkpoint, range(2))
        # The group is the one that the worker happened to take first.
        assert any(one.counters["transition"] > 0 for one in found if one)
        assert_same_draws(fit(client, folder, resume=True)[0], whole[0])
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def test_a_bad_chain_does_not_lose_the_others(client, whole, folder):
    (folder / "lane-001" / "lease").mkdir(parents=True)  # where a file should be
    model = small_model()
    with pytest.raises(ChainError, match="chain 1: IsADirectoryError.*others are in model"):
        fit(client, folder, model, resume=True)
    np.testing.assert_array_equal(model.posterior.draws, whole[0].posterior.draws[:1])


def test_an_interrupt_commits_and_a_new_call_goes_on(client, whole, folder):
    def interrupt(event):
        if event["num_kept"]:
            raise KeyboardInterrupt

    model = small_model()
    with pytest.raises(KeyboardInterrupt):
        fit(client, folder, model, resume=True, callbacks=[interrupt])
    with pytest.warns(UserWarning, match="stopped early"):
        count = model.posterior.num_results
    assert 0 < count < 160
    np.testing.assert_array_equal(model._ensemble.draws, whole[0].posterior.draws[:, :count])
    for group in (0, 1):
        with RunFolder.open(folder).writer(group):
            pass  # no task is at work any more
    assert not list(folder.glob("stop*"))
    events = []

    def stop(event):
        events.append(event)
        return True

    stopped = fit(client, folder, resume=True, callbacks=[stop])
    assert stopped[1].num_results < 160 and len(events) == 1
    assert_same_draws(fit(client, folder, resume=True)[0], whole[0])


def test_errors_of_the_run_itself_are_raised_at_once(client, folder, tmp_path):
    with pytest.raises(RunFolderError, match="holds a run already.*resume=True"):
        fit(client, folder)
    with pytest.raises(tfbnn.StartError, match="chain"):
        # Residuals beyond what float32 can square.
        model = tfbnn.BayesianMLP([2, 3, 1], prior=tfbnn.priors.Normal(1.0), y_transform=None)
        options = RUN | dict(client=client, output=tmp_path / "new", pretraining=None)
        tfbnn.cluster.fit(model, X, 1e30 * Y, **options)
    assert sorted(os.listdir(tmp_path / "new")) == ["lease"]
    # What a search on the cluster had left in release 0.2 is no run.
    created_run(tmp_path / "new" / "preparation", {}, {}, 1)
    assert RunFolder.find(tmp_path / "new") is None
    for path, error, words in (
        (folder, RunFolderError, "another run"),
        (tmp_path / "x", FileNotFoundError, "all workers share"),
    ):
        with pytest.raises(error, match=words):
            client.submit(tasks.advance, str(path), "0", 0, 0, None, "none", pure=False).result()


class FakeClient:
    """A client whose tasks end when they are asked to stop."""

    def __init__(self, *results, status_then="running", has_workers=True):
        self._results, self._status_then, self._sign = results, status_then, "no file yet"
        self._has_workers = has_workers

    @property
    def status(self):
        return self._status_then if os.path.exists(self._sign) else "running"

    def submit(self, function, path, run_id, group, interval, most, sign, *, pure):
        self._sign = sign
        return FakeFuture(sign, self._results[group])

    def processing(self):
        return {"worker": [FakeFuture.key]} if self._has_workers else {}


class FakeFuture:
    key = "key"

    def __init__(self, sign, result):
        self._sign, self.result = sign, result

    @property
    def status(self):
        return "finished" if os.path.exists(self._sign) else "pending"


def raise_error(error):
    raise error


class Stopped(Tasks):
    """Tasks that are stopped while all of them are at work."""

    def reports(self):
        yield "an event"


def executor_of(folder, *results, kind=Tasks, **options):
    """An executor of one group for each result, which knows of nothing that was committed."""
    run = types.SimpleNamespace(path=str(folder), run_id="1", checkpoint=lambda group: None)
    store = types.SimpleNamespace(folder=run, commit_interval=0)
    groups = [[group] for group in range(len(results))]
    plan = Plan(groups, 1, [Stage("sampling", 1)], num_results=1, stride=1)
    return kind(plan, FakeClient(*results, **options), store, Clock())


class TestTasks:
    @pytest.fixture(autouse=True)
    def hurried(self, monkeypatch):
        monkeypatch.setattr("tfbnn.cluster.dask_executor._POLL_SECONDS", 0.0)
        monkeypatch.setattr("tfbnn.cluster.dask_executor._LONGEST_PAUSE_SECONDS", 0.0)

    def test_a_stop_is_not_another_attempt(self, tmp_path):
        wrong = ValueError("wrong")
        results = (
            lambda: False,
            lambda: True,
            lambda: raise_error(OSError("gone")),
            lambda: raise_error(wrong),
        )
        executor = executor_of(tmp_path, *results, kind=Stopped)
        ending = executor.run(None, None, notify=lambda event: True)
        assert ending.failures == {(3,): wrong} and not executor.repeated and not ending.interrupted
        assert not os.listdir(tmp_path)

    def test_tasks_out_of_reach_keep_the_sign(self, tmp_path):
        executor = executor_of(tmp_path, lambda: False, kind=Stopped, status_then="connecting")
        executor.run(None, None, notify=lambda event: True)
        assert len(list(tmp_path.glob("stop-*"))) == 1 and not executor.failures

    def test_attempts_in_vain_end_with_advice(self, tmp_path):
        executor = executor_of(tmp_path, lambda: False)
        Path(executor._sign).touch()
        executor.run(None, None, notify=lambda event: False)
        assert "5 times in a row" in str(executor.failures[0])
        assert str(executor.failures[0]).endswith("or workers with a longer lifetime.")
        assert executor.repeated == {(0, "worker closed"): 4}

    def test_a_cluster_without_workers_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tfbnn.cluster.dask_executor._LOOK_SECONDS", 0.0)
        monkeypatch.setattr("tfbnn.cluster.dask_executor._ALONE_SECONDS", 0.0)
        executor = executor_of(tmp_path, lambda: True, has_workers=False)
        with pytest.warns(UserWarning, match=f"no worker for 0 s. The run waits.*{tmp_path}"):
            executor.run(None, None, notify=lambda event: True)


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"client": None}, TypeError, "client must be a distributed.Client.*None"),
        ({"output": None}, TypeError, "output must be a folder.*None"),
        ({"kernel": random_walk}, ValueError, "callable cannot be sent"),
        ({"num_chains": 0}, ValueError, "num_chains"),
    ],
)
def test_bad_arguments_are_refused_here(client, tmp_path, options, error, words):
    arguments = RUN | {"client": client, "output": tmp_path / "run"} | options
    with pytest.raises(error, match=words):
        tfbnn.cluster.fit(small_model(), X, Y, **arguments)
    assert not os.listdir(tmp_path)


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'tfbnn\[cluster\]'"):
        tfbnn.cluster.fit(small_model(), X, Y, client=None, output="run")


def test_chains_share_a_gpu_but_not_several(monkeypatch):
    monkeypatch.setattr(compile, "has_gpu", lambda: True)
    assert compile.chain_groups(3) == [[0, 1, 2]]
    assert compile.chain_groups(3, many_devices=True) == [[0], [1], [2]]
    assert compile.chain_groups(3, apart=False, many_devices=True) == [[0, 1, 2]]


def test_predictions_are_made_block_by_block(client, whole, tmp_path):
    """Predict as the guide does."""
    import dask.array

    x, path = np.random.default_rng(1).normal(size=(50, 2)), str(tmp_path / "model.h5")
    whole[0].save(path)
    rows = dask.array.from_array(x, chunks=((20, 23, 7), 2))
    both = rows.map_blocks(
        lambda block: np.stack([*tfbnn.load(path).predict(block)], axis=1),
        chunks=(rows.chunks[0], (2,)),
        dtype=float,
        meta=np.empty((0, 2)),
    )
    # Blocks of other sizes are summed in another order.
    expected = np.stack([*whole[0].predict(x)], axis=1)
    np.testing.assert_allclose(client.compute(both, sync=True), expected, rtol=1e-5)


def test_a_run_that_ends_when_it_has_enough_ends_as_in_one_process(client, tmp_path):
    until = tfbnn.Until(ess=150, rhat=1.05)
    options = RUN | {"num_results": 1000, "until": until}
    here, there = small_runs.calm_model(), small_runs.calm_model()
    expected = here.fit_posterior(X, Y, **options)
    folder = tmp_path / "run"
    run = tfbnn.cluster.fit(there, X, Y, client=client, output=folder, **options)
    assert run.num_results < 1000 and run.ended == expected.ended
    assert_same_draws(there, here)
    _, again = tfbnn.resume(folder, verbose=0)
    assert again.ended == run.ended and again.num_results == run.num_results


def test_chains_start_where_they_are_told_to(client, tmp_path):
    theta = np.full((2, 14), 0.1, np.float32)
    brief = dict(num_results=4, num_burnin_steps=4, pretraining=None)
    model, run = fit(client, tmp_path / "run", initial_state=theta, **brief)
    np.testing.assert_allclose(run.start_log_prob, model.log_prob(theta, X, Y), rtol=1e-4)
