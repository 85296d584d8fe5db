"""What the lanes of a run have committed, as its caller sees it."""

import time

from tfbnn.exceptions import RunFolderError
from tfbnn.run.progress import current_phase, make_event, nothing_counted
from tfbnn.run.session import spent_seconds

# The folder has news once per commit.
_LOOK_SECONDS = 2.0


class Watch:
    """Reads the last commits of the lanes of a run, and reports them."""

    def __init__(self, program, folder, commit_interval, notify):
        """
        Args:
            program: The Program of the lanes.
            folder: RunFolder.
            commit_interval: As in `fit_posterior`.
            notify: Called with the event of the run; true asks to stop it.
        """
        self._program, self._folder, self._notify = program, folder, notify
        self._interval = max(commit_interval, _LOOK_SECONDS)
        self._last_look = time.monotonic()

    def look(self):
        """Reports now and then; whether the run is to stop."""
        if time.monotonic() < self._last_look + self._interval:
            return False
        self._last_look = time.monotonic()
        return self.report()

    def report(self):
        """Hands over the event of the run; whether it is to stop."""
        lanes = [
            found.counters if found else nothing_counted(chains)
            for found, chains in zip(self._checkpoints(), self._program.groups)
        ]
        phase = current_phase(lanes, self._program)
        return self._notify(make_event(phase, lanes, self._program, self.spent_seconds()[phase]))

    def transitions(self, lane):
        """Number of transitions that a lane has committed."""
        found = self._checkpoint(lane)
        return found.counters["transition"] if found else 0

    def spent_seconds(self):
        """Dict phase -> wall-clock seconds that the run has spent in it."""
        return spent_seconds(self._checkpoints())

    def _checkpoints(self):
        return [self._checkpoint(lane) for lane in range(self._folder.num_lanes)]

    def _checkpoint(self, lane):
        try:
            return self._folder.checkpoint(lane)
        except (OSError, RunFolderError):
            return None  # the task that has this lane says why
