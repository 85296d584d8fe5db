"""Loggers of all kinds get the numbers of a run."""

from types import SimpleNamespace

import pytest

import tfbnn
from tests.support.events import pretraining, sampling
from tfbnn.run.events import Look

EVENTS = [
    pretraining(50, -1.5),
    sampling("sampling", 40).after(Look(40, 1.2, 80.0)),
    sampling("sampling", 60).after(Look(40, 1.2, 80.0)),
]


def logged(make, **settings):
    """What a logger was called with: list of (step, dict of numbers)."""
    calls = []
    log = tfbnn.LogMetrics(make(calls), **settings)
    for event in EVENTS:
        assert not log(event.to_dict())
    return calls


def all_at_once(calls):
    return lambda numbers, step: calls.append((step, numbers))


def one_by_one(calls):
    def log_metric(name, value, step):
        if not calls or calls[-1][0] != step:
            calls.append((step, {}))
        calls[-1][1][name] = value

    return log_metric


LOGGERS = {
    "log_metrics": lambda calls: SimpleNamespace(log_metrics=all_at_once(calls), log=None),
    "log_metric": lambda calls: SimpleNamespace(log_metric=one_by_one(calls)),
    "log": lambda calls: SimpleNamespace(log=all_at_once(calls)),
    "function": all_at_once,
}


@pytest.mark.parametrize("make", LOGGERS.values(), ids=LOGGERS)
def test_any_logger_gets_the_numbers_with_a_step(make):
    calls = logged(make, seconds=0)
    assert [step for step, _ in calls] == [0, 1, 2]
    assert calls[0][1] == {"val_loss": 1.5}
    assert calls[1][1]["rhat"] == 1.2 and calls[1][1]["num_kept"] == 40
    assert "rhat" not in calls[2][1]


def test_time_passes_between_calls_unless_there_was_a_look():
    calls = logged(all_at_once, seconds=60)
    assert [step for step, _ in calls] == [0, 1] and calls[1][1]["ess"] == 80.0


def test_what_is_no_logger_is_refused():
    with pytest.raises(TypeError, match="log_metrics, log_metric or log"):
        tfbnn.LogMetrics(3)
    with pytest.raises(ValueError, match="seconds"):
        tfbnn.LogMetrics(print, seconds=-1)
