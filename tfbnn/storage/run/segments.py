"""Segments: the kept draws of a lane, in files that are never changed once they are written."""

import os
import re

from tfbnn.exceptions import RunFolderError
from tfbnn.storage.format import schema
from tfbnn.storage.run.record import check_record, read_record, write_record

_NAME = re.compile(r"segment-(\d{6,})\.h5")


def segment_path(folder, index):
    """File name of a segment."""
    return os.path.join(folder, f"segment-{index:06d}.h5")


def segment_indices(folder):
    """Indices of the segments in a folder, committed or not; none where there is no folder."""
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    return sorted(int(found[1]) for found in map(_NAME.fullmatch, names) if found)


def write_segment(folder, owner, index, arrays):
    """Writes a segment and returns its digest.

    Args:
        folder: Folder of the lane.
        owner: Dict that names the run and the lane.
        index: Its number.
        arrays: Dict name -> array [n, ...], one row per draw.
    """
    return write_record(
        segment_path(folder, index), schema.SEGMENT, {**owner, "index": index}, arrays
    )


def read_segment(folder, index, digest):
    """The arrays of the committed segment of this digest.

    Raises:
        RunFolderError: When it is missing, damaged or another one.
    """
    return _committed(read_record, folder, index, digest).arrays


def check_segments(folder, digests):
    """Refuses segments that are not those of the digests, in this order.

    Raises:
        RunFolderError: When one is missing, damaged or another one.
    """
    for index, digest in enumerate(digests):
        _committed(check_record, folder, index, digest)


def remove_segments(folder, first):
    """Removes the segments from `first` on, which no checkpoint names."""
    for index in segment_indices(folder):
        if index >= first:
            os.unlink(segment_path(folder, index))


def _committed(use, folder, index, digest):
    path = segment_path(folder, index)
    try:
        return use(path, schema.SEGMENT, digest)
    except FileNotFoundError:
        raise RunFolderError(f"{path!r} is missing. Its draws were committed.") from None
