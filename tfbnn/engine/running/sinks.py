"""Where the kept draws of a lane go: into memory, or into the lane's part of a run folder.

Both are told of every block that has ended, so that the second can commit where it may.
"""

import time

import numpy as np

# A commit takes no longer than a block; memory, not loss, asks for one when so many bytes wait.
_MOST_WAITING_BYTES = 64e6


class MemorySink:
    """Puts the draws of some chains into arrays that all lanes of a run share."""

    def __init__(self, chains, draws, statistics):
        """
        Args:
            chains: Indices of the chains.
            draws: [num_chains, num_results, P].
            statistics: Dict name -> [num_chains, num_results, ...].
        """
        self._chains, self._draws, self._statistics = chains, draws, statistics
        self._num_kept = 0

    def append(self, draws, statistics):
        """Takes draws [n, C, P] and their statistics, dict name -> [n, C, ...]."""
        place = slice(self._num_kept, self._num_kept + len(draws))
        self._draws[self._chains, place] = np.moveaxis(draws, 0, 1)
        for name, values in statistics.items():
            self._statistics[name][self._chains, place] = np.moveaxis(values, 0, 1)
        self._num_kept += len(draws)

    def after_block(self, lane, phase_ended):
        """Nothing is to be done."""

    def commit(self, lane):
        """Nothing outlives the process."""


class FolderSink:
    """Hands draws to a LaneWriter and commits, with the lane's snapshot, now and then."""

    def __init__(self, writer, commit_interval, seconds):
        """
        Args:
            writer: `tfbnn.storage.LaneWriter`.
            commit_interval: Seconds after a commit from which the next block ends with another.
            seconds: Dict phase -> wall-clock seconds spent in it, kept up to date by the run; it is
                written with every commit.
        """
        self._writer, self._interval, self._seconds = writer, commit_interval, seconds
        self._last_commit = time.monotonic()
        checkpoint = writer.checkpoint
        self._committed = 0 if checkpoint is None else checkpoint.counters["transition"]

    def append(self, draws, statistics):
        """Takes draws [n, C, P] and their statistics, dict name -> [n, C, ...]."""
        self._writer.append(draws, statistics)

    def after_block(self, lane, phase_ended):
        """Commits at the end of a phase, after the interval, or when much is waiting."""
        waited = time.monotonic() - self._last_commit
        much = self._writer.waiting_bytes > _MOST_WAITING_BYTES
        if phase_ended or waited >= self._interval or much:
            self.commit(lane)

    def commit(self, lane):
        """Puts everything up to the lane's last block on the disk."""
        if lane.transition == self._committed:
            return
        arrays, counters = lane.snapshot()
        self._writer.commit(arrays, counters | {"seconds": dict(self._seconds)})
        self._committed = lane.transition
        self._last_commit = time.monotonic()
