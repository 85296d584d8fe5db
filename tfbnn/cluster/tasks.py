"""Tasks of a Dask worker. The task graph contains only paths, numbers and short texts.

A task may be run several times, even at the same time. The lease of its folder admits one of them; the
others wait until it has finished or died.
"""

import os
import time
from typing import Any

from tfbnn.exceptions import RunFolderError, RunLockedError

_LEASE_SECONDS = 1.0


def environment() -> dict[str, Any]:
    """Return `tfbnn.engine.basis.seeds.describe_environment` of the worker."""
    from tfbnn.engine.basis.compile import limit_threads
    from tfbnn.engine.basis.seeds import describe_environment

    limit_threads()
    return describe_environment()


def advance(
    path: str, run_id: str, group: int, commit_interval: float, num_results: int, stop: str
) -> bool:
    """Advance a chain group of a run once no other task holds its lease, see `advance_group`.

    Args:
        path: The run folder.
        run_id: Its identity.
        group: Number of the group.
        commit_interval: As in `fit_posterior`.
        num_results: Draws per chain at which to end.
        stop: File whose existence asks the task to stop.

    Returns:
        Whether the group reached this number. False if the worker is closing or the task was stopped.
    """
    from distributed import Status, get_worker

    from tfbnn.engine.basis.compile import limit_threads

    limit_threads()
    from tfbnn.engine.running.advance import advance_group

    worker = get_worker()

    def stopped(event: object = None) -> bool:
        # A worker closes at the end of its lifetime and when it loses the scheduler.
        return os.path.exists(stop) or worker.status not in (Status.running, Status.paused)

    while not stopped():
        try:
            _check_run(path, run_id)
            return advance_group(
                path,
                group,
                commit_interval=commit_interval,
                notify=stopped,
                num_results=num_results,
            )
        except RunLockedError:  # another task has the lease
            time.sleep(_LEASE_SECONDS)
    return False


def _check_run(path: str, run_id: str) -> None:
    """Check that the folder at `path` holds the run of the client."""
    from tfbnn.storage.run.folder import RunFolder

    try:
        folder = RunFolder.open(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error} A worker looked for it: choose an output that all workers share."
        ) from error
    if folder.run_id != run_id:
        raise RunFolderError(
            f"{path!r} holds another run on this worker than on the client. Choose an output folder "
            "that all workers share."
        )
