"""The time that a run may take, where somebody has said how long."""

from __future__ import annotations

import time
from dataclasses import replace

from tfbnn.run.events import Event
from tfbnn.run.result import SamplingResult
from tfbnn.run.until import Until

# Warm-up that takes longer would leave too little for draws that are worth anything.
_WARMUP_SHARE = 0.4


class Deadline:
    """Whether the time of a run is over, and what it was spent on.

    Attributes:
        passed: What is over, in words; None as long as nothing is.
    """

    def __init__(self, max_seconds: float, began: float, spent: float = 0.0) -> None:
        """
        Args:
            max_seconds: As in `tfbnn.Until`.
            began: `time.perf_counter` when this part of the run was called for.
            spent: Seconds that earlier parts have taken.
        """
        self._max_seconds, self._began = max_seconds, began - spent
        self.passed: str | None = None

    @classmethod
    def of(cls, until: Until | None, began: float, spent: float) -> Deadline | None:
        """That of `until`, or None where it names no time; the others as above."""
        if until is None or until.max_seconds is None:
            return None
        return cls(until.max_seconds, began, spent)

    def is_over(self) -> bool:
        """Whether all of the time is spent."""
        if self.passed is None and time.perf_counter() - self._began >= self._max_seconds:
            self.passed = f"max_seconds={self._max_seconds:g} are spent"
        return self.passed is not None

    def ends(self, event: Event) -> bool:
        """Whether it is, or what the phase of the event may have of it."""
        share = _WARMUP_SHARE * self._max_seconds
        if self.passed is None and event.phase == "warmup" and event.seconds >= share:
            self.passed = (
                f"warm-up was not over after {100 * _WARMUP_SHARE:.0f} % of "
                f"max_seconds={self._max_seconds:g}"
            )
        return self.is_over()


def in_time(result: SamplingResult, out_of_time: str | None) -> SamplingResult:
    """A result that says so where the time was over, in these words, before the run was."""
    if out_of_time is None or result.ended is not None:
        return result
    num_results = result.draws.shape[1]
    after = f"after {num_results} draws per chain" if num_results else "before the first draw"
    return replace(result, ended=f"{out_of_time} {after}")
