"""Run chains as tasks on a cluster, and repeat them when a worker or its storage fails."""

import contextlib
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tfbnn.cluster import tasks
from tfbnn.engine.running.executor import Executor
from tfbnn.engine.sampling.program import Program
from tfbnn.exceptions import RunFolderError, RunLockedError
from tfbnn.run.counters import Clock, Counters, Seconds
from tfbnn.run.description import read_config
from tfbnn.run.events import Event
from tfbnn.run.options import FitOptions
from tfbnn.run.plan import Plan
from tfbnn.run.stores import FolderStore, Store
from tfbnn.storage.run.folder import STOP, RunFolder
from tfbnn.system.words import warn

_POLL_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 60.0
# Shortest interval between two reads of the folder, which changes once per commit.
_LOOK_SECONDS = 2.0
# Warn after this many seconds without a worker: a cluster may start its workers later, or lose them for good.
_ALONE_SECONDS = 60.0
# Number of attempts without progress after which a chain group fails; progress resets the count.
_MOST_IN_VAIN = 5


class Cluster:
    """Advances chains as tasks on a Dask cluster, one task per chain group."""

    def __init__(self, client: Any) -> None:
        """Make a Cluster.

        Args:
            client: `distributed.Client`.
        """
        self._client = client

    def environment(self, options: FitOptions) -> dict[str, Any]:
        """Return the environment of the run in the folder, or of a worker. Tasks compare it with theirs."""
        folder = RunFolder.find(str(options.output))
        if folder is not None:
            return read_config(folder).environment
        return dict(self._client.submit(tasks.environment, pure=False).result())

    def executor(self, program: Program, store: Store, clock: Clock) -> Executor:
        """Return the executor that runs the chain groups of a program as tasks."""
        return Tasks(program.plan, self._client, cast(FolderStore, store), clock)


