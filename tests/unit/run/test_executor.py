"""Check what both crews have in common, by one that does as it is told."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from tfbnn.engine.running.executor import Executor
from tfbnn.run.counters import Counters, Seconds
from tfbnn.run.events import Look
from tfbnn.run.plan import Plan, Stage

PLAN = Plan([[0], [1], [2, 3]], 1, [Stage("sampling", 10)], num_results=10, stride=1)


def counted(count):
    zeros = np.zeros(1)
    block = Counters.nothing([0]).after_block("sampling", count, zeros, zeros)
    return replace(block, num_refused=zeros)


class Told(Executor):
    """Attempts end as the script of their group says, the next one each time."""

    def __init__(self, plan=PLAN, **scripts):
        super().__init__(plan)
        self._scripts = {int(name[1:]): iter(script) for name, script in scripts.items()}
        self.counters = {group: self.counters[group] for group in self._scripts}
        self.running, self.turns, self.stops = [], [], 0

    @property
    def seconds(self):
        return Seconds()

    def has_room(self):
        return not self.running

    def start(self, group):
        self.turns.append(group)
        self.running.append(group)

    def reports(self):
        group = self.running.pop()
        next(self._scripts[group])(self, group)
        yield from ()

    def stop(self):
        self.stops += 1
        return False


def finished(executor, group):
    executor.counters[group] = counted(10)


def goes_on(executor, group):
    executor.go_on([group])


def failed(executor, group):
    executor.failures[group] = ValueError("its own")


def interrupted(executor, group):
    raise KeyboardInterrupt


def run(**scripts):
    executor = Told(**scripts)
    return executor, executor.run(None, None, notify=lambda event: False)


def test_a_group_goes_on_behind_those_that_wait():
    executor, ending = run(_0=[goes_on, finished], _1=[finished])
    assert executor.turns == [0, 1, 0]
    assert not ending.failures and not ending.interrupted and executor.stops == 1


def test_an_error_of_a_group_ends_that_group_alone():
    executor, ending = run(_2=[failed], _1=[finished])
    assert list(ending.failures) == [(2, 3)] and executor.turns == [2, 1]


def test_an_interrupt_stops_what_is_running():
    executor, ending = run(_0=[interrupted])
    assert ending.interrupted and executor.stops == 1


class Telling(Told):
    """Says how far it is before every end of an attempt."""

    def reports(self):
        yield from self.event("sampling", 1.0)
        yield from super().reports()


def reaches(count):
    def end(executor, group):
        executor.counters[group] = counted(count)

    return end


def two_looks(notify):
    """A run that is looked at after 100 and after 200 draws, its last."""
    plan = Plan([[0]], 1, [Stage("sampling", 200)], num_results=200, stride=1)
    executor = Telling(plan, _0=[reaches(100), reaches(200)])
    looks = [(FIRST, None), (SECOND, "enough")]
    rule = SimpleNamespace(check=lambda kept: looks.pop(0))
    return executor, executor.run(SimpleNamespace(read=list), rule, notify)


FIRST, SECOND = Look(100, 1.2, 80.0), Look(200, 1.01, 160.0)


def test_what_a_look_has_found_is_told_at_once_and_from_then_on():
    told = []
    _, ending = two_looks(lambda event: told.append(event))
    assert [event.num_judged for event in told] == [0, 100, 100, 200]
    assert [event.ess for event in told[1:]] == [80.0, 80.0, 160.0]
    assert [event.rhat for event in told[1:]] == [1.2, 1.2, 1.01] and told[0].rhat != 1.2
    assert ending.ended == "enough"


def test_a_run_can_be_stopped_at_a_look():
    executor, ending = two_looks(lambda event: event.num_judged == 100)
    assert executor.turns == [0] and executor.stops == 1 and not ending.interrupted
    assert ending.ended is None
