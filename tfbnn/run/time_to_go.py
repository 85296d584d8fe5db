"""How long a run still takes, from what its events say, without jumps."""

import math

from tfbnn.run.events import Event

# The first blocks of a phase tell little of the others: trees of NUTS begin deep, say.
_LEAST_SECONDS, _LEAST_SHARE = 5.0, 0.1
# An estimate follows what events say within this share of the time that is left, in seconds more.
_FOLLOWS_WITHIN, _MORE_SECONDS = 0.25, 2.0


class TimeToGo:
    """Seconds until the end of a run: unknown at first, then smoothed, and counted down."""

    def __init__(self) -> None:
        self._seconds, self._then = math.nan, 0.0

    def update(self, event: Event, now: float) -> None:
        """Takes in what an event says at a time, in seconds."""
        said = event.total_eta_seconds
        share = event.transition / max(event.num_transitions, 1)
        if math.isnan(said) or (event.seconds < _LEAST_SECONDS and share < _LEAST_SHARE):
            return
        before = self.at(now)
        if not math.isnan(before):
            slowness = _FOLLOWS_WITHIN * min(before, said) + _MORE_SECONDS
            weight = 1.0 - math.exp(-(now - self._then) / slowness)
            # Of the logarithm: twice too long is as wrong as half too short.
            said = math.expm1(math.log1p(before) * (1.0 - weight) + math.log1p(said) * weight)
        self._seconds, self._then = said, now

    def at(self, now: float) -> float:
        """Seconds to go at a time, NaN where nothing is known."""
        if math.isnan(self._seconds):
            return math.nan
        return max(self._seconds - (now - self._then), 0.0)
