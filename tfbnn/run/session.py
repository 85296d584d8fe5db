"""What an earlier process has left of a run, and how this one begins it or goes on with it.

Everything that decides the draws is in the folder, and the part that a caller chooses is compared
when a run goes on, so that a run is finished as it was begun or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tfbnn.exceptions import RunFolderError
from tfbnn.run.definition import Beginning, RunDefinition
from tfbnn.run.description import (
    check_same_run,
    extend_run,
    make_run,
    read_beginning,
    take_down_end,
)
from tfbnn.run.options import FitOptions, Sampling
from tfbnn.run.plan import Plan
from tfbnn.run.result import SamplingResult
from tfbnn.run.stores import (
    FolderStore,
    MemoryStore,
    committed_result,
    finished_result,
)
from tfbnn.system.atomic import StrPath

if TYPE_CHECKING:
    from tfbnn.storage import RunFolder


class MemorySession:
    """A run whose draws stay in the memory of this process.

    Attributes:
        found: How an earlier process began the run, or None where this one is to begin it.
        ended: Why the run has ended though it might go on, in words, to be taken down; else None.
    """

    found = None
    ended: str | None = None

    def begin(self, plan: Plan, beginning: Beginning) -> MemoryStore:
        """Begins the run, or takes down that it is to have more results."""
        del beginning
        return MemoryStore(plan)

    def committed_result(self, fewest: int) -> SamplingResult | None:
        """What is committed, or None with fewer than `fewest` draws per chain."""
        del fewest
        return None

    def finished_result(self, sampling: Sampling) -> SamplingResult | None:
        """What is committed, if that is all that the run is to have."""
        del sampling
        return None


class FolderSession:
    """A run in a folder, made when it begins or there already; otherwise as `MemorySession`."""

    def __init__(
        self,
        options: FitOptions,
        folder: RunFolder | None,
        begin: Callable[[Beginning], RunFolder],
    ) -> None:
        """
        Args:
            options: Those of the fit.
            folder: RunFolder of a run that has begun, or None.
            begin: Makes the folder of one that has not, or extends it, and returns it.
        """
        self.ended = MemorySession.ended
        self._folder, self._begin = folder, begin
        self._commit_interval = options.commit_interval
        self.found = None if folder is None else read_beginning(folder)

    def begin(self, plan: Plan, beginning: Beginning) -> FolderStore:
        del plan
        self._folder = folder = self._begin(beginning)
        return FolderStore(folder, self._commit_interval)

    def take_down_end(self) -> None:
        """Takes down that the run has ended, where it has; the folder must not be reserved any more."""
        if self.ended is not None and self._folder is not None:
            take_down_end(self._folder, self.ended)

    def committed_result(self, fewest: int) -> SamplingResult | None:
        return None if self._folder is None else committed_result(self._folder, fewest)

    def finished_result(self, sampling: Sampling) -> SamplingResult | None:
        return None if self._folder is None else finished_result(self._folder, sampling)


Session = MemorySession | FolderSession


@contextmanager
def opened_session(definition: RunDefinition, options: FitOptions) -> Iterator[Session]:
    """Yields the Session of a fit in this process.

    While it is open, no other process begins a run in a folder where this one has not begun yet.

    Raises:
        RunFolderError: When the folder holds a run and this is not to go on with it, or when it was
            begun with other data or settings; and when it holds something else.
        RunLockedError: When another process is about to begin a run there.
        OSError: When the folder cannot be made.
    """
    from tfbnn.storage import RunFolder

    path = options.output
    if path is None:
        yield MemorySession()
        return
    with ExitStack() as stack:
        folder = find_run(path, definition, options.resume)
        if folder is not None:
            go_on = partial(extend_run, folder, definition.sampling)
            session = FolderSession(options, folder, lambda beginning: go_on())
        else:
            make = stack.enter_context(RunFolder.reserved(path))
            session = FolderSession(options, None, partial(make_run, make, definition))
        yield session
    session.take_down_end()


def find_run(path: StrPath, definition: RunDefinition, resume: bool) -> RunFolder | None:
    """The run in a folder that a fit is to go on with, or None where it is to begin one.

    Raises:
        RunFolderError: As in `opened_session`.
    """
    from tfbnn.storage import RunFolder

    folder = RunFolder.find(path)
    if folder is not None and not resume:
        raise RunFolderError(
            f"{path!r} holds a run already. Pass resume=True (--resume) to go on with it, or "
            "another folder."
        )
    if folder is not None:
        check_same_run(folder, definition)
    return folder
