"""Disks that are full for a while, and signals that come at a bad moment: no draw is lost."""

import errno
import pkgutil
import signal

import pytest

import tfbnn
from tests.support import small_runs
from tests.support.small_runs import X, Y, assert_same_draws, brief_fit, small_model
from tfbnn.exceptions import ChainError, RunFolderWarning
from tfbnn.fit.assemble import make_ensemble
from tfbnn.storage.run.group_files import GroupWriter

pytestmark = pytest.mark.filterwarnings(
    "ignore::tfbnn.ConvergenceWarning", "ignore:The run (was stopped|ended before)"
)

RUN = small_runs.BRIEF


def stop_by_signal(event):
    """A callback that interrupts the run once it has some draws."""
    if event["phase"] == "sampling" and event["num_kept"] >= 8:
        signal.raise_signal(signal.SIGINT)


short_blocks = small_runs.blocks_of(8)  # several to stop between


def test_commits_that_fail_are_repeated_and_lose_nothing(tmp_path, monkeypatch):
    (whole, _), commit, failed = brief_fit(), GroupWriter.commit, []

    def fail(writer, *arguments):
        if writer.waiting_bytes and failed.count(writer) < 2:
            failed.append(writer)
            raise OSError(errno.ENOSPC, "No space left on device")
        commit(writer, *arguments)

    monkeypatch.setattr(GroupWriter, "commit", fail)
    with pytest.warns(RunFolderWarning, match="No space left.* tries again"):
        model, _ = brief_fit(output=tmp_path / "run", commit_interval=0)
    assert_same_draws(model, whole)
    assert_same_draws(tfbnn.load(tmp_path / "run"), whole)


def test_a_disk_that_stays_full_ends_the_chains(tmp_path, monkeypatch):
    commit = GroupWriter.commit

    def fail(writer, *arguments):
        if writer.waiting_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        commit(writer, *arguments)

    monkeypatch.setattr(GroupWriter, "commit", fail)
    monkeypatch.setattr("tfbnn.run.stores._MOST_UNWRITTEN_BYTES", 100)
    with pytest.raises(ChainError, match="OSError: .*No space left"):
        brief_fit(output=tmp_path / "run", commit_interval=0)


@pytest.mark.parametrize(
    "where", ["tfbnn.engine.running.driver.gather_result", "tfbnn.fit.fitting.make_ensemble"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1], ids=str)
def test_a_second_interrupt_loses_no_draws_in_memory(where, number, monkeypatch):
    make = pkgutil.resolve_name(where)

    def interrupted(*arguments):
        signal.raise_signal(number)
        return make(*arguments)

    monkeypatch.setattr(where, interrupted)
    model = small_model()
    with pytest.raises(KeyboardInterrupt):
        model.fit_posterior(X, Y, callbacks=[stop_by_signal], **RUN)
    assert model._ensemble.num_results >= 8


def test_a_first_interrupt_is_heeded_when_the_draws_are_kept(monkeypatch):
    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return make_ensemble(*arguments)

    monkeypatch.setattr("tfbnn.fit.fitting.make_ensemble", interrupted)
    model = small_model()
    with pytest.raises(KeyboardInterrupt):
        model.fit_posterior(X, Y, **RUN)
    assert model._ensemble.num_results == 40 and model._ensemble.diagnostics is None


def test_draws_that_memory_cannot_hold_end_a_run_before_warm_up():
    phases = set()
    with pytest.raises(MemoryError):
        brief_fit(num_results=10**13, callbacks=[lambda event: phases.add(event["phase"])])
    assert phases == {"pretraining"}