class Tasks(Executor):
    """Runs each chain group of a run in a folder as a task, and repeats a task whose worker failed.

    A task is also repeated if the storage failed. However the run ends, no task is at work afterwards,
    unless the cluster is gone or a second interrupt comes while tasks commit. If the scheduler is gone,
    `run` raises ConnectionError.

    Attributes besides those of an Executor:
        repeated: Counter of (group, error name of an attempt that was followed by another).
    """

    def __init__(self, plan: Plan, client: Any, store: FolderStore, clock: Clock) -> None:
        """Make a Tasks.

        Args:
            plan: Plan of the run.
            client: distributed.Client.
            store: FolderStore of a run that has begun. A file in its folder asks tasks to stop, even if
                the scheduler cannot reach them. The name of this file is unique to this call.
            clock: Clock of the run in this process. The chain groups commit the seconds of their phases.
        """
        super().__init__(plan)
        self._client, self._clock, self._folder = client, clock, store.folder
        self._commit_interval = store.commit_interval
        self._sign = os.path.join(store.folder.path, f"{STOP}{secrets.token_hex(8)}")
        self.running: dict[Any, int] = {}
        self.repeated = Counter[tuple[int, str]]()
        self._interval = max(self._commit_interval, _LOOK_SECONDS)
        self._began, self._last_look = time.perf_counter(), time.monotonic()
        self._last_worker = time.monotonic()
        self.look()
        self._before = Seconds.committed(list(self.counters.values()))
        # Attempts in a row without progress, and the transitions that the last of them reached.
        self._in_vain = Counter[int]()
        self._reached = {group: one.transition for group, one in self.counters.items()}

    @property
    def seconds(self) -> Seconds:
        """Seconds of the run: the phases as committed by the chain groups, and the other time as startup.

        Workers spend this startup time on imports and compilation, in parallel.
        """
        self.look()
        here, groups = self._clock.seconds, Seconds.committed(list(self.counters.values()))
        sampled = sum(groups.phases.values()) - sum(self._before.phases.values())
        waited = max(time.perf_counter() - self._began - sampled, 0.0)
        return replace(here, startup=here.startup + waited, **groups.phases)

    def has_room(self) -> bool:
        # Otherwise the client is trying to reach the scheduler.
        return bool(self._client.status == "running")

    def start(self, group: int) -> None:
        run, most = self._folder, self.aimed.num_results
        call = tasks.advance, run.path, run.run_id, group, self._commit_interval, most, self._sign
        self.running[self._client.submit(*call, pure=False)] = group

    def reports(self) -> Iterator[Event]:
        if self._client.status == "closed":
            raise ConnectionError(
                "Lost the connection to the Dask scheduler. The run folder holds the draws so far: "
                "continue with a new client and resume=True."
            )
        time.sleep(_POLL_SECONDS)
        if ended := list(self._unfinished()):
            self.look()
        for group, error in ended:
            self._try_again(group, error)
        is_over = not (self.running or self._waiting)
        if is_over or time.monotonic() >= self._last_look + self._interval:
            self._last_look = time.monotonic()
            self._warn_of_no_worker()
            seconds = self.seconds  # this reads the folder too
            phase = "warmup" if self.warms_up() else "sampling"
            yield from self.event(phase, seconds.phases[phase])

    def _warn_of_no_worker(self) -> None:
        is_alone = False
        with contextlib.suppress(OSError):  # of a scheduler that is gone
            is_alone = not self._client.processing()
        if not is_alone:
            self._last_worker = time.monotonic()
        elif time.monotonic() > self._last_worker + _ALONE_SECONDS:
            warn(
                f"The cluster has had no worker for {_ALONE_SECONDS:.0f} s. The run waits for one; its draws "
                f"so far are in {self._folder.path!r}."
            )

    def look(self) -> None:
        """Read the commits of the chain groups."""
        for group in self.counters:
            # The task of this group reports such an error.
            with contextlib.suppress(OSError, RunFolderError):
                if (found := self._folder.checkpoint(group)) is not None:
                    self.counters[group] = Counters.from_json(found.counters)

    def stop(self) -> bool:
        """Cancel tasks that no worker has, and wait until the others have stopped.

        Tasks that cannot be waited for stop when they see the stop file, which is kept for them.
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
                list(self._unfinished())  # not tried again, because the run is stopping anyway
        except KeyboardInterrupt:
            return True
        if not self.running:  # otherwise a task may still look for the file
            Path(self._sign).unlink(missing_ok=True)
        return False

    def _unfinished(self) -> Iterator[tuple[int, Exception | None]]:
        """Yield (number of the group, error) of attempts that ended before the group was finished.

        The error is None if the worker closed normally, or was asked to stop.
        """
        for future in [future for future in self.running if future.status != "pending"]:
            group = self.running.pop(future)
            try:
                if not future.result():
                    yield group, None
            except Exception as error:
                if _is_passing(error):
                    yield group, error
                else:
                    self.failures[group] = error

    def _try_again(self, group: int, error: Exception | None) -> None:
        reached = self.counters[group].transition
        self._in_vain[group] = 0 if reached != self._reached[group] else self._in_vain[group] + 1
        self._reached[group] = reached
        in_vain = self._in_vain[group]
        if in_vain >= _MOST_IN_VAIN:
            self.failures[group] = error or TimeoutError(
                f"Its worker ended {in_vain} times in a row before it got any further. Use a smaller "
                "commit_interval, or workers with a longer lifetime."
            )
        else:
            self.repeated[group, "worker closed" if error is None else type(error).__name__] += 1
            self.go_on([group], min(2.0**in_vain, _LONGEST_PAUSE_SECONDS))

    def notes(self) -> list[str]:
        return [
            f"The task of chains {self.plan.groups[group]} was tried again {count} times ({error})."
            for (group, error), count in self.repeated.items()
        ]


def _is_passing(error: Exception) -> bool:
    """Return whether another attempt may succeed."""
    from distributed.scheduler import KilledWorker

    return isinstance(error, (KilledWorker, CancelledError, OSError, RunLockedError))
