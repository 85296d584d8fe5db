"""The search for starts, interrupted anywhere: it goes on, bit by bit, as does `tfbnn resume`."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import tfbnn
from tests.support.marks import statistics_but
from tests.support.small_runs import RUN, X, Y, assert_same_draws, small_fit, small_model
from tests.support.starts import SEARCHES
from tfbnn.engine.starts import adam
from tfbnn.exceptions import NotFittedError, RunFolderError
from tfbnn.fit.assemble import read_run
from tfbnn.run.preparation import preparation_in
from tfbnn.storage import RunFolder

pytestmark = pytest.mark.filterwarnings(
    "ignore::tfbnn.ConvergenceWarning", "ignore:The run was stopped"
)


def shorten(patch):
    """An epoch per call of ADAM; few iterations of a start by itself, fewer in its trial."""
    patch.setattr("tfbnn.engine.starts.pretraining.affordable_steps", lambda flops: 1)
    patch.setattr("tfbnn.engine.starts.newton_plan._MOST_ITERATIONS", 5)
    patch.setattr("tfbnn.engine.starts.turns._TRIAL", 2)


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    shorten(monkeypatch)


@pytest.fixture(scope="module")
def whole():
    """Dict name -> (model, run) that nothing interrupted, in memory."""
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        return {name: small_fit(**options) for name, options in SEARCHES.items()}


def stop_at(phase, count):
    """A callback that stops at this event of a phase."""
    seen = []

    def callback(event):
        seen.extend([event] if event["phase"] == phase else [])
        return len(seen) == count

    return callback


@pytest.mark.parametrize(
    "name, phase, count",
    statistics_but(
        [
            ("mini-batches", "pretraining", 3),
            ("held-out rows", "newton", 6),
            ("a trial", "newton", 8),
        ],
        [
            ("mini-batches", "pretraining", 3),
            ("mini-batches", "newton", 1),
            ("mini-batches", "newton", 6),
            ("early stopping", "pretraining", 4),
            ("early stopping", "newton", 3),
            ("held-out rows", "pretraining", 3),
            ("held-out rows", "newton", 1),
            ("held-out rows", "newton", 6),
            ("held-out rows", "newton", 11),
            ("a sample of rows", "pretraining", 3),
            ("a sample of rows", "newton", 8),
            ("a trial", "newton", 5),
            ("a trial", "newton", 8),
            ("a trial", "newton", 11),
        ],
    ),
)
def test_a_stopped_search_goes_on_bitwise(tmp_path, whole, name, phase, count):
    path, options = tmp_path / "run", SEARCHES[name]
    small_fit(output=path, callbacks=[stop_at(phase, count)], **options)
    assert RunFolder.find(path) is None and preparation_in(path) is not None
    phases = []
    model, run = tfbnn.resume(path, verbose=0, callbacks=[lambda e: phases.append(e["phase"])])
    assert_same_draws(model, whole[name][0])
    np.testing.assert_array_equal(run.start_log_prob, whole[name][1].start_log_prob)
    assert run.pretraining == whole[name][1].pretraining
    assert ("pretraining" in phases) == (phase == "pretraining")
    assert preparation_in(path) is None and not (path / "preparation").exists()


@pytest.mark.parametrize(
    "name, most", [("mini-batches", 4 + 3 * 2 + 1), ("held-out rows", 4 + 3 * (3 + 1))]
)
def test_a_search_that_is_stopped_at_every_step_comes_to_its_end(tmp_path, whole, name, most):
    """As on a worker whose lifetime is that of one call."""
    path, stops = tmp_path / "run", 0
    options = SEARCHES[name]
    while RunFolder.find(path) is None:
        model = small_model()
        small = RUN | options | dict(output=path, resume=True)
        model.fit_posterior(
            X, Y, **small, callbacks=[lambda event: event["phase"] in ("pretraining", "newton")]
        )
        stops += 1
        assert stops < 40
    assert stops == most
    assert_same_draws(model, whole[name][0])


def test_an_interrupt_commits_what_adam_has(tmp_path, whole, monkeypatch):
    calls, steps = [], adam.Batches._indices

    def interrupted(batches, epochs):
        calls.append(epochs)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return steps(batches, epochs)

    path, options = tmp_path / "run", SEARCHES["mini-batches"]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(adam.Batches, "_indices", interrupted)
        small_fit(output=path, **options)
    assert preparation_in(path).checkpoint(0).counters["epoch"] == 2
    with pytest.raises(RunFolderError, match="being prepared. Pass resume=True"):
        small_fit(output=path, **options)
    with pytest.raises(RunFolderError, match="numbers.seed is 2 there and 9 here"):
        small_fit(output=path, resume=True, **options | {"seed": 9})
    with pytest.raises(NotFittedError, match="has not begun to sample"):
        tfbnn.load(path)
    assert_same_draws(small_fit(output=path, resume=True, **options)[0], whole["mini-batches"][0])


KILLED = """
import os, signal, sys
from tests.support.starts import SEARCHES
from tests.support.small_runs import small_fit
import tfbnn.engine.starts.pretraining as module

module.affordable_steps = lambda flops: 1

def kill(event):
    if event["phase"] == "newton" and event["transition"] == 4:
        os.kill(os.getpid(), signal.SIGKILL)

small_fit(output=sys.argv[1], commit_interval=0, callbacks=[kill], **SEARCHES["mini-batches"])
"""


@pytest.mark.processes
def test_a_killed_search_goes_on_bitwise(tmp_path, whole):
    path = tmp_path / "run"
    killed = subprocess.run([sys.executable, "-c", KILLED, path], timeout=300, env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    stand = preparation_in(path).checkpoint(0).counters
    assert stand["stage"] == "newton" and stand["done"] == 1
    model, _ = small_fit(output=path, resume=True, **SEARCHES["mini-batches"])
    np.testing.assert_allclose(model.posterior.draws, whole["mini-batches"][0].posterior.draws)


def test_resume_has_the_workers_of_the_beginning(tmp_path):
    """With others the last bits of the draws might differ."""
    for number in (1, 2):
        path = tmp_path / f"run{number}"
        options = SEARCHES["mini-batches"] | {"num_workers": number}
        small_fit(output=path, callbacks=[stop_at("pretraining", 2)], **options)
        assert read_run(path)[1].num_workers == number
        assert read_run(path, num_workers=3)[1].num_workers == 3
