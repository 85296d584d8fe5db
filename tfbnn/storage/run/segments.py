"""Segments: files with the kept draws of a chain group, which never change once written."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from tfbnn.exceptions import RunFolderError
from tfbnn.storage.format import schema
from tfbnn.storage.format.schema import FileKind
from tfbnn.storage.run.record import check_record, read_record, write_record
from tfbnn.system.arrays import Array

_NAME = re.compile(r"segment-(\d{6,})\.h5")
_Found = TypeVar("_Found")


class GroupFolder(NamedTuple):
    """Folder of a chain group, and the identity of the group.

    Attributes:
        folder: Path of the folder, which need not exist yet.
        run: Id of the run.
        number: Number of the group.
    """

    folder: str
    run: str
    number: int

    @property
    def owner(self) -> dict[str, Any]:
        """Identity of the group as written in its files."""
        return {"run": self.run, "lane": self.number}


def path_of(folder: str, index: int) -> str:
    """Return the file name of a segment."""
    return os.path.join(folder, f"segment-{index:06d}.h5")


def indices(folder: str) -> list[int]:
    """Return the indices of the segments in a folder, committed or not; none if it is missing."""
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    return sorted(int(found[1]) for found in map(_NAME.fullmatch, names) if found)


def write(group: GroupFolder, index: int, arrays: Mapping[str, Array]) -> bytes:
    """Write a segment and return its digest.

    Args:
        group: Folder of the group.
        index: Number of the segment.
        arrays: Dict name -> array [n, ...], one row per draw.
    """
    content = group.owner | {"index": index}
    return write_record(path_of(group.folder, index), schema.SEGMENT, content, arrays)


def read(folder: str, index: int, digest: bytes) -> dict[str, Array]:
    """Read the arrays of a committed segment, which must have this digest.

    Raises:
        RunFolderError: When it is missing or damaged, or has another digest.
    """
    return _committed(read_record, folder, index, digest).arrays


def check(folder: str, digests: Sequence[bytes]) -> None:
    """Check that the first segments of a folder have these digests.

    Raises:
        RunFolderError: When one is missing or damaged, or has another digest.
    """
    for index, digest in enumerate(digests):
        _committed(check_record, folder, index, digest)


def remove(folder: str, first: int) -> None:
    """Remove the segments from index `first` on, which belong to no checkpoint."""
    for index in indices(folder):
        if index >= first:
            os.unlink(path_of(folder, index))


def _committed(
    use: Callable[[str, FileKind, bytes], _Found], folder: str, index: int, digest: bytes
) -> _Found:
    path = path_of(folder, index)
    try:
        return use(path, schema.SEGMENT, digest)
    except FileNotFoundError:
        raise RunFolderError(f"{path!r} is missing. Its draws were committed.") from None
