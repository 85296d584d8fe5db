"""Report the progress of a run to the terminal or a log, and to the user's callbacks."""

import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeVar, cast

import numpy as np

from tfbnn.exceptions import ConvergenceWarning
from tfbnn.run.deadline import Deadline
from tfbnn.run.events import Columns, Event, HistoryTable, rows_of
from tfbnn.run.keras_callbacks import KerasListener, is_keras_callback
from tfbnn.system.terminals import Forgiving, is_terminal, same_file
from tfbnn.system.words import warn_or_print

if TYPE_CHECKING:
    import rich.progress

T = TypeVar("T")

# Phases in the order of a run. Programs are compiled before ADAM and before the chains move.
_TITLES = {
    "compile": "compiling",
    "pretraining": "pretraining",
    "population": "cooling a population",
    "newton": "refining starts",
    "warmup": "warm-up",
    "sampling": "sampling",
}
_ORDER = list(_TITLES)
_PER_SECOND, _SPARSE_SECONDS = 2.0, 30.0
# Columns of a line that the name of a phase, its bar, share and clock take.
_BAR_COLUMNS = 47


class Progress:
    """Shows the events of a run.

    A terminal shows a Rich progress bar for each phase. Any other stream gets a plain line at most every
    30 s, and one at the end of each phase that lasted that long. After an error the stream is not used any
    more, and the run continues.
    """

    def __init__(
        self,
        verbose: int | str = "auto",
        stream: TextIO | None = None,
        deadline: Deadline = Deadline(),
    ) -> None:
        """Make a Progress.

        Args:
            verbose: "auto" or 1 as described; 0 for silence.
            stream: Stream to print to, standard error by default.
            deadline: The time limit of the run; by default there is none.
        """
        stream = sys.stderr if stream is None else stream
        self._stream = None if verbose in (0, False) else stream
        self._forgiving = Forgiving(stream)
        self._deadline = deadline
        self._began = self._last_line = time.monotonic()
        self._bars: rich.progress.Progress | None = None
        self._bar: Any = None
        self._phase: str | None = None
        self._event: Event | None = None

    def __call__(self, event: Event) -> None:
        """Show an event if an update is due."""
        if self._stream is None:
            return
        self.announce(event.phase)
        self._event = event
        if self._bars is not None:
            parts = [self._to_go(event), *_parts(event, event.transition)]
            self._draw(event.transition, parts, event.num_transitions)
        elif time.monotonic() - self._last_line >= _SPARSE_SECONDS:
            if event.transition < event.num_transitions:
                so_far = f"{_clock(time.monotonic() - self._began)} so far, {self._to_go(event)}"
                self._write(event, event.transition, so_far)

    def announce(self, phase: str) -> None:
        """Show a phase before its first event, or "compile", which has no events."""
        if self._stream is None or phase == self._phase:
            return
        # Lost work takes the run back to an earlier phase. The phase shown so far has then not ended.
        goes_on = phase == "compile" or _ORDER.index(phase) > _ORDER.index(self._phase or phase)
        event = self._event if goes_on else None
        self._end(event, 0 if event is None else event.num_transitions)
        self._phase, self._event = phase, None
        self._bars = self._bars or _bars(self._stream)
        if self._bars is not None:
            self._bar = self._bars.add_task(_TITLES[phase], total=None, rest="")

    def say(self, text: str) -> None:
        """Print a separate line, before any progress is shown."""
        if self._stream is not None:
            self._forgiving.write(f"{text}\n")

    def close(self) -> None:
        """Leave the last line of the phase. A stopped phase is shown as it was then."""
        self._end(self._event, 0 if self._event is None else self._event.transition)
        if self._bars is not None:
            self._bars.stop()
        self._bars = self._phase = self._event = None

    def _end(self, event: Event | None, done: int) -> None:
        """Leave the last line of a phase with its last event, or none if there was no event."""
        if self._bars is None:
            if event is not None and event.seconds > _SPARSE_SECONDS:
                self._write(event, done, f"took {_clock(event.seconds)}")
        elif event is not None:
            self._draw(done, _parts(event, done), event.num_transitions)
            self._bars.stop_task(self._bar)
            self._bars.refresh()
        elif self._bar is not None:
            self._bars.remove_task(self._bar)
        self._bar = None

    def _draw(self, done: int, parts: list[str], total: int) -> None:
        """Draw the bar of this phase, with as many parts as fit, at least the first."""
        bars = cast("rich.progress.Progress", self._bars)
        while len(parts) > 1 and len("  ".join(parts)) > bars.console.width - _BAR_COLUMNS:
            parts.pop()
        bars.update(self._bar, total=total, completed=done, rest="  ".join(parts))

    def _to_go(self, event: Event) -> str:
        seconds = event.total_eta_seconds
        if self._deadline.max_seconds < math.inf:
            # fmin ignores an unknown estimate, NaN.
            seconds = np.fmin(seconds, max(self._deadline.left(), 0.0))
        if not math.isnan(seconds):
            return f"{'at most ' * event.is_open}{_clock(seconds)} to go"
        if math.isnan(event.eta_seconds) or event.phase in ("warmup", "sampling"):
            return "? to go"
        return f"{_clock(event.eta_seconds)} and sampling to go"

    def _write(self, event: Event, done: int, times: str) -> None:
        self._last_line = time.monotonic()
        # Rounded down, so that 100 % means finished.
        share = math.floor(100.0 * done / max(event.num_transitions, 1))
        parts = [f"{_TITLES[event.phase]} {share} %", times, *_parts(event, done)]
        self._forgiving.write("  ".join(parts) + "\n")
        self._forgiving.flush()


