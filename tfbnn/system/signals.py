"""Signals as a KeyboardInterrupt, so that schedulers and users end a run in the same clean way."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

# What batch systems send before the end: SIGTERM, or where they are asked for it SIGUSR1.
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name)]


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """While active, SIGTERM raises KeyboardInterrupt; does nothing outside the main thread.

    So does SIGUSR1, where it has no other handler.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handlers(interrupt, _stop_signals()):
        yield


class SignalHold:
    """Signals that ask to stop, which interrupt only where the hold is lifted.

    Attributes:
        seen: Those that came meanwhile, in order.
    """

    def __init__(self, on_first: Callable[[], object]) -> None:
        """Make a SignalHold.

        Args:
            on_first: Called when the first of them is held back.
        """
        self.seen: list[signal.Signals] = []
        self._on_first, self._is_lifted = on_first, False

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        """While active, signals raise KeyboardInterrupt, from the first that was held back on."""
        self._is_lifted = True
        try:
            if self.seen:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_lifted = False

    def take(self, number: int, frame: FrameType | None) -> None:
        """Return the handler of the signals."""
        if self._is_lifted:
            raise KeyboardInterrupt
        self.seen.append(signal.Signals(number))
        if len(self.seen) == 1:
            self._on_first()


@contextlib.contextmanager
def signals_held(on_first: Callable[[], object] = lambda: None) -> Iterator[SignalHold]:
    """Yield a `SignalHold`: what is done while it holds is finished, however often one asks to stop.

    SIGINT is held, and the signals that `signals_interrupt` takes. Those that this process ignores
    stay so, and outside the main thread nothing happens.

    Args:
        on_first: As in `SignalHold`.
    """
    hold = SignalHold(on_first)
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # after `nohup`, say
    with _handlers(hold.take, [*([] if ignored else [signal.SIGINT]), *_stop_signals()]):
        yield hold


def ignore_signals() -> None:
    """Let signals that ask to stop pass from now on: the process is about to end by itself."""
    with contextlib.suppress(ValueError):  # outside the main thread
        for number in (signal.SIGINT, *STOP_SIGNALS):
            signal.signal(number, signal.SIG_IGN)


def _stop_signals() -> list[int]:
    """SIGTERM, and SIGUSR1 where it has no handler but one of an outer hold; none that is ignored."""

    def may_be_taken(number: int) -> bool:
        handler = signal.getsignal(number)
        is_held = isinstance(getattr(handler, "__self__", None), SignalHold)
        return handler != signal.SIG_IGN and (
            number == signal.SIGTERM or handler == signal.SIG_DFL or is_held
        )

    return list(filter(may_be_taken, STOP_SIGNALS))


@contextlib.contextmanager
def _handlers(
    handler: Callable[[int, FrameType | None], Any], numbers: list[int]
) -> Iterator[None]:
    """While active, the signals have this handler; outside the main thread they keep their own."""
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
