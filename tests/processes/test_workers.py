"""Worker processes: the same bits as one process, and crashes, kills, stops and refusals."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbnn
from tests.support.small_runs import X, Y, small_model
from tests.support.workers import LONG, is_alive, workers_of
from tfbnn.engine.kernels.from_callable import CallableKernel
from tfbnn.engine.running.driver import check_workers, count_workers
from tfbnn.engine.running.workers import process
from tfbnn.engine.running.workers.crew import run_in_workers
from tfbnn.engine.running.workers.process import WorkerProcess, error_from_json, error_to_json
from tfbnn.exceptions import RunLockedError, StartError
from tfbnn.kernels import HMC
from tfbnn.run.counters import Counters
from tfbnn.run.options import Sampling
from tfbnn.run.plan import Leg, Plan
from tfbnn.run.stores import FolderStore
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.storage import RunFolder

pytestmark = [
    pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning", "ignore:The run was stopped"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc"),
]

# Without a main guard, from standard input, and with one thread per operation everywhere.
SCRIPT = """
import os, signal, sys, warnings
import numpy as np
import tensorflow as tf
import tfbnn.run.plan
from tests.support.small_runs import X, Y, small_model
from tests.support.workers import LONG, RUN, workers_of

tf.config.threading.set_intra_op_parallelism_threads(1)
tfbnn.run.plan.block_length = lambda *_: 320
warnings.simplefilter("ignore")

