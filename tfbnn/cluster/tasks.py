"""Tasks of a Dask worker. Nothing but paths, numbers and short texts travels in the task graph.

Every task may be run several times, also at the same time: the lease of its folder lets one in, the
others wait until it has finished or died.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tfbnn.exceptions import RunFolderError, RunLockedError
from tfbnn.system import words

if TYPE_CHECKING:
    from tfbnn.storage import RunFolder

_LEASE_SECONDS = 1.0
# Whether the worker is closing or the task was asked to stop; whatever it is told.
Stopped = Callable[..., bool]


def required(name: str) -> ModuleType:
    """The module of Dask of that name.

    Raises:
        ImportError: When Dask is not installed.
    """
    return words.required(name, "tfbnn.cluster needs Dask", "cluster")


def environment() -> dict[str, Any]:
    """`tfbnn.engine.basis.seeds.describe_environment` of the worker."""
    from tfbnn.engine.basis.compile import limit_threads
    from tfbnn.engine.basis.seeds import describe_environment

    limit_threads()
    return describe_environment()


def advance(
    path: str, run_id: str, group: int, commit_interval: float, num_results: int | None, stop: str
) -> bool:
    """Advances a chain group of a run, see `tfbnn.engine.running.advance`.

    Args:
        path: The run folder.
        run_id: Its identity.
        group: Number of the group.
        commit_interval: As in `fit_posterior`.
        num_results: Draws per chain to go on to; None: as many as the run may have.
        stop: File whose existence asks the task to stop.

    Returns:
        Whether the group is there; it is not when the worker is closing or the task was stopped.
    """
    from tfbnn.engine.basis.compile import limit_threads

    limit_threads()
    from tfbnn.engine.running.advance import advance_group

    def attempt(stopped: Stopped) -> bool:
        _opened(path, run_id)
        return advance_group(
            path, group, commit_interval=commit_interval, notify=stopped, num_results=num_results
        )

    return _when_free(attempt, stop)


def _when_free(attempt: Callable[[Stopped], bool], stop: str) -> bool:
    """attempt(stopped) as soon as no other task has the lease, or False when stopped before."""
    from distributed import Status, get_worker

    worker = get_worker()

    def stopped(event: object = None) -> bool:
        # A worker closes at the end of its lifetime and when it loses the scheduler.
        return os.path.exists(stop) or worker.status not in (Status.running, Status.paused)

    while not stopped():
        try:
            return attempt(stopped)
        except RunLockedError:
            time.sleep(_LEASE_SECONDS)
    return False


def _opened(path: str, run_id: str) -> RunFolder:
    """The RunFolder at `path`, which must be the one that the caller sees."""
    from tfbnn.storage import RunFolder

    try:
        folder = RunFolder.open(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error} A worker looked for it: choose an output that all workers share."
        ) from error
    if folder.run_id != run_id:
        raise RunFolderError(
            f"{path!r} holds another run than its caller sees. Choose an output that all workers "
            "share, and one run for each."
        )
    return folder
