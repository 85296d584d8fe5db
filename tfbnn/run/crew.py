"""What is the same for lanes that advance on threads, in processes and as tasks on a cluster."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, NamedTuple

from tfbnn.run.counters import Counters
from tfbnn.run.events import Event, Look, SamplingEvent, current_phase
from tfbnn.run.plan import Plan
from tfbnn.run.result import Ending

if TYPE_CHECKING:
    from tfbnn.run.course import Course
    from tfbnn.storage import RunFolder

Notify = Callable[[Event], bool]


class Ended(NamedTuple):
    """An attempt to advance some lanes that is over.

    Attributes:
        lanes: Numbers of the lanes.
        left: Lanes that are to go on now.
        refusal: What kept all of them from advancing, or None.
        lost: How the attempt was lost, in words; None where it ended as it should.
        last_words: A sentence on that, or nothing.
        error: The exception that ended a lost attempt, or None where there was none.
    """

    lanes: Sequence[int]
    left: Sequence[int]
    refusal: Exception | None = None
    lost: str | None = None
    last_words: str = ""
    error: Exception | None = None


class Crew(ABC):
    """Advances lanes of a run until they are at their ends, as far as nothing stops it.

    One that fails does not end the others. Lanes whose attempt was lost go on in another one, each
    by itself where that may show in which of them the cause is, and are given up once chance has
    been excluded.

    Attributes:
        plan: Plan of the run.
        aimed: The beginning of it that the lanes are to make now.
        counters: Dict lane -> what is known of it.
        failures: Dict lane -> the error that ended it for good.
        running: What is at work.
        pauses_at: `time.perf_counter` from which no attempt starts, so that the course is asked again.
    """

    # How often a lane is tried again that got no further since the last attempt that was lost.
    most_in_vain = 0
    running: Sized
    pauses_at = math.inf

    def __init__(self, plan: Plan, lanes: Iterable[int] | None = None) -> None:
        """
        Args:
            plan: Plan of the run.
            lanes: Numbers of the lanes that this crew has, by default all.
        """
        lanes = range(len(plan.groups)) if lanes is None else lanes
        self.plan, self.aimed, self.failures = plan, plan, dict[int, BaseException]()
        self.counters = {lane: Counters.nothing(plan.groups[lane]) for lane in lanes}
        self._waiting: deque[tuple[float, list[int]]] = deque()
        # Attempts in a row that got no further, and transitions that the last of them reached.
        self._in_vain, self._reached = Counter[int](), dict[int, int]()
        self._look: Look | None = None
        self._last: SamplingEvent | None = None

    def follow(self, course: Course, notify: Notify) -> Ending:
        """Works until the course is over or `notify` returns true.

        Args:
            course: How far the lanes are to go, asked again whenever all of them are there.
            notify: Called with the events of the run.
        """
        return self._run(self._dealt(course, notify), notify)

    def run(self, turns: Iterable[Sequence[int]], notify: Notify) -> Ending:
        """Works until all is done or `notify` returns true.

        Args:
            turns: Lanes that are to advance, those of one attempt together.
            notify: Called with the events of the run.
        """
        return self._run([turns], notify)

    def _dealt(self, course: Course, notify: Notify) -> Iterator[Iterable[Sequence[int]]]:
        while True:
            num_results = course.next(self)
            if self._has_news(course) and self._last is not None and notify(self._last):
                return
            if num_results is None:
                return
            self.aim(num_results)
            yield self.deal()

    def _has_news(self, course: Course) -> bool:
        """Takes down what was found at a look at the draws; whether there was one."""
        if course.look is None or course.look is self._look:
            return False
        self._look = course.look
        self._last = None if self._last is None else self._last.after(self._look)
        return True

    def _run(self, stages: Iterable[Iterable[Sequence[int]]], notify: Notify) -> Ending:
        interrupted = False
        try:
            for turns in stages:
                self._waiting.extend((0.0, list(lanes)) for lanes in turns if lanes)
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
        """Whether one more attempt may start now."""

    @abstractmethod
    def start(self, lanes: Sequence[int]) -> None:
        """Starts an attempt; an OSError says that this is impossible."""

    @abstractmethod
    def reports(self) -> Iterator[Event | Ended]:
        """What has happened meanwhile; waits for it, or for a little while."""

    @abstractmethod
    def stop(self) -> bool:
        """Has what is running commit and end; returns whether the user asked to stop meanwhile."""

    def aim(self, num_results: int) -> None:
        """Has the lanes go on until they have kept so many draws per chain."""
        self.aimed = self.plan.cut_to(num_results)

    def deal(self) -> Iterable[Sequence[int]]:
        """The lanes that are to advance now, those of one attempt together."""
        counters, end = self.counters, self.aimed.end_of
        return [[lane] for lane in self.healthy if counters[lane].transition < end(counters[lane])]

    def give_up(self, ended: Ended, in_vain: int) -> Exception:
        """The error of lanes for which nothing more can be done."""
        raise NotImplementedError

    def lost(self, ended: Ended, again: Sequence[int]) -> float:
        """Takes down that lanes were lost and which are tried again; after how many seconds."""
        raise NotImplementedError

    def notes(self) -> Iterable[str]:
        """Lines on what was lost."""
        return ()

    def read(self, folder: RunFolder, lanes: Iterable[int]) -> None:
        """Takes down what some lanes have committed."""
        for lane in lanes:
            found = folder.checkpoint(lane)
            if found is not None:
                self.counters[lane] = Counters.from_json(found.counters)

    def is_warming_up(self) -> bool:
        """Whether a lane has not come to the end of its warm-up."""
        return any(self.plan.is_warming_up(lane) for lane in self._healthy())

    def compile(self) -> None:
        """Compiles what the first attempt would compile."""
        raise NotImplementedError

    def cut_warmup(self) -> None:
        """Ends the warm-up of each lane as soon as it may end."""
        raise NotImplementedError

    def phase(self) -> str:
        """The phase that the lanes are in."""
        return current_phase(self._healthy(), self.plan)

    def event(self, phase: str, seconds: float) -> Iterator[SamplingEvent]:
        """Yields the event of the run, `seconds` of which were spent in the phase; none of no lanes."""
        if healthy := self._healthy():
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
        return [one.transitions["sampling"] // self.plan.stride for one in self._healthy()]

    def _healthy(self) -> list[Counters]:
        return [self.counters[lane] for lane in self.healthy]

    def _work(self, notify: Notify) -> bool:
        """Works until nothing is left to do for now; whether `notify` stopped it."""
        while self._waiting or self.running:
            if time.perf_counter() >= self.pauses_at:
                self._waiting.clear()
            self._start_due()
            for report in self.reports():
                if isinstance(report, Ended):
                    self._take_leave(report)
                elif notify(report):
                    return True
        return False

    def _start_due(self) -> None:
        for turn in list(self._waiting):
            due, lanes = turn
            if time.monotonic() >= due and self.has_room():
                self._waiting.remove(turn)
                try:
                    self.start(lanes)
                except OSError as error:
                    self._refuse(lanes, error)

    def _take_leave(self, ended: Ended) -> None:
        if ended.refusal is not None:
            self._refuse(ended.lanes, ended.refusal)
        left = [lane for lane in ended.left if lane not in self.failures]
        if left and ended.lost is not None:
            self._try_again(ended._replace(left=left))
        else:
            self._waiting.extend((0.0, [lane]) for lane in left)

    def _refuse(self, lanes: Sequence[int], error: Exception) -> None:
        """Ends the run when lanes cannot begin; when they cannot go on after a loss, only them."""
        if not any(lane in self._in_vain for lane in lanes):
            raise error
        self.failures |= dict.fromkeys(lanes, error)

    def _try_again(self, ended: Ended) -> None:
        for lane in ended.left:
            reached = self.counters[lane].transition
            advanced = self._reached.get(lane) != reached
            self._in_vain[lane] = 0 if advanced else self._in_vain[lane] + 1
            self._reached[lane] = reached
        in_vain = max(self._in_vain[lane] for lane in ended.left)
        again = [lane for lane in ended.left if self._in_vain[lane] < self.most_in_vain]
        for lane in set(ended.left) - set(again):
            self.failures[lane] = self.give_up(ended, in_vain)
        due = time.monotonic() + self.lost(ended, again)
        turns = [again] if in_vain == 0 else [[lane] for lane in again]
        self._waiting.extend((due, lanes) for lanes in turns if lanes)
