"""A run that is long enough to meet its worker processes, and who they are."""

from pathlib import Path

from tests.support import small_runs

RUN = small_runs.RUN | dict(num_chains=3, num_results=1500, num_steps_between_results=19)
# Not finished before all workers are there, on however busy a machine.
LONG = RUN | {"num_results": 10**5}


def status_of(process):
    """The fields of /proc/PID/stat after the name, None when it is gone."""
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def workers_of(parent):
    """Numbers of the worker processes of a process, those started first first."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        status = status_of(place.name)
        if status and int(status[1]) == parent:
            if b"tfbnn.engine.running.workers.worker" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return sorted(found)


def is_alive(process):
    status = status_of(process)
    return status is not None and status[0] != "Z"
