"""Segments: the kept draws of a chain group, in files that are never changed once they are written."""

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
    """Place of a chain group.

    Attributes:
        folder: The folder, which need not exist yet.
        run: The id of the run.
        number: The group's.
    """

    folder: str
    run: str
    number: int

    @property
    def owner(self) -> dict[str, Any]:
        """Identity that its files carry."""
        return {"run": self.run, "lane": self.number}


def path_of(folder: str, index: int) -> str:
    """File name of a segment."""
    return os.path.join(folder, f"segment-{index:06d}.h5")


def indices(folder: str) -> list[int]:
    """Return indices of the segments in a folder, committed or not; none where there is no folder."""
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    return sorted(int(found[1]) for found in map(_NAME.fullmatch, names) if found)


def write(place: GroupFolder, index: int, arrays: Mapping[str, Array]) -> bytes:
    """Write a segment and return its digest.

    Args:
        place: The group.
        index: The segment's number.
        arrays: Dict name -> array [n, ...], one row per draw.
    """
    content = place.owner | {"index": index}
    return write_record(path_of(place.folder, index), schema.SEGMENT, content, arrays)


def read(folder: str, index: int, digest: bytes) -> dict[str, Array]:
    """Return the arrays of the committed segment of this digest.

    Raises:
        RunFolderError: When it is missing, damaged or another one.
    """
    return _committed(read_record, folder, index, digest).arrays


def check(folder: str, digests: Sequence[bytes]) -> None:
    """Refuse segments that are not those of the digests, in this order.

    Raises:
        RunFolderError: When one is missing, damaged or another one.
    """
    for index, digest in enumerate(digests):
        _committed(check_record, folder, index, digest)


def remove(folder: str, first: int) -> None:
    """Remove the segments from `first` on, which no checkpoint names."""
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
