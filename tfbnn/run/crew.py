"""What lanes on threads and lanes as tasks on a cluster have in common."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING

from tfbnn.run.counters import Counters
from tfbnn.run.events import Event, Look, SamplingEvent
from tfbnn.run.plan import Plan
from tfbnn.run.result import Ending

if TYPE_CHECKING:
    from tfbnn.run.course import Course

Notify = Callable[[Event], bool]


class Crew(ABC):
    """Advances lanes of a run until they are at their ends, as far as nothing stops it.

    One that fails does not end the others.

    Attributes:
        plan: Plan of the run.
        aimed: The beginning of it that the lanes are to make now.
        counters: Dict lane -> what is known of it.
        failures: Dict lane -> the error that ended it for good.
        running: What is at work.
        pauses_at: `time.perf_counter` from which no lane starts.
    """

    running: Sized
    pauses_at = math.inf

    def __init__(self, plan: Plan) -> None:
        """
        Args:
            plan: Plan of the run.
        """
        self.plan, self.aimed, self.failures = plan, plan, dict[int, BaseException]()
        self.counters = {lane: Counters.nothing(chains) for lane, chains in enumerate(plan.groups)}
        self._waiting: deque[tuple[float, int]] = deque()
        self._look: Look | None = None
        self._last: SamplingEvent | None = None

    def follow(self, course: Course, notify: Notify) -> Ending:
        """Works until the course is over or `notify` returns true.

        Args:
            course: How far the lanes are to go, asked again whenever all of them are there.
            notify: Called with the events of the run.
        """
        return self._run(self.stages(course, notify), notify)

    def run(self, lanes: Iterable[int], notify: Notify) -> Ending:
        """Advances some lanes until all is done or `notify` returns true."""
        return self._run([lanes], notify)

    def stages(self, course: Course, notify: Notify) -> Iterator[Iterable[int]]:
        """Yields the lanes that are to advance, each time all of them are where they were to go."""
        while True:
            num_results = course.next(self)
            if course.look is not None and course.look is not self._look:
                self._look = course.look
                self._last = None if self._last is None else self._last.after(self._look)
                if self._last is not None and notify(self._last):
                    return
            if num_results is None:
                return
            self.aim(num_results)
            yield self.deal()

    def _run(self, stages: Iterable[Iterable[int]], notify: Notify) -> Ending:
        interrupted = False
        try:
            for lanes in stages:
                self.go_on(lanes)
                if self._work(notify):
                    break
        except KeyboardInterrupt:
            interrupted = True
        finally:
            interrupted |= self.stop()
        failures = {tuple(self.plan.groups[lane]): e for lane, e in self.failures.items()}
        return Ending(interrupted, failures, tuple(self.notes()))

    @abstractmethod
    def has_room(self) -> bool:
        """Whether one more lane may start now."""

    @abstractmethod
    def start(self, lane: int) -> None:
        """Has a lane advance."""

    @abstractmethod
    def reports(self) -> Iterator[Event]:
        """Waits for what happens, or for a little while; has lanes go on that are to."""

    @abstractmethod
    def stop(self) -> bool:
        """Has what is running commit and end; returns whether the user asked to stop meanwhile."""

    def go_on(self, lanes: Iterable[int], seconds: float = 0.0) -> None:
        """Has lanes start when there is room, and so many seconds have passed."""
        self._waiting.extend((time.monotonic() + seconds, lane) for lane in lanes)

    def aim(self, num_results: int) -> None:
        """Has the lanes go on until they have kept so many draws per chain."""
        self.aimed = self.plan.cut_to(num_results)

    def deal(self) -> list[int]:
        """The lanes that are to advance now."""
        counters, end = self.counters, self.aimed.end_of
        return [lane for lane in self.healthy if counters[lane].transition < end(counters[lane])]

    def notes(self) -> Iterable[str]:
        """Lines on what was lost."""
        return ()

    def event(self, phase: str, seconds: float) -> Iterator[SamplingEvent]:
        """Yields the event of the run, `seconds` of which were spent in the phase; none of no lanes."""
        if healthy := self.counted:
            event = SamplingEvent.of(phase, healthy, self.plan, seconds)
            self._last = event if self._look is None else event.after(self._look)
            yield self._last

    @property
    def healthy(self) -> list[int]:
        """Numbers of the lanes that have not failed for good."""
        return [lane for lane in self.counters if lane not in self.failures]

    @property
    def num_kept(self) -> list[int]:
        """Draws per chain that each of them has."""
        return [one.transitions["sampling"] // self.plan.stride for one in self.counted]

    @property
    def counted(self) -> list[Counters]:
        """What is known of those lanes."""
        return [self.counters[lane] for lane in self.healthy]

    def _work(self, notify: Notify) -> bool:
        """Works until nothing is left to do for now; whether `notify` stopped it."""
        while self._waiting or self.running:
            if time.perf_counter() >= self.pauses_at:
                self._waiting.clear()
            for turn in list(self._waiting):
                due, lane = turn
                if time.monotonic() >= due and self.has_room():
                    self._waiting.remove(turn)
                    self.start(lane)
            for event in self.reports():
                if notify(event):
                    return True
        return False
