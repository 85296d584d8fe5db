"""Draws and state of a chain group, which one process writes and commits, and any process may read.

Readers take no lock, so that they never disturb the writer.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfbnn.exceptions import RunFolderError
from tfbnn.storage.format import schema
from tfbnn.storage.run import segments
from tfbnn.storage.run.checkpoint import Checkpoint, newest_usable, write_checkpoint
from tfbnn.storage.run.lease import Lease
from tfbnn.storage.run.segments import GroupFolder
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import remove_abandoned

_PREFIX = f"{schema.SAMPLE_STATS}/"
# State of a chain group before its first commit.
_NO_DIGESTS = np.empty((0, schema.DIGEST_BYTES), np.uint8)
_NOTHING = Checkpoint({}, {}, generation=0, digests=_NO_DIGESTS, lengths=np.empty(0, np.int64))


class GroupWriter:
    """Exclusive writer of a chain group, created by `RunFolder.writer`.

    Draws are kept in memory until they are committed, so that a failed commit (such as on a full
    disk) can be repeated.

    Attributes:
        checkpoint: The last commit, from which the run continues; None before the first commit.
        waiting_bytes: Size of the draws and statistics that wait for the next commit.
    """

    def __init__(self, group: GroupFolder, lease: Lease):
        """Create the writer, and remove files that were not committed.

        Args:
            group: Folder of the group.
            lease: Lease of this folder, held by this process.
        """
        self._group, self._lease = group, lease
        self._waiting: list[dict[str, Array]] = []
        self.waiting_bytes = 0
        self.checkpoint = newest_usable(group, self._checked)
        last = self.checkpoint or _NOTHING
        remove_abandoned(group.folder)  # and segments beyond the last commit
        segments.remove(group.folder, len(last.lengths))

    def append(self, draws: Array, statistics: Mapping[str, Array]) -> None:
        """Append draws for the next commit; they are copied.

        Args:
            draws: Draws [n, c, P], float32 or float64.
            statistics: Dict name -> array [n, c, ...]. Names, dtypes and other dimensions are the
                same in every call.
        """
        arrays = {schema.THETA: np.array(draws)}
        arrays |= {f"{_PREFIX}{name}": np.array(array) for name, array in statistics.items()}
        if len(arrays[schema.THETA]):
            self._waiting.append(arrays)
            self.waiting_bytes += sum(array.nbytes for array in arrays.values())

    def commit(self, arrays: Mapping[str, Array], counters: dict[str, Any]) -> None:
        """Write the waiting draws, and then a checkpoint with the state that belongs to them.

        Args:
            arrays: Dict name -> array of float32, float64, int32, int64, uint8 or bool.
            counters: JSON object of texts, integers, finite numbers, None, lists and objects; keys
                are texts.

        Raises:
            RunLockedError: When the lease is lost.
            RunFolderError: When the folder was moved or removed.
            TypeError, ValueError: For arrays or counters that cannot be written.
            OSError: When the files cannot be written; the last commit stays intact.
        """
        self._lease.check()
        last = self.checkpoint or _NOTHING
        digests, lengths = last.digests, last.lengths
        try:
            if self._waiting:
                segment = {
                    name: np.concatenate([part[name] for part in self._waiting])
                    for name in self._waiting[0]
                }
                digest = segments.write(self._group, len(lengths), segment)
                digests = np.concatenate([digests, [np.frombuffer(digest, np.uint8)]])
                lengths = np.append(lengths, len(segment[schema.THETA]))
            kept = {name: np.array(array) for name, array in arrays.items()}
            new = Checkpoint(kept, counters, last.generation + 1, digests, lengths)
            write_checkpoint(self._group, new)
        except FileNotFoundError:
            self._lease.check()  # explains the error if the folder was removed meanwhile
            raise
        self.checkpoint = new
        self._waiting, self.waiting_bytes = [], 0

    def _checked(self, checkpoint: Checkpoint) -> Checkpoint:
        segments.check(self._group.folder, [digest.tobytes() for digest in checkpoint.digests])
        return checkpoint


class GroupDraws(NamedTuple):
    """Committed draws of a chain group.

    Attributes:
        draws: Draws [S, c, P]; [0, 0, 0] before the first draw.
        statistics: Dict name -> array [S, c, ...]; empty before the first draw.
        counters: Counters of the checkpoint; None without a checkpoint.
    """

    draws: Array
    statistics: dict[str, Array]
    counters: dict[str, Any] | None


def read_group(group: GroupFolder) -> GroupDraws:
    """Read the committed draws of a chain group, whose folder need not exist yet.

    Raises:
        RunFolderError: When the committed files are damaged. If only the last commit is damaged,
            the one before it is read, with a RunFolderWarning.
    """
    return newest_usable(group, functools.partial(_load, group.folder)) or _group_draws({}, None)


def _load(folder: str, checkpoint: Checkpoint) -> GroupDraws:
    """Read and join the segments of a checkpoint."""
    digests = enumerate(checkpoint.digests)
    parts = [segments.read(folder, index, digest.tobytes()) for index, digest in digests]
    for part, length in zip(parts, checkpoint.lengths.tolist()):
        expected = {name: ((length, *a.shape[1:]), a.dtype) for name, a in parts[0].items()}
        found = {name: (array.shape, array.dtype) for name, array in part.items()}
        if found != expected or schema.THETA not in part:
            raise RunFolderError(f"{folder!r}: the segments do not hold the draws committed.")
    names = parts[0] if parts else {}
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return _group_draws(arrays, checkpoint.counters)


def _group_draws(arrays: dict[str, Array], counters: dict[str, Any] | None) -> GroupDraws:
    draws = arrays.pop(schema.THETA, np.empty((0, 0, 0), np.float32))
    statistics = {name.removeprefix(_PREFIX): array for name, array in arrays.items()}
    return GroupDraws(draws, statistics, counters)
