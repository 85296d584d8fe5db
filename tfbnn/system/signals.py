"""Signals as a KeyboardInterrupt, so that schedulers and users end a run in the same clean way."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# What batch systems send before the end: SIGTERM, or where they are asked for it SIGUSR1.
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name)]


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """While active, SIGTERM raises KeyboardInterrupt; does nothing outside the main thread.

    So does SIGUSR1, where it has no other handler.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    taken = [
        number
        for number in STOP_SIGNALS
        if number == signal.SIGTERM or signal.getsignal(number) == signal.SIG_DFL
    ]
    previous = {number: signal.signal(number, interrupt) for number in taken}
    try:
        yield
    finally:
        for number, handler in previous.items():
            # None stands for a handler that was not installed from Python and cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
