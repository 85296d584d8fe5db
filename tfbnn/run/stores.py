"""Keep the draws of the chain groups of a run, in memory or in the run's folder.

The sink of a chain group is called after every block, so that it can commit. A store begins the run, or
continues the run of an earlier process. The folder holds everything that determines the draws. When a
run is resumed, the part that the caller chooses is compared with it. A run is therefore finished with
the settings it was begun with, or not at all.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tfbnn.exceptions import RunFolderError, RunFolderWarning
from tfbnn.run.config import Beginning, RunConfig
from tfbnn.run.counters import Clock, Counters, Seconds
from tfbnn.run.description import (
    check_same_run,
    extend_run,
    has_extent,
    make_run,
    read_beginning,
    said_end,
    take_down_end,
)
from tfbnn.run.options import FitOptions
from tfbnn.run.plan import Plan
from tfbnn.run.result import Ending, Kept, Result, gather_result
from tfbnn.system.arrays import Array
from tfbnn.system.words import warn, warn_or_print

if TYPE_CHECKING:
    from tfbnn.storage.run.checkpoint import Checkpoint
    from tfbnn.storage.run.folder import RunFolder
    from tfbnn.storage.run.group_files import GroupWriter

# A commit is made when more bytes than the first number wait, to limit memory. It takes no longer than a
# block. While the disk is full, up to the second number may wait; then the chain ends.
_MOST_WAITING_BYTES, _MOST_UNWRITTEN_BYTES = 64e6, 256e6
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
# Key of the draws among the names of statistics.
_DRAWS = "draws"
Arrays = dict[str, Array]


class Advancing(Protocol):
    """A chain group, as its sink uses it."""

    @property
    def counters(self) -> Counters: ...
    def snapshot(self) -> dict[str, Array]: ...


class _Arrays:
    """Draws and statistics of chains, in arrays that are allocated with the first draws."""

    def __init__(self, num_chains: int, num_results: int) -> None:
        self._shape = num_chains, num_results
        self._arrays: dict[str, Array] = {}
        self._making = threading.Lock()

    def put(self, chains: Sequence[int], first: int, draws: Array, statistics: Arrays) -> None:
        """Store draws [n, C, P] of some chains and their statistics, from draw number `first` on."""
        parts = {_DRAWS: draws, **statistics}
        with self._making:
            self._arrays = self._arrays or {
                name: np.empty((*self._shape, *part.shape[2:]), part.dtype)
                for name, part in parts.items()
            }
        for name, array in self._arrays.items():
            array[list(chains), first : first + len(draws)] = np.moveaxis(parts[name], 0, 1)

    def kept(self, chains: Sequence[int], num_results: int, counters: list[Counters]) -> Kept:
        """Return the first draws of some chains."""
        arrays = self._arrays
        if len(chains) < self._shape[0]:
            arrays = {name: array[list(chains)] for name, array in arrays.items()}
        arrays = {name: array[:, :num_results] for name, array in arrays.items()}
        return Kept(arrays.pop(_DRAWS, np.empty((len(chains), 0, 0))), arrays, counters)


class MemoryStore:
    """Keeps the draws of all chain groups of a run in memory; they are lost with the process.

    Attributes:
        found: Beginning of the run in a folder, or None before it has begun.
        ended: Reason why an open run has ended, to be recorded; else None.
    """

    found: Beginning | None = None
    ended: str | None = None

    def begin(self, plan: Plan, beginning: Beginning) -> None:
        """Start the run, or record a larger target."""
        self._plan = plan
        chains, parameters = beginning.starts.theta.shape
        # Draws that memory cannot hold end the run here, and not after warm-up.
        np.empty((chains, plan.num_results, parameters), np.float32)
        arrays = _Arrays(chains, plan.num_results)
        self._arrays, self._sinks = arrays, [_MemorySink(arrays, c) for c in plan.groups]

    def sink(self, group: int, clock: Clock) -> AbstractContextManager[_MemorySink]:
        """Return the sink of a chain group, for use until the end of the context.

        Args:
            group: Number of the group.
            clock: Measures the seconds of the run, which every commit records.
        """
        return nullcontext(self._sinks[group])

    def read(self, numbers: Sequence[int]) -> Kept:
        """Return the draws that some chain groups have kept."""
        counters = [self._sinks[number].counters for number in numbers]
        count = min(group.transitions["sampling"] for group in counters) // self._plan.stride
        return self._arrays.kept(self._plan.chains(numbers), count, counters)

    def seconds(self, numbers: Sequence[int]) -> Seconds:
        """Return the seconds of the run so far, from the commits of some chain groups."""
        return Seconds()

    def committed_result(self, fewest: int) -> Result | None:
        """Return the committed result, or None with fewer than `fewest` draws per chain."""
        return None

    def finished_result(self) -> Result | None:
        """Return the committed result if the run is finished, else None."""
        return None


class _MemorySink:
    """Takes the draws of one group. `checkpoint` is the commit from which it continues, or None."""

    checkpoint: Checkpoint | None = None

    def __init__(self, arrays: _Arrays, chains: list[int]) -> None:
        self._arrays, self._chains, self._num_kept = arrays, chains, 0
        self.counters = Counters.nothing(chains)

    def append(self, draws: Array, statistics: Arrays) -> None:
        """Store draws [n, C, P] and their statistics, dict name -> [n, C, ...]."""
        self._arrays.put(self._chains, self._num_kept, draws, statistics)
        self._num_kept += len(draws)

    def after_block(self, group: Advancing, phase_ended: bool) -> None:
        """Commit if a commit is due."""
        self.commit(group)

    def commit(self, group: Advancing) -> None:
        """Keep everything up to the group's last block."""
        self.counters = group.counters


