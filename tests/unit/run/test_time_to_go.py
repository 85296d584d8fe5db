"""The time to go: unknown at first, counted down, never in leaps."""

import math

import pytest

from tfbnn.run.events import Event
from tfbnn.run.time_to_go import TimeToGo
from tfbnn.run.wording import about


def event(total, seconds=60.0, transition=10, num_transitions=1000):
    return Event(
        phase="warmup",
        transition=transition,
        num_transitions=num_transitions,
        num_chains=1,
        seconds=seconds,
        eta_seconds=1.0,
        total_eta_seconds=total,
    )


def test_nothing_is_known_before_the_chains_have_moved_for_some_time():
    time = TimeToGo()
    time.update(event(math.nan), 0.0)
    time.update(event(530.0, seconds=3.0), 1.0)
    assert math.isnan(time.at(2.0))
    time.update(event(530.0, seconds=5.0), 3.0)
    assert time.at(3.0) == 530.0
    # A tenth of a phase is enough, however short.
    time = TimeToGo()
    time.update(event(4.0, seconds=0.5, transition=100), 0.0)
    assert time.at(0.0) == 4.0


def test_it_counts_down_and_not_below_zero():
    time = TimeToGo()
    time.update(event(30.0), 100.0)
    assert (time.at(112.0), time.at(200.0)) == (18.0, 0.0)


@pytest.mark.parametrize("first, then", [(530.0, 48.0), (48.0, 530.0)])
def test_it_glides_to_what_is_said_now(first, then):
    time, shown = TimeToGo(), [first]
    time.update(event(first), 0.0)
    for second in range(1, 41):
        time.update(event(then - second), float(second))
        shown.append(time.at(float(second)))
    assert all(0.8 < (after + 1.0) / before < 1.25 for before, after in zip(shown, shown[1:]))
    assert 0.4 < shown[-1] / (then - 40.0) < 2.5


def test_steady_news_are_shown_as_they_are():
    time = TimeToGo()
    for second in range(100):
        time.update(event(200.0 - second), float(second))
        assert time.at(float(second)) == pytest.approx(200.0 - second)


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0.2, "1 second"),
        (23.0, "20 seconds"),
        (180.0, "3 minutes"),
        (9000.0, "2.5 hours"),
        (5.4e5, "150 hours"),
    ],
)
def test_a_time_is_told_in_words(seconds, words):
    assert about(seconds) == words
