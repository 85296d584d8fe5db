"""What both crews have in common, by one that does as it is told."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from tfbnn.engine.running.crew import Crew
from tfbnn.run.counters import Counters, Seconds
from tfbnn.run.events import Look
from tfbnn.run.plan import Leg, Plan

PLAN = Plan([[0], [1], [2, 3]], 1, [Leg("sampling", 10)], num_results=10, stride=1)


def counted(count):
    zeros = np.zeros(1)
    return replace(
        Counters.nothing([0]).after_block("sampling", count, zeros, zeros), num_refused=zeros
    )


class Told(Crew):
    """Attempts end as the script of their lane says, the next one each time."""

    def __init__(self, plan=PLAN, **scripts):
        super().__init__(plan)
        self._scripts = {int(name[1:]): iter(script) for name, script in scripts.items()}
        self.counters = {lane: self.counters[lane] for lane in self._scripts}
        self.running, self.turns, self.stops = [], [], 0

    @property
    def seconds(self):
        return Seconds()

    def has_room(self):
        return not self.running

    def start(self, lane):
        self.turns.append(lane)
        self.running.append(lane)

    def reports(self):
        lane = self.running.pop()
        next(self._scripts[lane])(self, lane)
        yield from ()

    def stop(self):
        self.stops += 1
        return False


def finished(crew, lane):
    crew.counters[lane] = counted(10)


def goes_on(crew, lane):
    crew.go_on([lane])


def failed(crew, lane):
    crew.failures[lane] = ValueError("its own")


def interrupted(crew, lane):
    raise KeyboardInterrupt


def run(**scripts):
    crew = Told(**scripts)
    return crew, crew.run(None, None, notify=lambda event: False)


def test_a_lane_goes_on_behind_those_that_wait():
    crew, ending = run(_0=[goes_on, finished], _1=[finished])
    assert crew.turns == [0, 1, 0]
    assert not ending.failures and not ending.interrupted and crew.stops == 1


def test_an_error_of_a_lane_ends_that_lane_alone():
    crew, ending = run(_2=[failed], _1=[finished])
    assert list(ending.failures) == [(2, 3)] and crew.turns == [2, 1]


def test_an_interrupt_stops_what_is_running():
    crew, ending = run(_0=[interrupted])
    assert ending.interrupted and crew.stops == 1


class Telling(Told):
    """Says how far it is before every end of an attempt."""

    def reports(self):
        yield from self.event("sampling", 1.0)
        yield from super().reports()


def reaches(count):
    def end(crew, lane):
        crew.counters[lane] = counted(count)

    return end


def two_looks(notify):
    """A run that is looked at after 100 and after 200 draws, its last."""
    plan = Plan([[0]], 1, [Leg("sampling", 200)], num_results=200, stride=1)
    crew, looks = (
        Telling(plan, _0=[reaches(100), reaches(200)]),
        [(FIRST, None), (SECOND, "enough")],
    )
    rule = SimpleNamespace(judge=lambda kept: looks.pop(0))
    return crew, crew.run(SimpleNamespace(read=list), rule, notify)


FIRST, SECOND = Look(100, 1.2, 80.0), Look(200, 1.01, 160.0)


def test_what_a_look_has_found_is_told_at_once_and_from_then_on():
    told = []
    _, ending = two_looks(lambda event: told.append(event))
    assert [event.num_judged for event in told] == [0, 100, 100, 200]
    assert [event.ess for event in told[1:]] == [80.0, 80.0, 160.0]
    assert [event.rhat for event in told[1:]] == [1.2, 1.2, 1.01] and told[0].rhat != 1.2
    assert ending.ended == "enough"


def test_a_run_can_be_stopped_at_a_look():
    crew, ending = two_looks(lambda event: event.num_judged == 100)
    assert crew.turns == [0] and crew.stops == 1 and not ending.interrupted
    assert ending.ended is None