class FolderStore:
    """Keeps the draws of chain groups in a run folder; otherwise as `MemoryStore`.

    Attributes besides those:
        folder: RunFolder. For a new run it exists from `begin` on.
        commit_interval: As in `fit_posterior`.
    """

    ended: str | None = None
    folder: RunFolder

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder | None,
        commit_interval: float,
        make: Callable[..., RunFolder] | None = None,
    ) -> None:
        """Make a FolderStore.

        Args:
            config: RunConfig.
            folder: RunFolder of a run that has begun, or None.
            commit_interval: As in `fit_posterior`.
            make: Function that makes the folder of a new run, as yielded by `RunFolder.reserved`.
        """
        self._definition, self._make, self.commit_interval = config, make, commit_interval
        self.found: Beginning | None = None
        if folder is not None:
            self.folder, self.found = folder, read_beginning(folder)

    def begin(self, plan: Plan, beginning: Beginning) -> None:
        if self._make is not None:
            self.folder = make_run(self._make, self._definition, beginning)
            self.found = beginning
        else:
            extend_run(self.folder, self._definition.sampling)

    @contextmanager
    def sink(self, group: int, clock: Clock) -> Iterator[_FolderSink]:
        with self.folder.writer(group) as writer:
            yield _FolderSink(writer, self.commit_interval, clock)

    def read(self, numbers: Sequence[int]) -> Kept:
        return read_groups(self.folder, numbers)

    def seconds(self, numbers: Sequence[int]) -> Seconds:
        return Seconds.committed(committed_counters(self.folder, numbers))

    def committed_result(self, fewest: int) -> Result | None:
        return None if self.found is None else committed_result(self.folder, fewest)

    def finished_result(self) -> Result | None:
        sampling = self._definition.sampling
        if sampling.until is None:
            return self.committed_result(sampling.num_results)
        if self.found is None or said_end(self.folder) is None:
            return None
        return self.committed_result(fewest=1) if has_extent(self.folder, sampling) else None


class _FolderSink:
    """Passes draws to a GroupWriter, and commits at intervals with the group's snapshot."""

    def __init__(self, writer: GroupWriter, commit_interval: float, clock: Clock) -> None:
        self._writer, self._interval, self._clock = writer, commit_interval, clock
        self._last_commit = time.monotonic()
        self._has_failed = False
        self.checkpoint = writer.checkpoint

    def append(self, draws: Array, statistics: Arrays) -> None:
        self._writer.append(draws, statistics)

    def after_block(self, group: Advancing, phase_ended: bool) -> None:
        waited = time.monotonic() - self._last_commit
        most = _MOST_UNWRITTEN_BYTES if self._has_failed else _MOST_WAITING_BYTES
        much = self._writer.waiting_bytes > most
        if not (phase_ended or waited >= self._interval or much):
            return
        try:
            self.commit(group)
        except OSError as error:
            # The end of a phase may be a check, which reads what is committed.
            is_too_much = self._writer.waiting_bytes > _MOST_UNWRITTEN_BYTES
            if phase_ended or is_too_much or error.errno not in _FULL_DISK:
                raise
            if not self._has_failed:
                warn_or_print(
                    f"Draws could not be written ({error}). The run goes on and tries again; make room.",
                    RunFolderWarning,
                )
            self._has_failed, self._last_commit = True, time.monotonic()

    def commit(self, group: Advancing) -> None:
        counters, last = group.counters, self._writer.checkpoint
        there = {"transition": 0} if last is None else last.counters
        committed = there["transition"], there.get("warmup_cut")
        if (counters.transition, counters.warmup_cut) == committed:
            return
        timed = replace(counters, seconds=asdict(self._clock.seconds))
        self._writer.commit(group.snapshot(), timed.to_json())
        self._has_failed, self._last_commit = False, time.monotonic()


