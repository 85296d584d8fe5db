"""Who is told of a run: the progress line and the user's callbacks."""

import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import numpy as np

from tfbnn.exceptions import ConvergenceWarning
from tfbnn.run.events import Event

_SPARSE_SECONDS = 30.0
_LIVE_SECONDS = 0.2


class Progress:
    """Prints events of a run to a stream.

    A terminal gets one line that is rewritten; anything else gets a plain line at most every 30 s
    and one at the end of each phase that lasted that long. A stream that fails is given up, and
    the run goes on.
    """

    def __init__(self, verbose: int | str = "auto", stream: TextIO | None = None) -> None:
        """
        Args:
            verbose: "auto" or 1 as described; 0 for silence.
            stream: Where to print, standard error by default.
        """
        self.stream = stream if stream is not None else sys.stderr
        self.silent = verbose in (0, False)
        self.live = not self.silent and bool(getattr(self.stream, "isatty", lambda: False)())
        self.last_time = time.monotonic()
        self.last_phase: str | None = None
        self.width = 0

    def __call__(self, event: Event) -> None:
        """Shows an event, if it is time to."""
        if self.silent:
            return
        now = time.monotonic()
        if self.live and event.phase != self.last_phase and self.last_phase is not None:
            self._write("\n")
            self.width = 0
        self.last_phase = event.phase
        due = _LIVE_SECONDS if self.live else _SPARSE_SECONDS
        finished = event.transition >= event.num_transitions
        if now - self.last_time < due and not (finished and (self.live or event.seconds > due)):
            return
        self.last_time = now
        line = describe(event)
        if self.live:
            self._write("\r" + line.ljust(self.width))
            self.width = len(line)
        else:
            self._write(line + "\n")

    def close(self) -> None:
        """Ends the live line."""
        if self.live and self.width:
            self._write("\n")
            self.width = 0

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError, UnicodeError):
            self.silent = True


def describe(event: Event) -> str:
    """One line for an event."""
    done, total = event.transition, event.num_transitions
    parts = [
        f"{event.phase:<11} {100.0 * done / max(total, 1):3.0f} %",
        f"{done}/{total}",
        f"{_clock(event.seconds)} elapsed",
        f"{_clock(event.eta_seconds)} left",
        *event.remarks(),
    ]
    return "  ".join(parts)


def _clock(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "?"
    minutes, left = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


class Notifier:
    """Called with an event; true once a callback asks to stop.

    Attributes:
        progress: The Progress that shows events.
        stopped: Whether a callback has asked to stop.
    """

    def __init__(
        self, verbose: int | str = 0, callbacks: Sequence[Callable[[dict[str, Any]], Any]] = ()
    ) -> None:
        """
        Args:
            verbose: As in `Progress`.
            callbacks: Callables; one that raises is called no more.
        """
        self.progress = Progress(verbose)
        self.callbacks = list(callbacks)
        self.stopped = False
        self._warned: set[int] = set()

    def __call__(self, event: Event) -> bool:
        self.progress(event)
        self._warn_of_standing_chains(event)
        for callback in list(self.callbacks):
            self.stopped |= self._call(callback, event)
        return self.stopped

    def _warn_of_standing_chains(self, event: Event) -> None:
        idle = set(getattr(event, "idle", ()))
        stuck = set(getattr(event, "standing_still", ())) - idle
        for chains, did, remedy in (
            (stuck, "accepted none of", "use a smaller step_size, dtype='float64' or another seed"),
            (idle, "did not move by", "the step is too small: use a larger step_size"),
        ):
            new = sorted(chains - self._warned)
            if new:
                self._warned.update(new)
                warnings.warn(
                    f"{'Chain' if len(new) == 1 else 'Chains'} {', '.join(map(str, new))} {did} the "
                    f"last proposals of the {event.phase} phase. If that goes on, its draws are one "
                    f"point: {remedy}.",
                    ConvergenceWarning,
                    stacklevel=2,
                )

    def _call(self, callback: Callable[[dict[str, Any]], Any], event: Event) -> bool:
        try:
            answer = callback(event.to_dict())
            return isinstance(answer, (bool, np.bool_)) and bool(answer)
        except Exception as error:
            # A day of sampling is worth more than a callback.
            self.callbacks.remove(callback)
            warnings.warn(
                f"The callback {callback!r} raised {error!r}; the run goes on without it.",
                RuntimeWarning,
                stacklevel=2,
            )
            return False
