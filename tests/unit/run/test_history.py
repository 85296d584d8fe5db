"""The history of a run is kept in columns, never longer than there is room for."""

import math

import pytest

from tests.support.events import pretraining, sampling
from tfbnn.run import events
from tfbnn.run.events import Look
from tfbnn.run.progress import Notifier


def test_every_phase_has_columns_of_its_own():
    record = Notifier()
    searches = pretraining(50, -1.5), pretraining(100, -1.25)
    for event in (*searches, sampling("warmup", 10), sampling("sampling", 40)):
        record(event)
    found = record.history
    assert list(found) == ["pretraining", "warmup", "sampling"]
    assert found["pretraining"] == {
        "transition": [50, 100],
        "seconds": [2.0, 2.0],
        "epoch": [1, 2],
        "validation_log_likelihood": [-1.5, -1.25],
    }
    assert found["sampling"]["num_kept"] == [40] and "epoch" not in found["sampling"]
    assert found["warmup"]["acceptance_rate"] == [pytest.approx(0.9)]


def test_a_look_stands_there_once():
    record, look = Notifier(), Look(40, 1.02, 150.0)
    record(sampling("sampling", 40))
    record(sampling("sampling", 40).after(look))
    record(sampling("sampling", 60).after(look))
    record(sampling("sampling", 80).after(Look(80, 1.01, 320.0)))
    found = record.history
    assert found["looks"] == {"num_results": [40, 80], "rhat": [1.02, 1.01], "ess": [150.0, 320.0]}
    assert found["sampling"]["transition"] == [40, 60, 80]


def test_a_run_that_does_not_move_on_adds_no_rows():
    record = Notifier()
    for _ in range(5):
        record(sampling("warmup", 7))
    assert record.history["warmup"]["transition"] == [7]


def test_long_runs_keep_every_second_row_and_the_last(monkeypatch):
    monkeypatch.setattr(events, "_MOST_ROWS", 10)
    record = Notifier()
    for step in range(1, 100):
        record(pretraining(step, math.nan))
        steps = record.history["pretraining"]["transition"]
        assert steps[0] == 1 and steps[-1] == step and len(steps) <= 12
    gaps = {after - before for before, after in zip(steps[:-2], steps[1:-1])}
    assert len(gaps) == 1 and len(steps) > 5
