"""What is the same for all crews, by one that does as it is told."""

import pytest

from tfbnn.run.crew import Crew, Ended
from tfbnn.run.events import Look
from tfbnn.run.plan import Leg, Plan

PLAN = Plan([[0], [1], [2, 3]], 1, [Leg("sampling", 10)], num_results=10, stride=1)


class Told(Crew):
    """Attempts end as the script of their first lane says, the next one each time."""

    most_in_vain = 2

    def __init__(self, **scripts):
        super().__init__(PLAN)
        self._scripts = {int(name[1:]): iter(script) for name, script in scripts.items()}
        self.running, self.turns, self.stops = [], [], 0

    def has_room(self):
        return not self.running

    def start(self, lanes):
        self.turns.append(list(lanes))
        self.running.append(list(lanes))

    def reports(self):
        lanes = self.running.pop()
        yield next(self._scripts[lanes[0]])(self, lanes)

    def stop(self):
        self.stops += 1
        return False

    def give_up(self, ended, in_vain):
        return RuntimeError(f"lost {in_vain + 1} times: {ended.lost}")

    def lost(self, ended, again):
        return 0.0


def finished(crew, lanes):
    return Ended(lanes, [])


def goes_on(crew, lanes):
    return Ended(lanes, lanes)


def crashed(crew, lanes):
    return Ended(lanes, lanes, lost="a crash")


def refused(crew, lanes):
    return Ended(lanes, lanes, OSError("no room"))


def failed(crew, lanes):
    crew.failures[lanes[0]] = ValueError("its own")
    return Ended(lanes, lanes)


def interrupted(crew, lanes):
    raise KeyboardInterrupt


def run(turns, **scripts):
    crew = Told(**scripts)
    return crew, crew.run(turns, notify=lambda event: False)


def test_lanes_that_are_lost_together_go_on_together_once_and_then_alone():
    script = [crashed, crashed, finished]
    crew, ending = run([[0, 1]], _0=script, _1=[finished])
    assert crew.turns == [[0, 1], [0, 1], [0], [1]]
    assert not ending.failures and not ending.interrupted and crew.stops == 1


def test_a_lane_that_gets_no_further_is_given_up():
    crew, ending = run([[2], [1]], _2=[crashed] * 3, _1=[goes_on, finished])
    assert str(ending.failures[2, 3]) == "lost 3 times: a crash" and len(ending.failures) == 1
    assert crew.turns.count([2]) == 3 and crew.turns.count([1]) == 2


def test_an_error_of_a_lane_ends_that_lane_alone():
    crew, ending = run([[0], [1]], _0=[failed], _1=[finished])
    assert list(ending.failures) == [(0,)] and crew.turns == [[0], [1]]


def test_what_cannot_begin_ends_the_run_and_what_cannot_go_on_only_itself():
    with pytest.raises(OSError, match="no room"):
        run([[0], [1]], _0=[refused], _1=[finished])
    _, ending = run([[0], [1]], _0=[crashed, refused], _1=[finished])
    assert list(ending.failures) == [(0,)] and isinstance(ending.failures[0,], OSError)


def test_an_interrupt_stops_what_is_running():
    crew, ending = run([[0]], _0=[interrupted])
    assert ending.interrupted and crew.stops == 1


class Telling(Told):
    """Says how far it is before every end of an attempt."""

    def reports(self):
        yield from self.event("sampling", 1.0)
        yield from super().reports()

    def deal(self):
        return [[0]]


class Looks:
    """A course with a look after each of its steps."""

    ended = None

    def __init__(self, *looks):
        self.look, self._looks, self._has_begun = None, list(looks), False

    def next(self, crew):
        if self._has_begun:
            self.look = self._looks.pop(0)
        self._has_begun = True
        return 10 if self._looks else None


FIRST, SECOND = Look(5, 1.2, 80.0), Look(10, 1.01, 160.0)


def test_what_a_look_has_found_is_told_at_once_and_from_then_on():
    told = []
    Telling(l0=[finished] * 2).follow(Looks(FIRST, SECOND), lambda event: told.append(event))
    assert [event.num_judged for event in told] == [0, 5, 5, 10]
    assert [event.ess for event in told[1:]] == [80.0, 80.0, 160.0]
    assert [event.rhat for event in told[1:]] == [1.2, 1.2, 1.01] and told[0].rhat != 1.2


def test_a_run_can_be_stopped_at_a_look():
    crew = Telling(l0=[finished] * 2)
    ending = crew.follow(Looks(FIRST, SECOND), lambda event: event.num_judged == 5)
    assert crew.turns == [[0]] and crew.stops == 1 and not ending.interrupted
