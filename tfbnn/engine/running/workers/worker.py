"""A process that advances lanes of a run folder: `python -m tfbnn.engine.running.workers.worker`.

It is started by `tfbnn.engine.running.workers.crew`, as a program of its own: a child of multiprocessing would
import the user's script once more. On standard input comes one message, "advance" with the
arguments of `advance_lanes`, and later perhaps "stop", after which the block is ended and
committed. The end of standard input is that of the parent, which the worker does not outlive.

On standard output go the messages "event", "warning", and at the end "ended", with the errors of
lanes that failed, or "refused", with the error that kept all of them from advancing.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import warnings

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.running.advance import advance_lanes
from tfbnn.engine.running.workers.process import error_to_json, send
from tfbnn.run.events import Event
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
    stop = threading.Event()
    threading.Thread(target=_listen, args=(stop,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: stop.set())

    def notify(event: Event) -> bool:
        send(messages, "event", event.to_dict())
        return stop.is_set()

    try:
        failures = advance_lanes(**order, notify=notify)[0].failures
    except Exception as error:
        send(messages, "refused", error_to_json(error))
    else:
        ended = [[chains, error_to_json(error)] for chains, error in failures.items()]
        send(messages, "ended", ended)
    os._exit(0)  # nothing is left to be done; libraries take long, or crash, when they are unloaded


def _listen(stop: threading.Event) -> None:
    while sys.stdin.readline():
        stop.set()
    os._exit(_ORPHANED)


if __name__ == "__main__":
    main()
