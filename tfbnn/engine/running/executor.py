"""Advance the chain groups of a run from look to look, whatever they advance on."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING

from tfbnn.run.counters import Counters, Seconds
from tfbnn.run.events import Event, Look, SamplingEvent
from tfbnn.run.plan import Plan
from tfbnn.run.result import Ending
from tfbnn.run.until import next_look

if TYPE_CHECKING:
    from tfbnn.run.stopping import StoppingRule
    from tfbnn.run.stores import Store

Notify = Callable[[Event], bool]


class Executor(ABC):
    """Advances chain groups of a run until they are at their ends, as far as nothing stops it.

    A chain group that fails does not end the others.

    Attributes:
        plan: Plan of the run.
        aimed: The beginning of it that the chain groups are to make now.
        counters: Dict group -> what is known of it.
        failures: Dict group -> the error that ended it for good.
        running: What is at work.
        pauses_at: `time.perf_counter` from which no group starts.
    """

    running: Sized
    pauses_at = math.inf

    def __init__(self, plan: Plan) -> None:
        """Make an Executor.

        Args:
            plan: Plan of the run.
        """
        self.plan, self.aimed, self.failures = plan, plan, dict[int, BaseException]()
        self.counters = {
            group: Counters.nothing(chains) for group, chains in enumerate(plan.groups)
        }
        self._waiting: deque[tuple[float, int]] = deque()
        self._look: Look | None = None
        self._last: SamplingEvent | None = None

    def run(self, store: Store, rule: StoppingRule | None, notify: Notify) -> Ending:
        """Advance all chain groups to their ends, or until the rule or `notify` ends the run.

        Args:
            store: Store that the draws go to.
            rule: StoppingRule; None goes on to the last draw of the plan.
            notify: Called with the events of the run; true stops it.
        """
        interrupted, ended = False, None
        try:
            if not self.warm_up(notify):
                ended = self._sample(store, rule, notify)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            interrupted |= self.stop()
        failures = {tuple(self.plan.groups[group]): e for group, e in self.failures.items()}
        return Ending(interrupted, failures, tuple(self.notes()), ended)

    def warm_up(self, notify: Notify) -> bool:
        """Take the chain groups to the end of warm-up together, where that helps; return whether to stop."""
        return False

    def _sample(self, store: Store, rule: StoppingRule | None, notify: Notify) -> str | None:
        """Go from look to look; return why the run is over, or None.

        Looks are at fixed numbers of draws and chains wait there for each other, so that what is
        kept does not depend on who was faster.
        """
        most = self.plan.num_results
        while counts := self.num_kept:
            # In a resumed run chains may be anywhere between two looks, and together by chance.
            furthest = max(counts)
            next_stop = most if rule is None else min(next_look(furthest - 1), most)
            if min(counts) >= next_stop:
                if rule is None:
                    return None
                self._look, ended = rule.check(store.read(self.healthy))
                self._last = None if self._last is None else self._last.after(self._look)
                stops = self._last is not None and notify(self._last)
                if ended is not None or stops:
                    return ended
                next_stop = min(next_look(furthest), most)
            if self.go_to(next_stop, notify):
                return None
        return None

    def go_to(self, num_results: int, notify: Notify) -> bool:
        """Have the chain groups go on to so many draws per chain; return whether `notify` stopped them."""
        self.aim(num_results)
        counters, end = self.counters, self.aimed.end_of
        self.go_on(n for n in self.healthy if counters[n].transition < end(counters[n]))
        return self._work(notify)

    @property
    @abstractmethod
    def seconds(self) -> Seconds:
        """Seconds of the run so far, by its phases."""

    @abstractmethod
    def has_room(self) -> bool:
        """Return whether one more group may start now."""

    @abstractmethod
    def start(self, group: int) -> None:
        """Have a chain group advance."""

    @abstractmethod
    def reports(self) -> Iterator[Event]:
        """Wait for what happens, or for a little while; have chain groups go on that are to."""

    @abstractmethod
    def stop(self) -> bool:
        """Have what is running commit and end; return whether the user asked to stop meanwhile."""

    def go_on(self, groups: Iterable[int], seconds: float = 0.0) -> None:
        """Have chain groups start when there is room, and so many seconds have passed."""
        self._waiting.extend((time.monotonic() + seconds, group) for group in groups)

    def aim(self, num_results: int) -> None:
        """Have the chain groups stop at so many draws per chain."""
        self.aimed = self.plan.cut_to(num_results)

    def notes(self) -> Iterable[str]:
        """Return lines on what was lost."""
        return ()

    def event(self, phase: str, seconds: float) -> Iterator[SamplingEvent]:
        """Yield the event after `seconds` of the phase; nothing without chain groups."""
        if healthy := self.counted:
            event = SamplingEvent.of(phase, healthy, self.plan, seconds)
            self._last = event if self._look is None else event.after(self._look)
            yield self._last

    @property
    def healthy(self) -> list[int]:
        """Numbers of the chain groups that have not failed for good."""
        return [group for group in self.counters if group not in self.failures]

    @property
    def num_kept(self) -> list[int]:
        """Draws per chain that each of them has."""
        return [one.transitions["sampling"] // self.plan.stride for one in self.counted]

    @property
    def counted(self) -> list[Counters]:
        """Counters of those chain groups."""
        return [self.counters[group] for group in self.healthy]

    def warms_up(self) -> bool:
        """Return whether one of those chain groups has not finished warm-up."""
        return any(map(self.plan.is_warming_up, self.counted))

    def _work(self, notify: Notify) -> bool:
        """Work until nothing is left to do for now; return whether `notify` stopped it."""
        while self._waiting or self.running:
            if time.perf_counter() >= self.pauses_at:
                self._waiting.clear()
            for turn in list(self._waiting):
                due, group = turn
                if time.monotonic() >= due and self.has_room():
                    self._waiting.remove(turn)
                    self.start(group)
            for event in self.reports():
                if notify(event):
                    return True
        return False
