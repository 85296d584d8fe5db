"""Chain groups that take turns on threads: how long blocks are, who hears of it, and stops."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tfbnn.engine.running import thread_executor as module
from tfbnn.engine.running.thread_executor import Threads
from tfbnn.engine.sampling import work
from tfbnn.engine.sampling.work import Work
from tfbnn.run.counters import Clock, Counters
from tfbnn.run.plan import Plan, Stage
from tfbnn.system import threads as of_system
from tfbnn.system.threads import is_anything_left

GRADIENTS = 7  # of a transition
PLAN = Plan([[0], [1]], 64, [Stage("sampling", 300)], num_results=300, stride=1)


class FakeGroup:
    """Advances as fast as it is told; takes down what it is asked for and what it commits."""

    def __init__(self, number, seconds=0.0, stuck=None):
        self.program, self.sink = SimpleNamespace(plan=PLAN), self
        self.counters = Counters.nothing(PLAN.groups[number])
        self.seconds, self.stuck = seconds, stuck
        self.asked, self.left, self.committed = [], False, None

    @property
    def chains(self):
        return self.counters.chains

    def aim(self, num_results):
        assert num_results == PLAN.num_results

    def is_in(self, phase):
        return phase == "sampling" and self.counters.transition < PLAN.num_results

    def advance(self, at_most):
        if self.stuck is not None:
            self.stuck.wait(60)
        self.asked.append(at_most)
        affordable = max(1, -(-at_most.gradients // GRADIENTS))
        count = min(
            at_most.transitions, affordable, 64, PLAN.num_results - self.counters.transition
        )
        time.sleep(self.seconds * count)
        zeros = np.zeros(1)
        counters = self.counters.after_block("sampling", count, zeros, zeros)
        self.counters = replace(counters, num_refused=zeros)
        return Work(count, GRADIENTS * count)

    def leave(self):
        self.left = True

    def commit(self, group):
        assert self.left
        self.committed = group.counters.transition


def run_groups(notify, *groups):
    return Threads(groups, Clock()).run(None, None, notify)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(of_system, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(work, "BLOCK_SECONDS", 0.02)
    monkeypatch.setattr(module, "compile_block", lambda group: None)


@pytest.fixture
def stuck():
    released = threading.Event()
    yield released
    released.set()
    while is_anything_left():
        time.sleep(0.001)


def test_blocks_follow_the_measured_time():
    fast, slow = FakeGroup(0), FakeGroup(1, seconds=0.004)
    assert not run_groups(lambda event: False, fast, slow).failures
    assert fast.asked[0] == slow.asked[0] == Work(1, 1)
    # A sleep is no shorter than it is told, so that a slow block may do no more than this.
    assert max(asked.transitions for asked in slow.asked) <= 5
    assert max(asked.gradients for asked in slow.asked) <= 5 * GRADIENTS
    assert max(asked.transitions for asked in fast.asked) > 64
    assert max(asked.gradients for asked in fast.asked) > 64 * GRADIENTS
    assert fast.committed == slow.committed == 300


def test_a_run_whose_transitions_are_slow_reports_and_stops_between_any_two():
    events, group = [], FakeGroup(0, seconds=0.03)
    run_groups(lambda event: events.append(event) or event.transition >= 2, group)
    assert {event.transition for event in events} >= {1, 2}
    assert {asked.transitions for asked in group.asked} == {1} and group.committed <= 3


def test_a_stop_leaves_a_block_that_does_not_end(stuck):
    """The state of the group before that block is committed, and the other group loses nothing."""
    healthy, hanging = FakeGroup(0), FakeGroup(1, stuck=stuck)
    ending = run_groups(lambda event: event.transition >= 100, healthy, hanging)
    assert not ending.interrupted and not ending.failures
    assert hanging.committed == 0 and healthy.committed == healthy.counters.transition > 0
    assert is_anything_left()


def test_who_may_stop_a_run_is_asked_during_a_block(stuck):
    events = []
    hanging = FakeGroup(0, stuck=stuck)
    run_groups(lambda event: events.append(event) or len(events) == 3, hanging)
    assert [event.transition for event in events] == [0, 0, 0]


def test_an_interrupt_leaves_it_too(stuck):
    def interrupt(event):
        raise KeyboardInterrupt

    ending = run_groups(interrupt, FakeGroup(0, stuck=stuck))
    assert ending.interrupted
