"""Reads what a lane has committed, at any time, without a lock: a writer is never disturbed."""

import functools
import math
import os
from dataclasses import dataclass

import numpy as np

from tfbnn.exceptions import RunFolderError
from tfbnn.storage.format import schema
from tfbnn.storage.run.checkpoint import newest_usable
from tfbnn.storage.run.segments import read_segment, segment_path


@dataclass(frozen=True)
class LaneDraws:
    """What was committed.

    Attributes:
        draws: [S, c, P]; [0, 0, 0] before the first draw.
        statistics: Dict name -> array [S, c, ...]; empty before the first draw.
        counters: Those of the checkpoint, None where there is none.
    """

    draws: np.ndarray
    statistics: dict
    counters: dict | None


def read_lane(folder, owner):
    """Reads the draws of a lane.

    Args:
        folder: Folder of the lane, which need not exist yet.
        owner: Dict that names the run and the lane.

    Raises:
        RunFolderError: When what was committed is damaged. Where only the last commit is, the one
            before it is read, with a RunFolderWarning.
    """
    found = newest_usable(folder, owner, functools.partial(_load, folder))
    return found or _lane_draws({}, None)


def _load(folder, checkpoint):
    """The draws that a checkpoint names; the memory for them is taken once."""
    arrays, start = {}, 0
    for index, digest in enumerate(checkpoint.digests):
        segment = read_segment(folder, index, digest.tobytes())
        if not arrays:
            arrays = _room(folder, checkpoint, segment)
        stop = start + int(checkpoint.lengths[index])
        for name in arrays.keys() | segment.keys():
            _copy(segment.get(name), arrays.get(name), slice(start, stop), folder)
        start = stop
    return _lane_draws(arrays, checkpoint.counters)


def _room(folder, checkpoint, first):
    """Empty arrays for all draws, refused where the files cannot hold that many."""
    count = checkpoint.num_draws
    needed = sum(count * math.prod(a.shape[1:]) * a.itemsize for a in first.values())
    paths = (segment_path(folder, index) for index in range(len(checkpoint.digests)))
    stored = sum(os.path.getsize(path) for path in paths if os.path.exists(path))
    if schema.THETA not in first or needed > stored:
        raise RunFolderError(f"{folder!r}: the segments do not hold the {count} draws committed.")
    return {name: np.empty((count, *a.shape[1:]), a.dtype) for name, a in first.items()}


def _copy(source, target, place, folder):
    expected = None if target is None else (target[place].shape, target.dtype)
    if source is None or (source.shape, source.dtype) != expected:
        raise RunFolderError(f"{folder!r}: the segments do not belong together.")
    target[place] = source


def _lane_draws(arrays, counters):
    draws = arrays.pop(schema.THETA, np.empty((0, 0, 0), np.float32))
    prefix = f"{schema.SAMPLE_STATS}/"
    statistics = {name.removeprefix(prefix): array for name, array in arrays.items()}
    return LaneDraws(draws, statistics, counters)
