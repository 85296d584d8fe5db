"""Tasks on a cluster, tried again where a worker or its storage failed."""

import contextlib
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from tfbnn.cluster import tasks
from tfbnn.cluster.extra import required
from tfbnn.exceptions import RunFolderError, RunLockedError
from tfbnn.run.counters import Seconds
from tfbnn.run.crew import Crew, Ended, Tally
from tfbnn.run.events import Event, SamplingEvent, current_phase
from tfbnn.run.plan import Plan
from tfbnn.run.stores import FolderStore
from tfbnn.storage.run.folder import STOP

_POLL_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 60.0
# The folder has news once per commit.
_LOOK_SECONDS = 2.0


class StopSign:
    """A file that asks tasks to stop, also those that the scheduler cannot reach any more.

    It lies where everything else of the run is too.

    Attributes:
        path: The file, of a name that no other call has.
    """

    def __init__(self, folder: str) -> None:
        """
        Args:
            folder: The run folder.
        """
        self.path = os.path.join(folder, f"{STOP}{secrets.token_hex(8)}")

    def set(self) -> None:
        """Asks them."""
        with open(self.path, "wb"):
            pass

    def clear(self) -> None:
        """Removes the file, when no task is left that may look for it."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


class Tasks(Crew):
    """Runs tasks until each has finished or failed, one for each lane.

    Whatever ends it, none of them is at work afterwards, unless the cluster is gone or a second
    interrupt comes while tasks commit. Where the scheduler is gone, `run` raises ConnectionError.

    Attributes besides those of a Crew:
        repeated: Counter of (lane, what ended an attempt that was followed by another).
    """

    # An attempt that got further than those before it starts the count anew.
    most_in_vain = 5

    def __init__(
        self, client: Any, calls: Mapping[int, tuple[Any, ...]], stop: StopSign, advice: str
    ) -> None:
        """
        Args:
            client: distributed.Client.
            calls: Dict lane -> (function, *arguments); true says that the work is finished.
            stop: StopSign that the functions heed.
            advice: Sentence on what helps where attempts end before they get any further.
        """
        super().__init__()
        self._client, self._calls, self._stop, self._advice = client, calls, stop, advice
        self.running: dict[Any, int] = {}
        self.repeated = Counter[tuple[int, str]]()
        self._reached = {lane: self.reached(lane) for lane in calls}

    def has_room(self) -> bool:
        # Else the client is looking for the scheduler.
        return bool(self._client.status == "running")

    def start(self, lanes: Sequence[int]) -> None:
        for lane in lanes:
            function, *arguments = self._calls[lane]
            self.running[self._client.submit(function, *arguments, pure=False)] = lane

    def reports(self) -> Iterator[Event | Ended]:
        if self._client.status == "closed":
            raise ConnectionError(
                "The Dask scheduler is gone. What was committed is in the run folder: go on with "
                "a new client and resume=True."
            )
        time.sleep(_POLL_SECONDS)
        yield from self._ended()

    def stop(self) -> bool:
        """Cancels tasks that no worker has, and waits until the others have stopped.

        Those that cannot be waited for keep the sign, and stop when they see it.
        """
        try:
            if self.running:
                self._stop.set()
            while self.running and self._client.status == "running":
                self._cancel_waiting()
                time.sleep(_POLL_SECONDS)
                for ended in self._ended():
                    # They are not tried again: what another attempt would mend is no failure.
                    self.failures |= ended.failures
        except KeyboardInterrupt:
            return True
        if not self.running:
            self._stop.clear()
        return False

    def reached(self, lane: int) -> int:
        return 0

    def give_up(self, ended: Ended, in_vain: int) -> Exception:
        return ended.error or TimeoutError(
            f"Its worker ended {in_vain} times in a row before it got any further. {self._advice}"
        )

    def lost(self, ended: Ended, again: Sequence[int]) -> float:
        self.repeated.update((lane, str(ended.lost)) for lane in again)
        return min(2.0 ** max(self._in_vain[lane] for lane in ended.left), _LONGEST_PAUSE_SECONDS)

    def _ended(self) -> Iterator[Ended]:
        for future in [future for future in self.running if future.status != "pending"]:
            lane, error = [self.running.pop(future)], None
            try:
                left = [] if future.result() else lane
            except Exception as caught:
                left, error = lane, caught
            if error is None or _is_passing(error):
                # There is no error where the worker closed in good order, or was asked to stop.
                lost = "worker closed" if error is None else type(error).__name__
                yield Ended(lane, left, lost=lost, error=error)
            else:
                yield Ended(lane, [], dict.fromkeys(lane, error))

    def _cancel_waiting(self) -> None:
        assigned = {key for keys in self._client.processing().values() for key in keys}
        waiting = [f for f in self.running if f.status == "pending" and f.key not in assigned]
        for future in waiting:
            del self.running[future]
            future.cancel()


class LaneTasks(Tasks):
    """Tasks that advance the lanes of a run, which its folder tells of."""

    def __init__(self, client: Any, plan: Plan, store: FolderStore, stop: StopSign) -> None:
        """
        Args:
            client, stop: As in `Tasks`.
            plan: Plan of the run.
            store: FolderStore.
        """
        self.tally = Tally(plan, range(len(plan.groups)))
        self._folder, interval = store.folder, store.commit_interval
        self._interval = max(interval, _LOOK_SECONDS)
        self._last_look = time.monotonic()
        folder = self._folder
        calls = {
            lane: (tasks.advance, folder.path, folder.run_id, lane, interval, stop.path)
            for lane in range(len(plan.groups))
        }
        advice = "Use a smaller commit_interval, or a longer lifetime of workers."
        super().__init__(client, calls, stop, advice)

    def reports(self) -> Iterator[Event | Ended]:
        yield from super().reports()
        is_due = time.monotonic() >= self._last_look + self._interval
        if is_due or not (self.running or self._waiting):
            self._last_look = time.monotonic()
            yield from self._look()

    def reached(self, lane: int) -> int:
        self._read([lane])
        return self.tally.counters[lane].transition

    def seconds(self) -> Seconds:
        """What the run has spent in its phases, by what is committed."""
        self._read(list(self.tally.counters))
        return Seconds.committed(list(self.tally.counters.values()))

    def notes(self) -> list[str]:
        """Lines on the tasks that were tried again."""
        groups = self.tally.plan.groups
        return [
            f"The task of chains {groups[lane]} was tried again {count} times ({error})."
            for (lane, error), count in self.repeated.items()
        ]

    def _look(self) -> Iterator[SamplingEvent]:
        seconds, healthy = self.seconds(), self.tally.healthy(self.failures)
        if healthy:
            phase = current_phase(healthy, self.tally.plan)
            yield SamplingEvent.of(phase, healthy, self.tally.plan, seconds.phases[phase])

    def _read(self, lanes: Sequence[int]) -> None:
        for lane in lanes:
            # The task that has this lane says what is wrong.
            with contextlib.suppress(OSError, RunFolderError):
                self.tally.read(self._folder, [lane])


def _is_passing(error: Exception) -> bool:
    """Whether another attempt may do better."""
    killed = required("distributed.scheduler").KilledWorker
    return isinstance(error, (killed, CancelledError, OSError, RunLockedError))
