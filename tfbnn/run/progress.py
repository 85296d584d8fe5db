"""Who is told of a run: the progress line and the user's callbacks."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TextIO

import numpy as np

from tfbnn.exceptions import ConvergenceWarning
from tfbnn.run.deadline import Deadline
from tfbnn.run.events import Event
from tfbnn.run.listeners.history import History
from tfbnn.run.listeners.keras_callbacks import KerasListener, is_keras_callback
from tfbnn.run.time_to_go import TimeToGo
from tfbnn.run.wording import TITLES, fitted, of_end, of_phase, of_silence
from tfbnn.system.terminals import Forgiving, is_terminal
from tfbnn.system.warn import warn

_SPARSE_SECONDS = 30.0
_ORDER = list(TITLES)


class Display(Protocol):
    """Where the line of a run is shown."""

    def changed(self) -> None:
        """There is something new to be said."""

    def keep(self, parts: Sequence[str], seconds: float) -> None:
        """Leaves the last line of a phase that took so long."""

    def close(self) -> None:
        """Shows no more."""


class Progress:
    """Shows events of a run.

    A terminal gets one line that is drawn anew twice a second, so that its clock moves whatever the
    run does, and keeps a line of each phase that is over. Anything else gets a plain line at most
    every 30 s and one at the end of each phase that lasted that long. A stream that fails is given
    up, and the run goes on.
    """

    def __init__(
        self,
        verbose: int | str = "auto",
        stream: TextIO | None = None,
        deadline: Deadline = Deadline(),
    ) -> None:
        """
        Args:
            verbose: "auto" or 1 as described; 0 for silence.
            stream: Where to print, standard error by default.
            deadline: The limit of the run; by default there is none.
        """
        self._deadline = deadline
        self._stream = stream if stream is not None else sys.stderr
        self._silent = verbose in (0, False) or self._stream is None
        self._display: Display | None = None
        self._began = time.monotonic()
        self._time_to_go = TimeToGo()
        self._phase: str | None = None
        self._event: Event | None = None

    def __call__(self, event: Event) -> None:
        """Shows an event, if it is time to."""
        self._enter(event.phase)
        self._time_to_go.update(event, time.monotonic())
        self._event = event
        display = self._opened()
        if display is not None and event.transition < event.num_transitions:
            display.changed()

    def announce(self, phase: str) -> None:
        """Shows a phase whose events are yet to come, or "compile", which has none."""
        self._enter(phase)
        display = self._opened()
        if display is not None:
            display.changed()

    def say(self, text: str) -> None:
        """Prints a line of its own, before there is anything to show."""
        if not self._silent:
            Forgiving(self._stream).write(f"{text}\n")

    def parts(self) -> list[str]:
        """The parts of the line as it should be now, the most important first."""
        now = time.monotonic()
        event, so_far = self._event, now - self._began
        if event is not None:
            to_go = self._time_to_go.at(now)
            if self._deadline.is_finite:
                left = max(self._deadline.left(), 0.0)
                to_go = left if math.isnan(to_go) else min(to_go, left)
            return of_phase(event, so_far, to_go)
        return [] if self._phase is None else of_silence(self._phase, so_far)

    def close(self) -> None:
        """Leaves the last line; of a phase that was stopped, as it was then."""
        event = self._event
        if self._display is not None:
            if event is not None:
                over = event.transition >= event.num_transitions
                self._display.keep(of_end(event) if over else self.parts(), event.seconds)
            self._display.close()
        self._display = self._phase = self._event = None

    def _enter(self, phase: str) -> None:
        """Ends the phase before, unless lost work takes the run back to an earlier one."""
        if phase == self._phase:
            return
        event = self._event
        goes_on = phase == "compile" or _ORDER.index(phase) > _ORDER.index(self._phase or phase)
        self._phase, self._event = phase, None
        if self._display is not None and event is not None and goes_on:
            self._display.keep(of_end(event), event.seconds)

    def _opened(self) -> Display | None:
        if self._display is None and not self._silent:
            self._display = _display(self._stream, self.parts)
        return self._display


class _Lines:
    """A plain line now and then."""

    def __init__(self, stream: TextIO, parts: Callable[[], Sequence[str]]) -> None:
        self._stream, self._parts = Forgiving(stream), parts
        self._last_time = time.monotonic()

    def changed(self) -> None:
        if time.monotonic() - self._last_time >= _SPARSE_SECONDS:
            self._write(self._parts())

    def keep(self, parts: Sequence[str], seconds: float) -> None:
        if seconds > _SPARSE_SECONDS:
            self._write(parts)

    def close(self) -> None:
        pass

    def _write(self, parts: Sequence[str]) -> None:
        self._last_time = time.monotonic()
        self._stream.write(fitted(parts) + "\n")
        self._stream.flush()


def _display(stream: TextIO, parts: Callable[[], Sequence[str]]) -> Display:
    if is_terminal(stream) and os.environ.get("TERM") not in ("dumb", "unknown"):
        from tfbnn.run.live import LiveLine

        return LiveLine(stream, parts)
    return _Lines(stream, parts)


class Notifier:
    """Called with an event; true once a callback asks to stop, or the time is over.

    Attributes:
        progress: The Progress that shows events.
        deadline: The limit of the run.
    """

    def __init__(
        self,
        verbose: int | str = 0,
        callbacks: Sequence[Any] = (),
        deadline: Deadline = Deadline(),
        history: History | None = None,
    ) -> None:
        """
        Args:
            verbose: As in `Progress`.
            callbacks: Callables or callbacks of Keras; one that raises is called no more.
            deadline: The limit of the run; by default there is none.
            history: Takes down all events, or None.
        """
        self.progress, self._history = Progress(verbose, deadline=deadline), history
        self.callbacks = [
            KerasListener(one) if is_keras_callback(one) else one for one in callbacks
        ]
        self.deadline, self._is_asked_to_stop = deadline, False
        self._part_ends = math.inf
        self._warned: set[str] = set()

    @property
    def out_of_time(self) -> str | None:
        """What time is over, in words, or None."""
        return self.deadline.passed

    @property
    def stopped(self) -> bool:
        """Whether a callback has asked to stop, or the time is over."""
        return self._is_asked_to_stop or self.deadline.is_over() or self._is_part_over

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Stops what runs meanwhile after so many seconds, and the run itself goes on."""
        whole = self._part_ends
        self._part_ends = min(whole, time.monotonic() + seconds)
        try:
            yield
        finally:
            self._part_ends = whole

    @property
    def _is_part_over(self) -> bool:
        return time.monotonic() >= self._part_ends

    @property
    def seconds_left(self) -> float:
        """Seconds until what runs now is stopped."""
        return min(self._part_ends - time.monotonic(), self.deadline.left())

    def announce(self, phase: str) -> None:
        """Shows what is being done until the next event; callbacks are not told.

        Args:
            phase: Phase of an event, or "compile".
        """
        if not self.stopped:
            self.progress.announce(phase)

    def close(self) -> None:
        """Says that the run is over, however it ended."""
        self.progress.close()
        for callback in list(self.callbacks):
            if isinstance(callback, KerasListener):
                self._call(callback, callback.close)

    def __call__(self, event: Event) -> bool:
        self.progress(event)
        if self._history is not None:
            self._history(event)
        self._warn_of_standing_chains(event)
        for callback in list(self.callbacks):
            self._is_asked_to_stop |= self._call(callback, partial(callback, event.to_dict()))
        return self.deadline.ends(event) or self._is_asked_to_stop or self._is_part_over

    def _warn_of_standing_chains(self, event: Event) -> None:
        idle = set(getattr(event, "idle", ()))
        stuck = set(getattr(event, "standing_still", ())) - idle
        for chains, did, remedy in (
            (stuck, "accepted none of", "use a smaller step_size, dtype='float64' or another seed"),
            (idle, "did not move by", "the step is too small: use a larger step_size"),
        ):
            # Later ones would each have a warning of its own; the report names them.
            if chains and did not in self._warned:
                self._warned.add(did)
                named = ", ".join(map(str, sorted(chains)))
                warn(
                    f"{'Chain' if len(chains) == 1 else 'Chains'} {named} {did} the last proposals of "
                    f"the {event.phase} phase. If that goes on, its draws are one point: {remedy}.",
                    ConvergenceWarning,
                )

    def _call(self, callback: Any, call: Callable[[], Any]) -> bool:
        """Calls a callback, which is dropped where it raises; whether it asks to stop."""
        try:
            answer = call()
            return isinstance(answer, (bool, np.bool_)) and bool(answer)
        except Exception as error:
            # A day of sampling is worth more than a callback.
            self.callbacks.remove(callback)
            warn(
                f"The callback {callback!r} raised {error!r}; the run goes on without it.",
                RuntimeWarning,
            )
            return False
