"""Writes the draws of a lane as they come, and commits them with the state of the chains."""

import numpy as np

from tfbnn.storage.format import schema
from tfbnn.storage.run.checkpoint import Checkpoint, newest_usable, write_checkpoint
from tfbnn.storage.run.segments import (
    check_segments,
    read_segment,
    remove_segments,
    write_segment,
)
from tfbnn.system.atomic import remove_abandoned


class LaneWriter:
    """The one writer of a lane. `RunFolder.writer` makes it.

    A commit that fails (a full disk, say) can be repeated: draws wait until they are committed.

    Attributes:
        checkpoint: The last commit, None where there is none: where to go on.
        waiting_bytes: Size of the draws and statistics that wait for the next commit.
    """

    def __init__(self, folder, owner, lease):
        """
        Args:
            folder: Folder of the lane.
            owner: Dict that names the run and the lane.
            lease: The lease of the folder, which this process holds.
        """
        self._folder, self._owner, self._lease = folder, owner, lease
        self._waiting, self.waiting_bytes = [], 0
        self.checkpoint = newest_usable(folder, owner, self._checked)
        self._remove_what_was_not_committed()
        self._kept_rows = self._committed_rows()

    def append(self, draws, statistics):
        """Takes draws that the next commit will write; they are copied.

        Args:
            draws: [n, c, P], float32 or float64.
            statistics: Dict name -> array [n, c, ...], the same names every time.

        Raises:
            ValueError: When they do not fit each other or those before.
        """
        prefix = schema.SAMPLE_STATS
        arrays = {schema.THETA: draws}
        arrays |= {f"{prefix}/{name}": array for name, array in statistics.items()}
        arrays = {name: np.array(array) for name, array in arrays.items()}
        _check_rows(arrays)
        rows = _rows(arrays)
        if self._kept_rows not in (None, rows):
            raise ValueError(
                f"draws and statistics must be like those before, {self._kept_rows}, found {rows}."
            )
        if len(arrays[schema.THETA]):
            self._kept_rows = rows
            self._waiting.append(arrays)
            self.waiting_bytes += sum(array.nbytes for array in arrays.values())

    def commit(self, arrays, counters):
        """Writes the draws that wait, then the state that belongs to them.

        Args:
            arrays: Dict name -> array of float32, float64, int32, int64, uint8 or bool.
            counters: JSON object: texts, whole and finite numbers, None, lists, objects; keys are
                texts.

        Raises:
            RunLockedError: When the lease is lost.
            TypeError, ValueError: For arrays or counters that cannot be written.
            OSError: When the files cannot be written; the last commit is intact.
        """
        self._lease.check()
        last = self.checkpoint or Checkpoint({}, {}, generation=0)
        digests, lengths = last.digests, last.lengths
        if self._waiting:
            segment = {
                name: np.concatenate([part[name] for part in self._waiting])
                for name in self._waiting[0]
            }
            digest = write_segment(self._folder, self._owner, len(lengths), segment)
            digests = np.concatenate([digests, [np.frombuffer(digest, np.uint8)]])
            lengths = np.append(lengths, len(segment[schema.THETA]))
        kept = {name: np.array(array) for name, array in arrays.items()}
        new = Checkpoint(kept, counters, last.generation + 1, digests, lengths)
        write_checkpoint(self._folder, self._owner, new)
        self.checkpoint = new
        self._waiting, self.waiting_bytes = [], 0

    def _checked(self, checkpoint):
        check_segments(self._folder, [digest.tobytes() for digest in checkpoint.digests])
        return checkpoint

    def _committed_rows(self):
        """What `_rows` says of the committed draws, None where there are none."""
        if self.checkpoint is None or not self.checkpoint.num_draws:
            return None
        return _rows(read_segment(self._folder, 0, self.checkpoint.digests[0].tobytes()))

    def _remove_what_was_not_committed(self):
        """Removes temporary files, and segments beyond the last commit."""
        remove_abandoned(self._folder)
        first = 0 if self.checkpoint is None else len(self.checkpoint.lengths)
        remove_segments(self._folder, first)


def _check_rows(arrays):
    shape, dtype = arrays[schema.THETA].shape, arrays[schema.THETA].dtype
    if len(shape) != 3 or dtype not in (np.float32, np.float64):
        raise ValueError(
            f"draws must be float32 or float64 of shape [n, chains, parameters], found {dtype}, "
            f"{list(shape)}."
        )
    for name, array in arrays.items():
        if array.shape[:2] != shape[:2]:
            raise ValueError(f"{name} must begin with {shape[:2]}, found {list(array.shape)}.")


def _rows(arrays):
    """What must be the same in all draws: dict name -> (shape without draws, dtype)."""
    return {name: (array.shape[1:], array.dtype.str) for name, array in arrays.items()}
