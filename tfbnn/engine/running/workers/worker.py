"""A process that advances lanes of a run folder: `python -m tfbnn.engine.running.workers.worker`.

It is started by `tfbnn.engine.running.workers.crew`, as a program of its own: a child of multiprocessing would
import the user's script once more. On standard input comes one message, "advance" with the
arguments of `advance_lanes` and, where the parent judges on the way, the number of draws per chain
to stop at; then "go on" with the next one, each time that was reached; and perhaps "stop", after
which the block is ended and committed. The end of standard input is that of the parent, which the
worker does not outlive.

On standard output go the messages "event", "warning", "reached" and at the end "ended", both with the
errors of lanes that failed, or "refused", with the error that kept all of them from advancing.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import warnings
from queue import SimpleQueue
from typing import TextIO

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.running.advance import advance_lanes
from tfbnn.engine.running.workers.process import error_to_json, errors_to_json, parse, send
from tfbnn.run.course import Course
from tfbnn.run.crew import Crew
from tfbnn.run.events import Event, Look
from tfbnn.system.signals import STOP_SIGNALS

_ORPHANED = 1


def main() -> None:
    """Works and ends."""
    faulthandler.enable()  # says on standard error where a crash was
    messages = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no message
    warnings.showwarning = lambda message, category, *_: send(
        messages, "warning", [category.__name__, str(message)]
    )
    tf.config.threading.set_intra_op_parallelism_threads(1)
    _, order = json.loads(sys.stdin.readline())
    orders = _Orders(order.pop("num_results", None), messages)
    threading.Thread(target=orders.listen, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: orders.stop())

    def notify(event: Event) -> bool:
        send(messages, "event", event.to_dict())
        return orders.is_stopped

    try:
        failures = advance_lanes(**order, notify=notify, course=orders.course)[0].failures
    except Exception as error:
        send(messages, "refused", error_to_json(error))
    else:
        send(messages, "ended", errors_to_json(failures))
    os._exit(0)  # nothing is left to be done; libraries take long, or crash, when they are unloaded


class _Orders:
    """What the parent says, which also makes a Course of the lanes.

    Attributes:
        is_stopped: Whether the lanes are to end as soon as they can.
        ended, look: As those of a Course: only the parent knows.
    """

    ended: str | None = None
    look: Look | None = None

    def __init__(self, first: int | None, messages: TextIO) -> None:
        """
        Args:
            first: Draws per chain that the lanes go to first; None: as far as the run may.
            messages: Where the parent reads that they are there.
        """
        self._first, self._messages, self.is_stopped = first, messages, False
        # SimpleQueue: a signal's handler may put something there at any moment.
        self._next: SimpleQueue[int | None] = SimpleQueue()
        self._next.put(first)
        self._has_begun = False

    @property
    def course(self) -> Course | None:
        """These orders, or None for a course without any stop."""
        return None if self._first is None else self

    def next(self, crew: Crew) -> int | None:
        if self._has_begun:
            failures = {tuple(crew.plan.groups[lane]): e for lane, e in crew.failures.items()}
            send(self._messages, "reached", errors_to_json(failures))
        self._has_begun = True
        return self._next.get()

    def stop(self) -> None:
        """Has the lanes end."""
        self.is_stopped = True
        self._next.put(None)

    def listen(self) -> None:
        """Takes what comes on standard input; the process ends with it."""
        while line := sys.stdin.readline():
            kind, content = parse(line) or ("stop", None)
            if kind == "go on":
                self._next.put(content)
            else:
                self.stop()
        os._exit(_ORPHANED)


if __name__ == "__main__":
    main()