def end_badly(event):
    if event.get("num_kept", 0) >= 300:
        print("workers", *workers_of(os.getpid()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

model = small_model()
model.fit_posterior(X, Y, **RUN, num_workers=1)
np.savez("serial", draws=model.posterior.draws, **model.posterior.sample_stats)
model.fit_posterior(X, Y, **LONG, num_workers=2, output="run", commit_interval=0, callbacks=[end_badly])
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """(Folder, workers) of SCRIPT from standard input: one run in one process, and one in workers
    whose parent was killed.
    """
    folder = tmp_path_factory.mktemp("script")
    done = subprocess.run(
        [sys.executable, "-"],
        input=SCRIPT,
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        text=True,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return folder, [int(word) for word in done.stdout.split("workers")[1].split()]


def assert_begins_with(draws, statistics, folder):
    """That they are the first of the run in one process."""
    with np.load(folder / "serial.npz") as serial:
        assert np.ptp(serial["draws"][:, :, 0], axis=1).min() > 0
        count = draws.shape[1]
        np.testing.assert_array_equal(draws, serial["draws"][:, :count])
        assert set(serial) == {"draws", *statistics}
        for name, values in statistics.items():
            np.testing.assert_array_equal(values, serial[name][:, :count])


def test_workers_do_not_outlive_a_parent_that_is_killed(script):
    _, workers = script
    assert len(workers) == 2
    end = time.monotonic() + 20
    while any(map(is_alive, workers)):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_draws_of_workers_have_the_bits_of_those_of_one_process(script):
    folder, _ = script
    posterior = tfbnn.load(folder / "run").posterior
    assert posterior.draws.shape[0] == 3 and 300 <= posterior.draws.shape[1] < 1000
    assert_begins_with(posterior.draws, posterior.sample_stats, folder)


def test_a_worker_that_is_killed_is_replaced_and_a_callback_stops_all(script):
    """The run of the parent that was killed goes on, without a bit that is different."""
    folder, _ = script
    events, before = [], tfbnn.load(folder / "run").posterior.num_results

    def callback(event):
        if not events:
            os.kill(workers_of(os.getpid())[0], signal.SIGKILL)  # that of chains 0 and 2
        events.append(event)
        return event["num_kept"] >= before + 200

    model = small_model()
    with pytest.warns(tfbnn.WorkerWarning, match="chains 0, 2 .*SIGKILL.*goes on from the last"):
        run = model.fit_posterior(
            X,
            Y,
            **LONG,
            output=folder / "run",
            resume=True,
            commit_interval=0,
            callbacks=[callback],
        )
    assert not workers_of(os.getpid())
    (note,) = run.notes
    assert note in " ".join(run.report().split()) and "0, 2 crashed (ended by SIGKILL)" in note
    assert {event["num_chains"] for event in events} == {3}
    assert before + 200 <= run.num_results < 1500
    assert events[-1]["num_transitions"] == 20 * LONG["num_results"]
    assert_begins_with(model.posterior.draws, model.posterior.sample_stats, folder)


def test_what_a_worker_refuses_comes_back_with_its_type(script):
    inbox = queue.SimpleQueue()
    with RunFolder.open(script[0] / "run").writer(1):
        order = {"path": str(script[0] / "run"), "indices": [0, 1], "commit_interval": 30}
        worker = WorkerProcess(order, inbox)
        worker.start()
        worker.join()
    assert [inbox.get()[1] for _ in range(2)] == ["refused", "gone"]
    assert isinstance(worker.refusal, RunLockedError)
    assert f"process {os.getpid()}" in str(worker.refusal)
    assert "open_lanes" in worker.refusal.__notes__[0]


# What a worker does instead of its work; it is told it on standard input.
SAYS = "import sys, json; say = lambda *message: print(json.dumps(message), flush=True); "


@pytest.fixture
def workers(tmp_path, monkeypatch):
    """A function (what workers do, notify) -> what `run_in_workers` returns, for three lanes."""
    folder = RunFolder.create(tmp_path / "run", {}, {}, 3)

    def run(does, notify=lambda event: False, length=20):
        legs = [Leg("warmup", 10), Leg("sampling", length)]
        plan = Plan([[0], [1], [2]], 1, legs, num_results=length, stride=1)
        monkeypatch.setattr(process, "_PROGRAM", ("-c", SAYS + does))
        return run_in_workers(plan, FolderStore(folder, 30.0), 2, notify)

    return run


@pytest.mark.parametrize(
    "does, ending",
    [
        ("import os; os.abort()", "ended by SIGABRT"),
        ("print('[half a mess', end=''); sys.exit('out of luck')", "exit code 1"),
    ],
)
def test_chains_whose_workers_always_crash_are_given_up(workers, does, ending):
    with pytest.warns(tfbnn.WorkerWarning) as warned:
        ended = workers(does)
    assert set(ended.failures) == {(0,), (1,), (2,)} and not ended.interrupted
    assert all(isinstance(error, tfbnn.WorkerError) for error in ended.failures.values())
    assert f"4 worker processes crashed ({ending})" in str(ended.failures[2,])
    assert ("out of luck" in str(ended.failures[2,])) == ("luck" in does)
    texts = [str(warning.message) for warning in warned]
    # Two of chains 0 and 2, then two of each of them; four of chain 1.
    assert len(texts) == 10 and sum("given up" in text for text in texts) == 3
    notes = " ".join(ended.notes)
    assert f"chains 0, 2 crashed 2 times ({ending})" in notes
    assert f"chain 1 crashed 4 times ({ending})" in notes


def test_other_chains_go_on_when_one_fails(workers):
    """Its error comes with the type it had, and it is not tried again. What is no message is
    passed over.
    """
    does = """
print("welcome"); print('["a", 1, 2]'); print(17)
sys.stdout.buffer.write(b"\\xff\\n")
[_, order] = json.loads(input())
say("warning", ["RunFolderWarning", "an old commit"])
say("ended", [[[lane], ["OSError", [28, "full"], "where it was"]] for lane in order["indices"]])
"""
    with pytest.warns(tfbnn.RunFolderWarning, match="an old commit"):
        ended = workers(does)
    assert set(ended.failures) == {(0,), (1,), (2,)} and not ended.notes
    assert all(error.errno == 28 for error in ended.failures.values())


def test_lanes_that_cannot_go_on_after_a_crash_do_not_end_the_others(workers):
    does = """
[_, order] = json.loads(input())
if order["indices"] == [1]:
    say("ended", [[[1], ["ValueError", ["of its own"], ""]]])
    sys.exit()
try:
    open(order["path"] + "/../crashed", "x")
except FileExistsError:
    say("refused", ["OSError", [12, "no memory"], ""])
"""
    with pytest.warns(tfbnn.WorkerWarning, match="chains 0, 2 .*goes on from the last commit"):
        failures = workers(does).failures
    assert set(failures) == {(0,), (1,), (2,)} and "of its own" in str(failures[1,])
    assert failures[0,].errno == failures[2,].errno == 12


def test_what_cannot_be_begun_ends_the_run(workers, monkeypatch):
    with pytest.raises(RunLockedError, match="by another"):
        workers("""say("refused", ["RunLockedError", ["by another"], ""])""")
    monkeypatch.setattr(process.subprocess, "Popen", raise_no_memory)
    with pytest.raises(OSError, match="no memory"):
        workers("")


def raise_no_memory(*arguments, **options):
    raise OSError(12, "no memory")


def test_a_chain_that_advances_between_crashes_is_not_given_up(workers, monkeypatch):
    """It commits three times before a crash each, six times, and then no more."""
    commits = iter([*range(0, 60, 3), *[60] * 40])
    monkeypatch.setattr(
        RunFolder,
        "checkpoint",
        lambda self, lane: SimpleNamespace(
            counters=Counters.nothing([lane]).to_json()
            | {"transition": next(commits) if lane == 0 else 30}
        ),
    )
    with pytest.warns(tfbnn.WorkerWarning) as warned:
        ended = workers("sys.exit(3)", length=100)
    assert len(warned) > 8 and "without a commit between" in str(ended.failures[0,])


@pytest.mark.parametrize("where", ["callback", "user"])
def test_stops_reach_all_workers(workers, where):
    """One that has advanced is told to, another one is ended."""
    does = """
[_, order] = json.loads(input())
if 0 in order["indices"]:
    say("event", {"phase": "warmup", "seconds": 2.0, "lanes": []})
    assert json.loads(input())[0] == "stop"
    say("ended", [[[0], ["ValueError", ["told to stop"], ""]]])
else:
    input()
"""
    events = []

    def notify(event):
        events.append(event)
        if where == "user":
            raise KeyboardInterrupt
        return True

    ended = workers(does, notify)
    assert ended.interrupted == (where == "user")
    assert [(event.phase, event.seconds) for event in events] == [("warmup", 2.0)]
    assert str(ended.failures[0,]) == "told to stop" and len(ended.failures) == 1


def test_a_worker_that_was_killed_by_a_stop_has_not_crashed():
    """What it said before may come in afterwards."""
    worker = WorkerProcess({"indices": [0]}, None)
    worker._process = SimpleNamespace(kill=lambda: None)
    worker.stop()
    worker._has_advanced = True
    assert not worker.has_crashed


@pytest.mark.parametrize(
    "error, expected, text",
    [
        (StartError("not finite"), StartError, "not finite"),
        (OSError(28, "No space"), OSError, "[Errno 28] No space"),
        (ValueError(np.float32(1)), ValueError, "1.0"),
        (UnicodeDecodeError("utf8", b"", 0, 1, "why"), RuntimeError, "UnicodeDecodeError: .*why"),
        (tf.errors.ResourceExhaustedError(None, None, "much"), RuntimeError, "Exhausted.*much"),
        (SystemExit(3), RuntimeError, "SystemExit: 3"),
    ],
)
def test_errors_keep_their_types_where_they_can(error, expected, text):
    sent = json.dumps(error_to_json(error))
    received = error_from_json(json.loads(sent))
    assert type(received) is expected and re.search(text.replace("[E", r"\[E"), str(received))
    assert "In a worker process" in received.__notes__[0]


@pytest.fixture
def count(monkeypatch):
    """Function (num_workers, lanes=4, begun=None, num_results=10**6, ...) -> processes, on two cores."""
    monkeypatch.setattr("tfbnn.engine.running.driver.num_cores", lambda: 2)
    spec = tfbnn.BayesianMLP([5, 20, 20, 1], prior=tfbnn.priors.Normal(1.0)).spec

    def count(
        num_workers,
        lanes=4,
        begun=None,
        num_results=10**6,
        kernel=None,
        in_pieces=False,
        limit=None,
    ):
        legs = [Leg("warmup", 10), Leg("sampling", num_results)]
        plan = Plan([[lane] for lane in range(lanes)], 1, legs, num_results, 1)
        found = None if begun is None else SimpleNamespace(in_workers=begun)
        session = SimpleNamespace(num_workers=num_workers, found=found)
        sampling = Sampling(until=None if limit is None else tfbnn.Until(max_seconds=limit))
        definition = SimpleNamespace(spec=spec, num_rows=1000, sampling=sampling)
        program = SimpleNamespace(settings=kernel or HMC(), plan=plan, keeps_all_cores=in_pieces)
        return count_workers(session, definition, program)

    return count


def test_only_long_runs_use_processes_unless_told_to(count):
    assert count("auto") == 2 and count("auto", lanes=1) == 0
    assert count("auto", num_results=1000) == 0 and count("auto", limit=60) == 0
    assert count("auto", num_results=1000, begun=True) == 2 and count("auto", begun=False) == 0
    assert count("auto", begun=True, lanes=1) == 1
    assert count(3) == 3 and count(9) == 4 and count(1) == 0
    with pytest.warns(UserWarning, match="one program.*stay in this process"):
        assert count(2, lanes=1) == 0
    for asked, begun, used in ((1, True, 0), (2, False, 2)):
        with pytest.warns(UserWarning, match="last bits.*num_workers='auto'"):
            assert count(asked, begun=begun) == used
    assert count(2, begun=True) == 2


def test_one_process_has_the_chains_whose_rows_are_in_pieces(count):
    assert count("auto", in_pieces=True) == 1 and count(2, in_pieces=True) == 2
    assert count("auto", num_results=1000, in_pieces=True) == 0


def test_classes_that_nobody_can_import_stay_in_this_process(count, monkeypatch):
    monkeypatch.setattr(ModelSpec, "import_obstacle", "it is in a script")
    assert count("auto") == 0
    with pytest.warns(UserWarning, match="goes on in one process"):
        assert count("auto", begun=True) == 0


def test_kernels_given_as_callables_stay_in_this_process(count):
    kernel = CallableKernel(lambda target: tfp.mcmc.RandomWalkMetropolis(target))
    assert count("auto", kernel=kernel) == 0
    model = small_model()
    check_workers("auto", model.spec, kernel)
    check_workers(1, model.spec, kernel)
    check_workers(2, model.spec, HMC())
    with pytest.raises(ValueError, match="callable.*num_workers=2.*num_workers='auto'"):
        model.fit_posterior(X, Y, kernel=kernel.function, num_workers=2)


@pytest.mark.parametrize(
    "asked, error", [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("many", ValueError)]
)
def test_other_numbers_of_workers_are_refused(asked, error):
    with pytest.raises(error, match="num_workers"):
        small_model().fit_posterior(X, Y, num_workers=asked)