def _bars(stream: TextIO) -> "rich.progress.Progress | None":
    """Start progress bars of Rich, which updates their clocks. None if there is no suitable terminal."""
    if not is_terminal(stream) or os.environ.get("TERM") in ("dumb", "unknown"):
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(
        file=cast(IO[str], Forgiving(stream)),
        force_terminal=True,
        force_jupyter=False,
        # Output of other code must not be read as markup.
        markup=False,
        emoji=False,
        highlight=False,
    )
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rest]}", markup=False),
        console=console,
        refresh_per_second=_PER_SECOND,
        # Output that is redirected to a file must not go to the terminal.
        redirect_stdout=same_file(sys.stdout, stream),
        redirect_stderr=same_file(sys.stderr, stream),
    )
    bars.start()
    console.show_cursor(True)  # otherwise a killed process would leave it hidden
    return bars


def tracked(items: Iterable[T], total: int | None, title: str) -> Iterator[T]:
    """Yield items and show their progress with a bar on a terminal, if Rich is installed."""
    bars = _bars(sys.stderr) if find_spec("rich") else None
    if bars is None:
        yield from items
        return
    try:
        task = bars.add_task(title, total=total, rest="")
        for item in items:
            yield item
            bars.advance(task)
    finally:
        bars.stop()


def _parts(event: Event, done: int) -> list[str]:
    """Return the progress of a phase in its own unit, and the remarks of its event by importance."""
    count, total, unit = event.count()
    so_far = str(count) if done >= event.num_transitions else f"{count}/{total}"
    return [f"{so_far} {unit}", *event.remarks()]


def _clock(seconds: float) -> str:
    """Format seconds as minutes and seconds, with hours if there are any."""
    minutes, left = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


class Notifier:
    """Callable for events; returns True once a callback requests to stop, or the time limit is reached.

    Attributes:
        progress: The Progress that shows events.
        deadline: The time limit of the run.
    """

    def __init__(
        self,
        verbose: int | str = 0,
        callbacks: Sequence[Any] = (),
        deadline: Deadline = Deadline(),
    ) -> None:
        """Make a Notifier.

        Args:
            verbose: As in `Progress`.
            callbacks: Callables or Keras callbacks. One that raises is not called again.
            deadline: The time limit of the run; by default there is none.
        """
        self.progress = Progress(verbose, deadline=deadline)
        self._tables = defaultdict[str, HistoryTable](HistoryTable)
        self.callbacks = [
            KerasListener(one) if is_keras_callback(one) else one for one in callbacks
        ]
        self.deadline, self._is_asked_to_stop = deadline, False
        self._part_ends = math.inf
        self._warned: set[str] = set()

    @property
    def history(self) -> dict[str, Columns]:
        """Events recorded by this process, dict phase -> dict name -> list; see `Run.history`."""
        return {name: table.columns() for name, table in self._tables.items()}

    @property
    def stopped(self) -> bool:
        """True once a callback has requested to stop, or a time limit is reached."""
        is_part_over = time.monotonic() >= self._part_ends
        return self._is_asked_to_stop or self.deadline.is_over() or is_part_over

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Stop the work inside the context after `seconds`; the run itself continues."""
        whole = self._part_ends
        self._part_ends = min(whole, time.monotonic() + seconds)
        try:
            yield
        finally:
            self._part_ends = whole

    @property
    def seconds_left(self) -> float:
        """Seconds until the present work is stopped."""
        return min(self._part_ends - time.monotonic(), self.deadline.left())

    def announce(self, phase: str) -> None:
        """Show the current activity until the next event. Callbacks are not called.

        Args:
            phase: Phase of an event, or "compile".
        """
        if not self.stopped:
            self.progress.announce(phase)

    def close(self) -> None:
        """Close the progress display and Keras callbacks at the end of a run, however it ended."""
        self.progress.close()
        for callback in list(self.callbacks):
            if isinstance(callback, KerasListener):
                self._call(callback, callback.close)

    def __call__(self, event: Event) -> bool:
        self.progress(event)
        for name, row in rows_of(event):
            self._tables[name].add(row)
        self._warn_of_standing_chains(event)
        for callback in list(self.callbacks):
            self._is_asked_to_stop |= self._call(callback, partial(callback, event.to_dict()))
        return self.deadline.is_over(getattr(event, "num_kept", 0)) or self.stopped

    def _warn_of_standing_chains(self, event: Event) -> None:
        idle = set(getattr(event, "idle", ()))
        stuck = set(getattr(event, "standing_still", ())) - idle
        for chains, did, remedy in (
            (stuck, "accepted none of", "use a smaller step_size, dtype='float64' or another seed"),
            (idle, "did not move by", "the step is too small: use a larger step_size"),
        ):
            # Only the first event warns. The report names chains that stand still later.
            if chains and did not in self._warned:
                self._warned.add(did)
                named = ", ".join(map(str, sorted(chains)))
                warn_or_print(
                    f"{'Chain' if len(chains) == 1 else 'Chains'} {named} {did} the last proposals of "
                    f"the {event.phase} phase. If this continues, all its draws are the same: {remedy}.",
                    ConvergenceWarning,
                )

    def _call(self, callback: Any, call: Callable[[], Any]) -> bool:
        """Call a callback and return whether it requests to stop. A callback that raises is removed."""
        try:
            answer = call()
            return isinstance(answer, (bool, np.bool_)) and bool(answer)
        except Exception as error:
            # A faulty callback must not end a run that may have taken a day.
            self.callbacks.remove(callback)
            warn_or_print(
                f"The callback {callback!r} raised {error!r}; the run goes on without it.",
                RuntimeWarning,
            )
            return False