# The types of stores and of their sinks.
Store = MemoryStore | FolderStore
Sink = _MemorySink | _FolderSink


def committed_counters(folder: RunFolder, numbers: Sequence[int]) -> list[Counters]:
    """Return the counters of some chain groups of the run in a folder at their last commits."""
    chains_of = read_beginning(folder).layout.groups
    found = [(number, folder.checkpoint(number)) for number in numbers]
    return [
        Counters.from_json(one.counters) if one else Counters.nothing(chains_of[number])
        for number, one in found
    ]


def read_groups(folder: RunFolder, numbers: Sequence[int] | None = None) -> Kept:
    """Return the draws that some chain groups of the run in a folder have committed, by default all."""
    numbers = range(folder.num_groups) if numbers is None else numbers
    chains_of = read_beginning(folder).layout.groups
    num_chains = sum(len(chains_of[number]) for number in numbers)
    num_results = _num_committed(folder, numbers)
    arrays, counters, first = _Arrays(num_chains, num_results), [], 0
    for index in numbers:
        # Groups are read one after the other, so that at most one is in memory twice.
        group, chains = folder.read(index), chains_of[index]
        found = group.counters
        counters.append(Counters.from_json(found) if found else Counters.nothing(chains))
        num_results = min(num_results, len(group.draws))
        if num_results:
            statistics = {name: part[:num_results] for name, part in group.statistics.items()}
            positions = range(first, first + len(chains))
            arrays.put(positions, 0, group.draws[:num_results], statistics)
        first += len(chains)
    return arrays.kept(range(num_chains), num_results, counters)


def _num_committed(folder: RunFolder, numbers: Sequence[int]) -> int:
    """Return the number of draws that every chain of some chain groups has committed."""
    checkpoints = [folder.checkpoint(number) for number in numbers]
    return min(0 if found is None else found.num_draws for found in checkpoints)


def committed_result(folder: RunFolder, fewest: int) -> Result | None:
    """Return the committed result of a run, or None with fewer than `fewest` draws per chain."""
    if _num_committed(folder, range(folder.num_groups)) < fewest:
        return None
    kept = read_groups(folder)
    if kept.draws.shape[1] < fewest:
        return None  # the last commit is damaged
    seconds = Seconds.committed(kept.counters)
    ending = Ending(ended=said_end(folder))
    begun = read_beginning(folder)
    return gather_result(kept, begun.start_log_prob, seconds, ending, begun.starts.superchains)


@contextmanager
def open_store(config: RunConfig, options: FitOptions) -> Iterator[Store]:
    """Yield the store of a run.

    If the folder holds no run yet, no other process can begin one there while the store is open.

    Raises:
        RunFolderError: When the folder holds a run and `resume` is not set, when that run was begun with
            other data or settings, and when the folder holds other files.
        RunLockedError: When another process is about to begin a run there.
        OSError: When the folder cannot be made.
    """
    path, make = options.output, None
    if path is None:
        yield MemoryStore()
        return
    from tfbnn.storage.run.folder import RunFolder

    with ExitStack() as stack:
        folder = RunFolder.find(path)
        if folder is None:
            make = stack.enter_context(RunFolder.reserved(path))
        elif not options.resume:
            raise RunFolderError(
                f"{path!r} holds a run already. Pass resume=True (--resume) to go on with it, or "
                "another folder."
            )
        else:
            check_same_run(folder, config)
        store = FolderStore(config, folder, options.commit_interval, make)
        yield store
    if store.ended is not None:  # the folder is not reserved any more
        try:
            take_down_end(store.folder, store.ended)
        except (OSError, RunFolderError) as error:  # a resumed run finds the reason again
            warn(
                f"The run is complete, but its folder does not say why it ended: {error}. Resume it to record this.",
                RunFolderWarning,
            )
