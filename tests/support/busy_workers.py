"""Kills of Dask workers that are at work, for the tests and the benchmark of them."""

import os
import signal

__all__ = ["kill_one"]


def kill_one(client, generator):
    """Kills a worker that has a task by SIGKILL; whether there was one."""
    busy = [worker for worker, keys in client.processing().items() if keys]
    if not busy:
        return False
    try:
        pids = client.run(os.getpid, workers=[generator.choice(busy)])
    except OSError:
        return False  # one killed before, of which the scheduler does not know yet
    os.kill(*pids.values(), signal.SIGKILL)
    return True
