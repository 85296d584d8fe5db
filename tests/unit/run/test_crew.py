"""What both crews have in common, by one that does as it is told."""

from tfbnn.run.crew import Crew
from tfbnn.run.events import Look
from tfbnn.run.plan import Leg, Plan

PLAN = Plan([[0], [1], [2, 3]], 1, [Leg("sampling", 10)], num_results=10, stride=1)


class Told(Crew):
    """Attempts end as the script of their lane says, the next one each time."""

    def __init__(self, **scripts):
        super().__init__(PLAN)
        self._scripts = {int(name[1:]): iter(script) for name, script in scripts.items()}
        self.running, self.turns, self.stops = [], [], 0

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
    pass


def goes_on(crew, lane):
    crew.go_on([lane])


def failed(crew, lane):
    crew.failures[lane] = ValueError("its own")


def interrupted(crew, lane):
    raise KeyboardInterrupt


def run(lanes, **scripts):
    crew = Told(**scripts)
    return crew, crew.run(lanes, notify=lambda event: False)


def test_a_lane_goes_on_behind_those_that_wait():
    crew, ending = run([0, 1], _0=[goes_on, finished], _1=[finished])
    assert crew.turns == [0, 1, 0]
    assert not ending.failures and not ending.interrupted and crew.stops == 1


def test_an_error_of_a_lane_ends_that_lane_alone():
    crew, ending = run([2, 1], _2=[failed], _1=[finished])
    assert list(ending.failures) == [(2, 3)] and crew.turns == [2, 1]


def test_an_interrupt_stops_what_is_running():
    crew, ending = run([0], _0=[interrupted])
    assert ending.interrupted and crew.stops == 1


class Telling(Told):
    """Says how far it is before every end of an attempt."""

    def reports(self):
        yield from self.event("sampling", 1.0)
        yield from super().reports()

    def deal(self):
        return [0]


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
    assert crew.turns == [0] and crew.stops == 1 and not ending.interrupted
