"""Base class that advances the chain groups of a run from check to check, on any backend."""

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
    """Executor that advances the chain groups of a run to their ends, unless something stops it.

    A failed chain group does not end the others.

    Attributes:
        plan: Plan of the run.
        aimed: First part of the plan, to which the chain groups should advance now.
        counters: Dict group -> Counters.
        failures: Dict group -> error that ended it permanently.
        running: Tasks that are running.
        pauses_at: Value of `time.perf_counter` after which no group starts.
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
            store: Store for the draws.
            rule: StoppingRule; None continues to the last draw of the plan.
            notify: Called with the events of the run; a true result stops it.
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
        """Advance all chain groups to the end of warm-up, if that helps; return whether to stop."""
        return False

    def _sample(self, store: Store, rule: StoppingRule | None, notify: Notify) -> str | None:
        """Sample from check to check; return the reason why the run ended, or None.

        Checks are at fixed numbers of draws, and chains wait there for each other. The kept draws
        therefore do not depend on which chain is faster.
        """
        most = self.plan.num_results
        while counts := [one.transitions["sampling"] // self.plan.stride for one in self.counted]:
            # In a resumed run, chains may be anywhere between two checks, and equal by chance.
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
        """Advance the chain groups to `num_results` draws per chain; return whether `notify` stopped them."""
        self.aim(num_results)
        counters, end = self.counters, self.aimed.end_of
        self.go_on(n for n in self.healthy if counters[n].transition < end(counters[n]))
        return self._work(notify)

    @property
    @abstractmethod
    def seconds(self) -> Seconds:
        """Seconds of the run so far, by phase."""

    @abstractmethod
    def has_room(self) -> bool:
        """Check whether one more chain group may start now."""

    @abstractmethod
    def start(self, group: int) -> None:
        """Start to advance a chain group."""

    @abstractmethod
    def reports(self) -> Iterator[Event]:
        """Wait briefly for events and yield them; let unfinished chain groups continue."""

    @abstractmethod
    def stop(self) -> bool:
        """Commit and end all running tasks; return whether the user interrupted meanwhile."""

    def go_on(self, groups: Iterable[int], seconds: float = 0.0) -> None:
        """Queue chain groups to start when there is room, after `seconds` at the earliest."""
        self._waiting.extend((time.monotonic() + seconds, group) for group in groups)

    def aim(self, num_results: int) -> None:
        """Let the chain groups stop at `num_results` draws per chain."""
        self.aimed = self.plan.cut_to(num_results)

    def notes(self) -> Iterable[str]:
        """Return notes on lost work."""
        return ()

    def event(self, phase: str, seconds: float) -> Iterator[SamplingEvent]:
        """Yield the event after `seconds` of the phase, unless all chain groups have failed."""
        if healthy := self.counted:
            event = SamplingEvent.of(phase, healthy, self.plan, seconds)
            self._last = event if self._look is None else event.after(self._look)
            yield self._last

    @property
    def healthy(self) -> list[int]:
        """Numbers of the chain groups that have not failed permanently."""
        return [group for group in self.counters if group not in self.failures]

    @property
    def counted(self) -> list[Counters]:
        """Counters of the healthy chain groups."""
        return [self.counters[group] for group in self.healthy]

    def warms_up(self) -> bool:
        """Check whether a healthy chain group has not finished warm-up."""
        return any(map(self.plan.is_warming_up, self.counted))

    def _work(self, notify: Notify) -> bool:
        """Run until no chain group is waiting or running; return whether `notify` stopped it."""
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
