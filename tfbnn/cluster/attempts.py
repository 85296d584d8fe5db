"""Tasks on a cluster, tried again where a worker or its storage failed."""

import time
from collections import Counter
from concurrent.futures import CancelledError

from tfbnn.cluster.extra import required
from tfbnn.exceptions import RunLockedError

_POLL_SECONDS = 0.1
# An attempt that got further than those before it starts the count anew.
_MAX_IN_VAIN = 5
_LONGEST_PAUSE_SECONDS = 60.0


class Attempts:
    """Runs tasks until each has finished or failed.

    Attributes:
        failures: Dict name -> the exception that ended it.
        repeated: Counter of (name, what ended an attempt that was followed by another).
    """

    def __init__(self, client, calls, progress, stop, advice):
        """
        Args:
            client: distributed.Client.
            calls: Dict name -> (function, *arguments); true says that the work is finished.
            progress: Function of a name: a number that grows as its work advances.
            stop: StopSign that the functions heed.
            advice: Sentence on what helps where attempts end before they get any further.
        """
        self._client, self._calls, self._progress, self._stop = client, calls, progress, stop
        self._advice, self._running = advice, {}
        self._due = dict.fromkeys(calls, 0.0)
        self._reached = {name: progress(name) for name in calls}
        self._in_vain = dict.fromkeys(calls, 0)
        self.failures, self.repeated = {}, Counter()

    def run(self, look=lambda: False):
        """Runs all tasks to their ends, or until `look`, called all the while, returns true.

        Whatever ends it, no task of this call is at work afterwards, unless the cluster is gone or
        a second interrupt comes while tasks commit.

        Raises:
            ConnectionError: When the scheduler is gone.
        """
        try:
            while (self._due or self._running) and not look():
                self._submit()
                time.sleep(_POLL_SECONDS)
                self._collect()
        finally:
            self._end()

    def _submit(self):
        if self._client.status == "closed":
            raise ConnectionError(
                "The Dask scheduler is gone. What was committed is in the run folder: go on with "
                "a new client and resume=True."
            )
        if self._client.status != "running":
            return  # the client is looking for the scheduler
        for name in [name for name, due in self._due.items() if time.monotonic() >= due]:
            del self._due[name]
            function, *arguments = self._calls[name]
            future = self._client.submit(function, *arguments, pure=False)
            self._running[future] = name

    def _collect(self):
        for name, error in self._ended():
            self._try_again(name, error)

    def _ended(self):
        """Yields (name, error) of attempts that have ended and did not finish their work.

        There is no error where the worker closed in good order or the task was asked to stop.
        """
        for future in [future for future in self._running if future.status != "pending"]:
            name, finished, error = self._running.pop(future), False, None
            try:
                finished = future.result()
            except Exception as caught:
                error = caught
            if not finished:
                yield name, error

    def _try_again(self, name, error):
        reached = self._progress(name)
        advanced, self._reached[name] = reached > self._reached[name], reached
        self._in_vain[name] = 0 if advanced else self._in_vain[name] + 1
        if not _is_passing(error) or self._in_vain[name] >= _MAX_IN_VAIN:
            self.failures[name] = error or TimeoutError(
                f"Its worker ended {self._in_vain[name]} times in a row before it got any further. "
                f"{self._advice}"
            )
            return
        self.repeated[name, "worker closed" if error is None else type(error).__name__] += 1
        self._due[name] = time.monotonic() + min(2.0 ** self._in_vain[name], _LONGEST_PAUSE_SECONDS)

    def _end(self):
        """Cancels tasks that no worker has, and waits until the others have stopped.

        Those that cannot be waited for keep the sign, and stop when they see it.
        """
        if not self._running:
            return
        self._stop.set()
        while self._running and self._client.status == "running":
            assigned = {key for keys in self._client.processing().values() for key in keys}
            waiting = [f for f in self._running if f.status == "pending" and f.key not in assigned]
            for future in waiting:
                del self._running[future]
                future.cancel()
            time.sleep(_POLL_SECONDS)
            # They are not tried again: what another attempt would mend is no failure.
            self.failures |= {
                name: error for name, error in self._ended() if not _is_passing(error)
            }
        if not self._running:
            self._stop.clear()


def _is_passing(error):
    """Whether another attempt may do better; None as in `_ended`."""
    killed = required("distributed.scheduler").KilledWorker
    return error is None or isinstance(error, (killed, CancelledError, OSError, RunLockedError))
