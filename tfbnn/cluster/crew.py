"""Tasks on a cluster, tried again where a worker or its storage failed."""

import contextlib
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from tfbnn.cluster import tasks
from tfbnn.cluster.tasks import required
from tfbnn.exceptions import RunFolderError, RunLockedError
from tfbnn.run.counters import Counters, Seconds
from tfbnn.run.crew import Crew
from tfbnn.run.events import Event, current_phase
from tfbnn.run.plan import Plan
from tfbnn.run.stores import FolderStore
from tfbnn.storage.run.folder import STOP

_POLL_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 60.0
# The folder has news once per commit.
_LOOK_SECONDS = 2.0
# How often a lane is tried again that got no further; one that did starts the count anew.
_MOST_IN_VAIN = 5


class Tasks(Crew):
    """Runs tasks until each has finished or failed, one for each lane.

    Whatever ends it, none of them is at work afterwards, unless the cluster is gone or a second
    interrupt comes while tasks commit. Where the scheduler is gone, `run` raises ConnectionError.

    Attributes besides those of a Crew:
        repeated: Counter of (lane, what ended an attempt that was followed by another).
    """

    # What to do where a task gets no further: the search for starts, which commits at its end only.
    advice = "Use workers with a longer lifetime."

    def __init__(
        self,
        plan: Plan,
        client: Any,
        calls: Mapping[int, tuple[Any, ...]],
        folder: str,
    ) -> None:
        """
        Args:
            plan: Plan of the run.
            client: distributed.Client.
            calls: Dict lane -> (function, *arguments). The functions get one argument more, the
                file whose existence asks them to stop, also where the scheduler cannot reach them
                any more; true says that their work is finished.
            folder: The run folder, where that file will be, under a name that no other call has.
        """
        super().__init__(plan)
        self._client, self._calls = client, calls
        self._sign = os.path.join(folder, f"{STOP}{secrets.token_hex(8)}")
        self.running: dict[Any, int] = {}
        self.repeated = Counter[tuple[int, str]]()
        # Attempts in a row that got no further, and transitions that the last of them reached.
        self._in_vain, self._reached = Counter[int](), dict.fromkeys(calls, 0)

    def has_room(self) -> bool:
        # Else the client is looking for the scheduler.
        return bool(self._client.status == "running")

    def start(self, lane: int) -> None:
        function, *arguments = self._calls[lane]
        self.running[self._client.submit(function, *arguments, self._sign, pure=False)] = lane

    def reports(self) -> Iterator[Event]:
        if self._client.status == "closed":
            raise ConnectionError(
                "The Dask scheduler is gone. What was committed is in the run folder: go on with "
                "a new client and resume=True."
            )
        time.sleep(_POLL_SECONDS)
        if ended := list(self._unfinished()):
            self.look()
        for lane, error in ended:
            self._try_again(lane, error)
        yield from ()

    def look(self) -> None:
        """Takes down what the lanes have committed."""

    def stop(self) -> bool:
        """Cancels tasks that no worker has, and waits until the others have stopped.

        Those that cannot be waited for keep the sign, and stop when they see it.
        """
        try:
            if self.running:
                Path(self._sign).touch()
            while self.running and self._client.status == "running":
                assigned = {key for keys in self._client.processing().values() for key in keys}
                for future in list(self.running):
                    if future.status == "pending" and future.key not in assigned:
                        del self.running[future]
                        future.cancel()
                time.sleep(_POLL_SECONDS)
                list(self._unfinished())  # not tried again: what that would mend is no failure
        except KeyboardInterrupt:
            return True
        if not self.running:  # that may look for it
            Path(self._sign).unlink(missing_ok=True)
        return False

    def _unfinished(self) -> Iterator[tuple[int, Exception | None]]:
        """(Lane, error) of attempts that are over before the lane is where it was to go.

        There is no error where the worker closed in good order, or was asked to stop.
        """
        for future in [future for future in self.running if future.status != "pending"]:
            lane = self.running.pop(future)
            try:
                if not future.result():
                    yield lane, None
            except Exception as error:
                if _is_passing(error):
                    yield lane, error
                else:
                    self.failures[lane] = error

    def _try_again(self, lane: int, error: Exception | None) -> None:
        reached = self.counters[lane].transition
        self._in_vain[lane] = 0 if reached != self._reached[lane] else self._in_vain[lane] + 1
        self._reached[lane] = reached
        in_vain = self._in_vain[lane]
        if in_vain >= _MOST_IN_VAIN:
            self.failures[lane] = error or TimeoutError(
                f"Its worker ended {in_vain} times in a row before it got any further. {self.advice}"
            )
        else:
            self.repeated[lane, "worker closed" if error is None else type(error).__name__] += 1
            self.go_on([lane], min(2.0**in_vain, _LONGEST_PAUSE_SECONDS))


class LaneTasks(Tasks):
    """Tasks that advance the lanes of a run, which its folder tells of."""

    advice = "Use a smaller commit_interval, or workers with a longer lifetime."

    def __init__(self, plan: Plan, client: Any, store: FolderStore) -> None:
        """
        Args:
            plan, client: As in `Tasks`.
            store: FolderStore.
        """
        self._folder, self._commit_interval = store.folder, store.commit_interval
        super().__init__(plan, client, {}, self._folder.path)
        self._interval = max(self._commit_interval, _LOOK_SECONDS)
        self._last_look = time.monotonic()
        self.look()
        self._reached = {lane: one.transition for lane, one in self.counters.items()}

    def aim(self, num_results: int) -> None:
        super().aim(num_results)
        folder, interval = self._folder, self._commit_interval
        self._calls = {
            lane: (tasks.advance, folder.path, folder.run_id, lane, interval, num_results)
            for lane in self.counters
        }

    def reports(self) -> Iterator[Event]:
        yield from super().reports()
        is_over = not (self.running or self._waiting)
        if is_over or time.monotonic() >= self._last_look + self._interval:
            self._last_look = time.monotonic()
            seconds, phase = self.seconds(), current_phase(self.counted, self.plan)
            yield from self.event(phase, seconds.phases[phase])

    def look(self) -> None:
        for lane in self.counters:
            # The task that has this lane says what is wrong.
            with contextlib.suppress(OSError, RunFolderError):
                if (found := self._folder.checkpoint(lane)) is not None:
                    self.counters[lane] = Counters.from_json(found.counters)

    def seconds(self) -> Seconds:
        """What the run has spent in its phases, by what is committed, which is taken down."""
        self.look()
        return Seconds.committed(list(self.counters.values()))

    def notes(self) -> list[str]:
        return [
            f"The task of chains {self.plan.groups[lane]} was tried again {count} times ({error})."
            for (lane, error), count in self.repeated.items()
        ]


def _is_passing(error: Exception) -> bool:
    """Whether another attempt may do better."""
    killed = required("distributed.scheduler").KilledWorker
    return isinstance(error, (killed, CancelledError, OSError, RunLockedError))
