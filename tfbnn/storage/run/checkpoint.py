"""Checkpoints: the state of a chain group, and the segments that hold its draws.

Two generations are kept. A new checkpoint replaces the one before the last. Its atomic rename is
the commit.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tfbnn.exceptions import RunFolderError, RunFolderWarning
from tfbnn.storage.format import schema
from tfbnn.storage.run import segments
from tfbnn.storage.run.record import read_record, write_record
from tfbnn.storage.run.segments import GroupFolder
from tfbnn.system.arrays import Array
from tfbnn.system.words import warn

_Found = TypeVar("_Found")

CHECKPOINT_NAMES = ("checkpoint-a.h5", "checkpoint-b.h5")


class Checkpoint(NamedTuple):
    """Commit of a chain group.

    Attributes:
        arrays: Arrays of the caller, dict name -> array.
        counters: JSON object of the caller.
        generation: Number of the commit, from 1.
        digests: SHA-256 of each committed segment [n, 32], uint8.
        lengths: Number of draws in each segment [n], int64.
    """

    arrays: dict[str, Array]
    counters: dict[str, Any]
    generation: int
    digests: Array
    lengths: Array

    @property
    def num_draws(self) -> int:
        """Number of draws committed so far, per chain."""
        return int(self.lengths.sum())


def write_checkpoint(group: GroupFolder, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, which readers and the next writer find once this returns."""
    content = group.owner | {"generation": checkpoint.generation, "counters": checkpoint.counters}
    state = {f"{schema.STATE}/{name}": array for name, array in checkpoint.arrays.items()}
    arrays = {schema.DIGESTS: checkpoint.digests, schema.LENGTHS: checkpoint.lengths, **state}
    name = CHECKPOINT_NAMES[checkpoint.generation % 2]
    write_record(os.path.join(group.folder, name), schema.CHECKPOINT, content, arrays)


def newest_usable(group: GroupFolder, use: Callable[[Checkpoint], _Found]) -> _Found | None:
    """Apply `use` to the newest checkpoint that is intact.

    Args:
        group: Folder of the group.
        use: Function of a Checkpoint; it raises RunFolderError for a checkpoint that it cannot use.

    Returns:
        Result of `use`, or None before the first commit.

    Raises:
        RunFolderError: When no checkpoint can be used.
    """
    # Listed before the checkpoints are read: a second segment means that the first was committed.
    num_segments = len(segments.indices(group.folder))
    found: list[Checkpoint] = []
    faults: list[RunFolderError] = []
    for name in CHECKPOINT_NAMES:
        try:
            found.append(_read(os.path.join(group.folder, name), group.owner))
        except FileNotFoundError:
            continue
        except RunFolderError as error:
            faults.append(error)
    for checkpoint in sorted(found, key=lambda one: one.generation, reverse=True):
        try:
            result = use(checkpoint)
        except RunFolderError as error:
            faults.append(error)
            continue
        if faults:
            warn(
                f"{group.folder!r}: commit {checkpoint.generation} with {checkpoint.num_draws} draws "
                f"is used; later ones, if any, are lost: {faults[0]}",
                RunFolderWarning,
            )
        return result
    if faults or num_segments > 1:
        fault, *_ = *faults, f"there are {num_segments} segments and no checkpoint."
        raise RunFolderError(
            f"{group.folder!r} has no commit that can be used: {fault} Restore the folder from a "
            "copy, or delete it to start this part of the run anew."
        )
    return None


def _read(path: str, owner: dict[str, Any]) -> Checkpoint:
    content, arrays = read_record(path, schema.CHECKPOINT)
    other = {name: content.pop(name, None) for name in owner}
    if other != owner:
        raise RunFolderError(f"{path!r} belongs to another run or chain group: {other!r:.200}.")
    prefix = f"{schema.STATE}/"
    try:
        checkpoint = Checkpoint(
            digests=arrays.pop(schema.DIGESTS),
            lengths=arrays.pop(schema.LENGTHS),
            arrays={name.removeprefix(prefix): array for name, array in arrays.items()},
            **content,
        )
    except (KeyError, TypeError) as error:
        raise RunFolderError(f"{path!r} has entries that are unknown or missing.") from error
    sound = (
        type(checkpoint.generation) is int
        and isinstance(checkpoint.counters, dict)
        and checkpoint.lengths.dtype == np.int64
        and checkpoint.lengths.ndim == 1
        and checkpoint.lengths.min(initial=1) > 0
        and checkpoint.digests.dtype == np.uint8
        and checkpoint.digests.shape == (len(checkpoint.lengths), schema.DIGEST_BYTES)
    )
    if not sound:
        raise RunFolderError(f"{path!r} contradicts itself.")
    return checkpoint
