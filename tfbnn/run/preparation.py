"""The search for the starts of a run, committed in its folder before there is a run in it.

A run folder of its own lies there meanwhile, with the definition of the run and one lane: the
search, whose commits are those of a lane without draws.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tfbnn.exceptions import RunFolderError
from tfbnn.run.definition import RunDefinition
from tfbnn.run.description import (
    check_same_run,
    definition_to_arrays,
    definition_to_json,
    extend_run,
)
from tfbnn.system.arrays import Array
from tfbnn.system.paths import StrPath

if TYPE_CHECKING:
    from tfbnn.storage import LaneWriter, RunFolder


class Stand(NamedTuple):
    """How far the search is.

    Attributes:
        content: JSON object, with the name of its "stage".
        arrays: Dict name -> array.
    """

    content: dict[str, Any]
    arrays: dict[str, Array]


class Search:
    """What commits a search: nothing, of a run in memory.

    Attributes:
        found: The Stand of an earlier process, or None.
    """

    found: Stand | None = None

    def found_in(self, stage: str) -> Stand | None:
        """The Stand of an earlier process, where it is in this stage."""
        is_there = self.found is not None and self.found.content["stage"] == stage
        return self.found if is_there else None

    def keep(self, stand: Callable[[], Stand], now: bool = False) -> None:
        """Commits where it is time to, or `now`; `stand` says what."""


class FolderSearch(Search):
    """Commits a search with the writer of its lane."""

    def __init__(self, writer: Callable[[], LaneWriter], interval: float, found: Any = None):
        """
        Args:
            writer: Gives the LaneWriter, at the first commit.
            interval: Seconds between commits, as `commit_interval` of `fit_posterior`.
            found: The Checkpoint to go on from, or None.
        """
        self._writer, self._interval, self._last = writer, interval, time.monotonic()
        self.found = found and Stand(found.counters, found.arrays)

    def keep(self, stand: Callable[[], Stand], now: bool = False) -> None:
        if now or time.monotonic() - self._last >= self._interval:
            content, arrays = stand()
            self._writer().commit(arrays, content)
            self._last = time.monotonic()


@contextmanager
def opened_search(path: StrPath, definition: RunDefinition, options: Any) -> Iterator[Search]:
    """Yields the Search of a fit in this process, whose first commit makes the folder for it.

    Args:
        path: The run folder, which this process has reserved.
        definition: RunDefinition.
        options: FitOptions.

    Raises:
        RunFolderError, RunLockedError, OSError: As `opened_session`.
    """
    with ExitStack() as stack:
        opened: list[LaneWriter] = []

        def writer() -> LaneWriter:
            if not opened:
                folder = found or make_preparation(path, definition)
                opened.append(stack.enter_context(folder.writer(0)))
            return opened[0]

        found = find_preparation(path, definition, options.resume)
        checkpoint = None if found is None else writer().checkpoint
        yield FolderSearch(writer, options.commit_interval, checkpoint)


def find_preparation(path: StrPath, definition: RunDefinition, resume: bool) -> RunFolder | None:
    """The RunFolder of a search that a fit is to go on with, or None where it is to begin one.

    Raises:
        RunFolderError: When there is one and this is not to go on with it, or it was begun with
            other data or settings.
    """
    folder = preparation_in(path)
    if folder is None:
        return None
    if not resume:
        raise RunFolderError(
            f"{path!r} holds a run that was being prepared. Pass resume=True (--resume) to go on "
            "with it, or another folder."
        )
    check_same_run(folder, definition)
    return extend_run(folder, definition.sampling)


def preparation_in(path: StrPath) -> RunFolder | None:
    """The RunFolder of a search for the starts of a run that has not begun, or None."""
    from tfbnn.storage import RunFolder

    return RunFolder.find(_place(path)) if RunFolder.find(path) is None else None


def has_begun(path: StrPath) -> bool:
    """Whether a folder holds a run, sound or damaged, or the search for the starts of one."""
    from tfbnn.storage import RunFolder

    return RunFolder.around(path) is not None or os.path.isdir(_place(path))


def make_preparation(path: StrPath, definition: RunDefinition) -> RunFolder:
    """Makes the RunFolder for a search."""
    from tfbnn.storage import RunFolder

    content, arrays = definition_to_json(definition), definition_to_arrays(definition)
    return RunFolder.create(_place(path), content, arrays, 1)


def remove_preparation(path: StrPath) -> None:
    """Removes what is not needed any more once the run has begun."""
    shutil.rmtree(_place(path), ignore_errors=True)


def _place(path: StrPath) -> str:
    from tfbnn.storage.run.folder import PREPARATION

    return os.path.join(os.path.realpath(path), PREPARATION)
