"""Signals that raise KeyboardInterrupt, so that schedulers and users stop a run in the same way."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

# Signals that batch systems send before the end of a job: SIGTERM, or SIGUSR1 on request.
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name)]


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM while active; do nothing outside the main thread.

    SIGUSR1 does the same if it has no other handler.
    """
    with _handlers(_interrupt, _stop_signals()):
        yield


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class SignalHold:
    """Hold on signals that ask to stop; they interrupt only while the hold is lifted.

    Attributes:
        seen: Signals that were held back, in order.
    """

    def __init__(self, on_first: Callable[[], object]) -> None:
        """Create a SignalHold.

        Args:
            on_first: Function that is called when the first signal is held back.
        """
        self.seen: list[signal.Signals] = []
        self._on_first, self._is_lifted = on_first, False

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        """Lift the hold: raise KeyboardInterrupt on signals, also at once if one was held back."""
        self._is_lifted = True
        try:
            if self.seen:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_lifted = False

    def take(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: hold it back, or raise KeyboardInterrupt if the hold is lifted."""
        if self._is_lifted:
            raise KeyboardInterrupt
        self.seen.append(signal.Signals(number))
        if len(self.seen) == 1:
            self._on_first()


@contextlib.contextmanager
def signals_held(on_first: Callable[[], object] = lambda: None) -> Iterator[SignalHold]:
    """Hold back signals that ask to stop, so that the code inside completes.

    This concerns SIGINT and the signals of `signals_interrupt`. Signals that this process ignores
    stay ignored. Outside the main thread nothing happens. Yields the `SignalHold`.

    Args:
        on_first: As in `SignalHold`.
    """
    hold = SignalHold(on_first)
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # for example after `nohup`
    with _handlers(hold.take, [*([] if ignored else [signal.SIGINT]), *_stop_signals()]):
        yield hold


def ignore_signals() -> None:
    """Ignore signals that ask to stop from now on; the process is about to end by itself."""
    with contextlib.suppress(ValueError):  # outside the main thread
        for number in (signal.SIGINT, *STOP_SIGNALS):
            signal.signal(number, signal.SIG_IGN)


def _stop_signals() -> list[int]:
    """Return the stop signals to handle.

    These are SIGTERM, and SIGUSR1 if it has no handler or one of this module. Ignored signals are
    left out.
    """

    def may_be_taken(number: int) -> bool:
        handler = signal.getsignal(number)
        is_held = isinstance(getattr(handler, "__self__", None), SignalHold)
        return handler != signal.SIG_IGN and (
            number == signal.SIGTERM or handler in (signal.SIG_DFL, _interrupt) or is_held
        )

    return list(filter(may_be_taken, STOP_SIGNALS))


@contextlib.contextmanager
def _handlers(
    handler: Callable[[int, FrameType | None], Any], numbers: list[int]
) -> Iterator[None]:
    """Set a handler for signals while active; do nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, restored in previous.items():
            # None stands for a handler that was not installed from Python and cannot be restored.
            signal.signal(number, signal.SIG_DFL if restored is None else restored)
