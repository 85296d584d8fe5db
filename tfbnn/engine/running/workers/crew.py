"""Hands lanes to worker processes, reports on them, and replaces those that crash."""

import builtins
from collections import Counter
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from typing import Any

from tfbnn import exceptions
from tfbnn.engine.running.workers.process import Inbox, WorkerProcess
from tfbnn.exceptions import WorkerError, WorkerWarning
from tfbnn.run.counters import PHASES, Counters
from tfbnn.run.course import Course, Straight
from tfbnn.run.crew import Crew, Ended, Notify
from tfbnn.run.events import Event
from tfbnn.run.plan import Plan
from tfbnn.run.result import Ending
from tfbnn.run.stores import FolderStore
from tfbnn.system.warn import warn


def run_in_workers(
    plan: Plan,
    store: FolderStore,
    num_workers: int,
    notify: Notify,
    course: Course | None = None,
    own_names: Sequence[str] = (),
) -> Ending:
    """Advances all lanes of a run folder to their ends, as far as nothing stops them.

    The lanes are dealt out; those of one worker take turns, so that all chains grow alike. When a
    worker crashes, its lanes go on from their last commits in another one. When that crashes too,
    each of them goes on in one of its own, which shows in which of them the cause is.

    Args:
        plan: Plan of the run.
        store: FolderStore.
        num_workers: Number of processes, at least 1.
        notify: Called with the event of the run whenever a worker tells of itself; true stops the run.
        course: How far the lanes go, by default as far as their plan.
        own_names: As in `advance_lanes`.

    Raises:
        RunFolderError, RunLockedError, StartError, ...: What a worker refused to start with.
        OSError: When no process can be started.
    """
    crew = _Workers(plan, store, num_workers, own_names, waits=course is not None)
    crew.read(store.folder, range(len(plan.groups)))
    return crew.follow(course or Straight(plan.num_results), notify)


class _Workers(Crew):
    """The worker processes of a run."""

    # Chance has been excluded by then.
    most_in_vain = 3

    def __init__(
        self,
        plan: Plan,
        store: FolderStore,
        num_workers: int,
        own_names: Sequence[str],
        waits: bool,
    ) -> None:
        super().__init__(plan)
        self.running: list[WorkerProcess] = []
        # Those that have reached what they were to. Starting one takes ten seconds.
        self._waits, self._at_rest = waits, list[WorkerProcess]()
        self._store, self._num_workers, self._own_names = store, num_workers, own_names
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._endings = Counter[tuple[tuple[int, ...], str]]()
        self._inbox: Inbox = SimpleQueue()

    def unfinished(self, lanes: Sequence[int]) -> list[int]:
        """Those of some lanes that have a way to go; takes down what all of them have committed."""
        self.read(self._store.folder, lanes)
        counters, end = self.counters, self.aimed.end_of
        return [lane for lane in lanes if counters[lane].transition < end(counters[lane])]

    def deal(self) -> list[list[int]]:
        """Lanes stay with the worker that has them; the others are dealt out."""
        kept = [worker.lanes for worker in self._at_rest]
        others = [lane for lane in self.healthy if lane not in sum(kept, [])]
        if not self._waits:
            others = self.unfinished(others)
        return [*kept, *(others[first :: self._num_workers] for first in range(self._num_workers))]

    def has_room(self) -> bool:
        return len(self.running) < self._num_workers

    def start(self, lanes: Sequence[int]) -> None:
        for worker in self._at_rest:
            if worker.lanes == list(lanes):
                self._at_rest.remove(worker)
                self.running.append(worker)
                worker.go_on(self.aimed.num_results)
                return
        order = {
            "path": self._store.folder.path,
            "indices": lanes,
            "commit_interval": self._store.commit_interval,
            "own_names": list(self._own_names),
        }
        if self._waits:
            order["num_results"] = self.aimed.num_results
        worker = WorkerProcess(order, self._inbox)
        self.running.append(worker)  # first, so that an interrupt leaves none behind
        try:
            worker.start()
        except OSError:
            self.running.remove(worker)
            raise

    def reports(self) -> Iterator[Event | Ended]:
        worker, kind, content = self._inbox.get()
        if kind == "event":
            yield from self._event_of_all(content)
        if kind == "warning":
            _warn_again(*content)
        if kind == "reached":
            self.running.remove(worker)
            self._at_rest.append(worker)
            self._take_down_failures(worker)
            yield Ended(worker.lanes, self.unfinished(worker.lanes))
        if kind == "gone" and worker in self._at_rest:
            self._at_rest.remove(worker)  # another one will have its lanes
        elif kind == "gone":
            self.running.remove(worker)
            self._take_down_failures(worker)
            left = self.unfinished(worker.lanes)
            yield Ended(worker.lanes, left, worker.refusal, *worker.describe_end())

    def stop(self) -> bool:
        interrupted = False
        while True:
            try:
                for worker in (*self.running, *self._at_rest):
                    worker.stop()
                for worker in (*self.running, *self._at_rest):
                    worker.join()
                break
            except KeyboardInterrupt:
                interrupted = True
        for worker in self.running:
            self._take_down_failures(worker)
            if worker.has_crashed:
                self._endings[self.plan.chains(worker.lanes), worker.describe_end()[0]] += 1
        return interrupted

    def give_up(self, ended: Ended, in_vain: int) -> Exception:
        return WorkerError(
            f"{in_vain + 1} worker processes crashed ({ended.lost}) without a commit between."
            f"{ended.last_words}"
        )

    def lost(self, ended: Ended, again: Sequence[int]) -> float:
        chains = self.plan.chains(ended.left)
        self._endings[chains, str(ended.lost)] += 1
        plan = "Sampling goes on from the last commit" if again else "It is given up"
        warn(
            f"The worker process of {_named(chains)} crashed ({ended.lost}). {plan}."
            f"{ended.last_words}",
            WorkerWarning,
        )
        return 0.0

    def notes(self) -> list[str]:
        return [
            f"The worker process of {_named(chains)} crashed"
            f"{f' {count} times' if count > 1 else ''} ({ending}); what it had not committed was "
            "sampled again."
            for (chains, ending), count in self._endings.items()
        ]

    def _take_down_failures(self, worker: WorkerProcess) -> None:
        for chains, error in worker.failures.items():
            self.failures[self.plan.groups.index(list(chains))] = error

    def _event_of_all(self, event: dict[str, Any]) -> Iterator[Event]:
        """The event of the whole run after a block of one worker."""
        before = self.phase()  # this block may be the last one of it
        for counters in map(Counters.from_json, event["lanes"]):
            self.counters[self.plan.groups.index(counters.chains)] = counters
        self._seconds[event["phase"]] = max(self._seconds[event["phase"]], event["seconds"])
        yield from self.event(before, self._seconds[before])


def _named(chains: Sequence[int]) -> str:
    return f"chain{'s' if len(chains) > 1 else ''} {', '.join(map(str, chains))}"


def _warn_again(category: str, text: str) -> None:
    kind: Any = getattr(exceptions, category, None) or getattr(builtins, category, None)
    is_known = isinstance(kind, type) and issubclass(kind, Warning)
    warn(text, kind if is_known else UserWarning)
