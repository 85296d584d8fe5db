"""The time limit of a run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from tfbnn.run.result import Result

# Largest shares of the limit for search and warm-up, and largest share for warm-up of the time left when it
# begins. The search may use _TIMES_OF_LEFT times its share of the time left when it begins.
_SEARCH, _TIMES_OF_LEFT = 1 / 3, 1.2
_WARMUP, _WARMUP_OF_LEFT = 1 / 3, 1 / 2


class Deadline:
    """The time limit of a run, and the time available to its phases.

    Attributes:
        max_seconds: Seconds from the call to the end; infinite without a limit.
        passed: Text on the limit that has passed; None before that.
    """

    def __init__(
        self,
        max_seconds: float | None = None,
        began: float = 0.0,
        ending: Callable[[int], float] = lambda num_kept: 0.0,
        clock: Callable[[], float] | None = None,
        search: float = _SEARCH,
    ) -> None:
        """Make a Deadline.

        Args:
            max_seconds: As in `tfbnn.Until`, None without a limit.
            began: Value of `clock` when the fit was called.
            ending: Function that returns the seconds of calibration and diagnosis, given the draws per
                chain.
            clock: Function that returns the time in seconds; by default `time.perf_counter`.
            search: Share of the limit for the search for starts.
        """
        self.max_seconds = math.inf if max_seconds is None else max_seconds
        self._began, self._ending, self._clock = began, ending, clock or time.perf_counter
        self._search = search
        self.passed: str | None = None

    def left(self, num_kept: int = 1) -> float:
        """Return the seconds until sampling has to end with `num_kept` draws; infinite without a limit."""
        # Without a draw there is nothing to calibrate, and the run may use all seconds to get one.
        ending = self._ending(num_kept) if num_kept else 0.0
        return self.max_seconds - (self._clock() - self._began) - ending

    def for_search(self) -> float:
        """Return the seconds that the search for starts may take from now on, compilation included."""
        return max(0.0, self._search * min(self.max_seconds, _TIMES_OF_LEFT * self.left()))

    def for_warmup(self, left: float | None = None) -> float:
        """Return the seconds that warm-up may take if it begins with `left` seconds left, by default now."""
        left = self.left() if left is None else left
        return max(0.0, min(_WARMUP * self.max_seconds, _WARMUP_OF_LEFT * left))

    def is_over(self, num_kept: int = 0) -> bool:
        """Return whether a run with `num_kept` draws per chain has to end."""
        if self.passed is None and self.left(num_kept) <= 0:
            self.passed = f"max_seconds={self.max_seconds:g} was reached"
        return self.passed is not None


def in_time(result: Result, out_of_time: str | None) -> Result:
    """Return the result, with a text in `ended` if the time limit ended the run."""
    if out_of_time is None or result.ended is not None:
        return result
    num_results = result.draws.shape[1]
    after = f"after {num_results} draws per chain" if num_results else "before the first draw"
    return replace(result, ended=f"{out_of_time} {after}")
