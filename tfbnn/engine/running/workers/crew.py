"""Hands lanes to worker processes, reports on them, and replaces those that crash."""

import builtins
import queue
import warnings
from collections import Counter, deque

from tfbnn import exceptions
from tfbnn.engine.running.workers.process import WorkerProcess
from tfbnn.exceptions import WorkerError, WorkerWarning
from tfbnn.run.counters import Counters
from tfbnn.run.events import SamplingEvent, current_phase
from tfbnn.run.plan import PHASES
from tfbnn.run.result import Ending

# How often a lane is taken up again when it has committed nothing since the last crash: chance has
# been excluded by then.
_MOST_RESTARTS = 3


def run_in_workers(plan, store, num_workers, notify):
    """Advances all lanes of a run folder to their ends, as far as nothing stops them.

    The lanes are dealt out; those of one worker take turns, so that all chains grow alike. When a
    worker crashes, its lanes go on from their last commits in another one. When that crashes too,
    each of them goes on in one of its own, which shows in which of them the cause is.

    Args:
        plan: Plan of the run.
        store: FolderStore.
        num_workers: Number of processes, at least 1.
        notify: Called with the Event of the run after each block of a worker; true stops the run.

    Raises:
        RunFolderError, RunLockedError, StartError, ...: What a worker refused to start with.
        OSError: When no process can be started.
    """
    crew = _Crew(plan, store, num_workers)
    interrupted = False
    try:
        crew.work(notify)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        interrupted |= crew.dismiss()
    return Ending(interrupted, crew.failures, crew.notes())


class _Crew:
    """The workers of a run, and what is known of its lanes.

    Attributes:
        failures: Dict tuple of chains -> the exception that ended them.
    """

    def __init__(self, plan, store, num_workers):
        self.failures = {}
        self._plan, self._store, self._num_workers = plan, store, num_workers
        self._counters = [Counters.nothing(chains) for chains in plan.groups]
        self._seconds = dict.fromkeys(PHASES, 0.0)
        # Crashes in a row, and transitions committed before the last of them.
        self._crashes, self._reached = Counter(), {}
        self._endings = Counter()
        unfinished = self._unfinished(range(len(plan.groups)))
        dealt = [unfinished[first::num_workers] for first in range(num_workers)]
        self._waiting = deque(filter(None, dealt))
        self._running, self._inbox = [], queue.SimpleQueue()

    def work(self, notify):
        """Until all lanes are at their ends, or `notify` returns true."""
        while self._waiting or self._running:
            while self._waiting and len(self._running) < self._num_workers:
                self._start(self._waiting.popleft())
            worker, kind, content = self._inbox.get()
            if kind == "event" and notify(self._event_of_all(content)):
                return
            if kind == "warning":
                _warn_again(*content)
            if kind == "gone":
                self._running.remove(worker)
                self._take_leave(worker)

    def dismiss(self):
        """Stops all workers, which commit; returns whether the user asked to stop meanwhile."""
        interrupted = False
        while True:
            try:
                for worker in self._running:
                    worker.stop()
                for worker in self._running:
                    worker.join()
                break
            except KeyboardInterrupt:
                interrupted = True
        for worker in self._running:
            self.failures |= worker.failures
            if worker.has_crashed:
                self._endings[self._chains(worker.lanes), worker.describe_end()[0]] += 1
        return interrupted

    def notes(self):
        """Lines on the workers that crashed."""
        return tuple(
            f"The worker process of {_named(chains)} crashed"
            f"{f' {count} times' if count > 1 else ''} ({ending}); what it had not committed was "
            "sampled again."
            for (chains, ending), count in self._endings.items()
        )

    def _start(self, lanes):
        order = {
            "path": self._store.folder.path,
            "indices": lanes,
            "commit_interval": self._store.commit_interval,
        }
        worker = WorkerProcess(order, self._inbox)
        self._running.append(worker)  # first, so that an interrupt leaves none behind
        try:
            worker.start()
        except OSError as error:
            self._running.remove(worker)
            self._refuse(lanes, error)

    def _take_leave(self, worker):
        """What follows from a worker's end."""
        if worker.refusal is not None:
            self._refuse(worker.lanes, worker.refusal)
        self.failures |= worker.failures
        left = self._unfinished(worker.lanes)
        if left:
            self._replace(worker, left)

    def _refuse(self, lanes, error):
        """Ends the run when lanes cannot begin; when they cannot go on after a crash, only them."""
        if not any(self._crashes[lane] for lane in lanes):
            raise error
        self.failures |= {self._chains([lane]): error for lane in lanes}

    def _replace(self, worker, lanes):
        chains, (ending, last_words) = self._chains(lanes), worker.describe_end()
        self._endings[chains, ending] += 1
        for lane in lanes:
            reached = self._counters[lane].transition
            in_vain = self._reached.get(lane) == reached
            self._crashes[lane] = 1 + in_vain * self._crashes[lane]
            self._reached[lane] = reached
        count = max(self._crashes[lane] for lane in lanes)
        hopeless = [lane for lane in lanes if self._crashes[lane] > _MOST_RESTARTS]
        others = [lane for lane in lanes if lane not in hopeless]
        self._waiting.extend([others] if count == 1 else ([lane] for lane in others))
        error = WorkerError(
            f"{count} worker processes crashed ({ending}) without a commit between.{last_words}"
        )
        self.failures |= {self._chains([lane]): error for lane in hopeless}
        plan = "Sampling goes on from the last commit" if others else "It is given up"
        warnings.warn(
            f"The worker process of {_named(chains)} crashed ({ending}). {plan}.{last_words}",
            WorkerWarning,
            stacklevel=2,
        )

    def _unfinished(self, lanes):
        """Those of some lanes that have a way to go; takes down what all of them have committed."""
        for lane in lanes:
            found = self._store.folder.checkpoint(lane)
            if found:
                self._counters[lane] = Counters.from_json(found.counters)
        return [
            lane
            for lane in lanes
            if self._counters[lane].transition < self._plan.end
            and self._chains([lane]) not in self.failures
        ]

    def _event_of_all(self, event):
        """The event of the whole run after a block of one worker."""
        # Before this block, which may be the last one of it.
        phase = current_phase(self._healthy(), self._plan)
        for counters in map(Counters.from_json, event["lanes"]):
            self._counters[self._plan.groups.index(counters.chains)] = counters
        self._seconds[event["phase"]] = max(self._seconds[event["phase"]], event["seconds"])
        return SamplingEvent.of(phase, self._healthy(), self._plan, self._seconds[phase])

    def _healthy(self):
        return [
            counters for counters in self._counters if tuple(counters.chains) not in self.failures
        ]

    def _chains(self, lanes):
        return self._plan.chains(lanes)


def _named(chains):
    return f"chain{'s' if len(chains) > 1 else ''} {', '.join(map(str, chains))}"


def _warn_again(category, text):
    kind = getattr(exceptions, category, None) or getattr(builtins, category, None)
    is_known = isinstance(kind, type) and issubclass(kind, Warning)
    warnings.warn(text, kind if is_known else UserWarning, stacklevel=2)
