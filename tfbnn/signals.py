"""SIGTERM as a KeyboardInterrupt, so that schedulers and users end a run in the same clean way."""

import contextlib
import signal
import threading

__all__ = ["sigterm_interrupts"]


@contextlib.contextmanager
def sigterm_interrupts():
    """While active, SIGTERM raises KeyboardInterrupt; does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number, frame):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        # None stands for a handler that was not installed from Python and cannot be restored.
        signal.signal(signal.SIGTERM, signal.SIG_DFL if previous is None else previous)
