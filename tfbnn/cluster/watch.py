"""What the lanes of a run have committed, as its caller sees it."""

import time

from tfbnn.exceptions import RunFolderError
from tfbnn.run.counters import Counters, Seconds
from tfbnn.run.events import SamplingEvent, current_phase

# The folder has news once per commit.
_LOOK_SECONDS = 2.0


class Watch:
    """Reads the last commits of the lanes of a run, and reports them."""

    def __init__(self, plan, folder, commit_interval, notify):
        """
        Args:
            plan: Plan of the run.
            folder: RunFolder.
            commit_interval: As in `fit_posterior`.
            notify: Called with the event of the run; true asks to stop it.
        """
        self._plan, self._folder, self._notify = plan, folder, notify
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
        lanes = self._lanes()
        phase = current_phase(lanes, self._plan)
        seconds = Seconds.committed(lanes).phases[phase]
        return self._notify(SamplingEvent.of(phase, lanes, self._plan, seconds))

    def transitions(self, lane):
        """Number of transitions that a lane has committed."""
        return self._counters(lane).transition

    def spent_seconds(self):
        """Seconds that the run has spent in its phases."""
        return Seconds.committed(self._lanes())

    def _lanes(self):
        return [self._counters(lane) for lane in range(self._folder.num_lanes)]

    def _counters(self, lane):
        try:
            found = self._folder.checkpoint(lane)
        except (OSError, RunFolderError):
            found = None  # the task that has this lane says why
        if found is None:
            return Counters.nothing(self._plan.groups[lane])
        return Counters.from_json(found.counters)
