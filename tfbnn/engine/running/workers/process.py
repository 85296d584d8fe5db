"""A worker process as its parent sees it, and what they tell each other: a line of JSON each time."""

import builtins
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from queue import SimpleQueue
from typing import IO, Any, TextIO

from tfbnn import exceptions
from tfbnn.system.processes import describe_ending, search_path

_PROGRAM = ("-P", "-m", "tfbnn.engine.running.workers.worker")
_MOST_LAST_WORDS = 2000


# What is told of workers: who says it, what kind of message it is, and its content.
Inbox = SimpleQueue[tuple["WorkerProcess", str, Any]]


class WorkerProcess:
    """A process that advances lanes, and a thread that hands on what it says.

    Attributes:
        lanes: The lanes that it was given.
        refusal: The error that kept it from advancing any, or None.
        failures: Dict tuple of chains -> the error that ended them.
    """

    def __init__(self, order: dict[str, Any], inbox: Inbox) -> None:
        """Starts nothing yet.

        Args:
            order: Arguments of `tfbnn.engine.running.advance.advance_lanes`, JSON-able, and with
                "num_results" the draws per chain at which it waits for `go_on`.
            inbox: A queue that gets (worker, kind, content) for each message, and (worker, "gone",
                None) when the process is no more.
        """
        self.lanes: list[int] = order["indices"]
        self.refusal: Exception | None = None
        self.failures: dict[tuple[int, ...], Exception] = {}
        self._order, self._inbox = order, inbox
        self._has_ended = self._has_advanced = self._is_killed = False
        self._process: Any = None
        self._listener: threading.Thread | None = None
        self._last_words = ""

    def start(self) -> None:
        """Starts the process.

        Raises:
            OSError: When that is impossible.
        """
        complaints = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [sys.executable, *_PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=os.environ | {"PYTHONPATH": search_path(), "OMP_NUM_THREADS": "1"},
            )
        except BaseException:
            complaints.close()
            raise
        self._tell("advance", self._order)
        self._listener = threading.Thread(target=self._listen, args=(complaints,), daemon=True)
        self._listener.start()

    def go_on(self, num_results: int) -> None:
        """Has it go on, once it has reached what it was to, to so many draws per chain."""
        self._tell("go on", num_results)

    def stop(self) -> None:
        """Makes it commit and end; at once where it has not advanced anything yet."""
        if self._has_advanced:
            self._tell("stop", None)
        elif self._process is not None:
            self._is_killed = True  # what it has said since then may still be on its way
            self._process.kill()

    def join(self) -> None:
        """Waits until it has ended."""
        if self._listener is not None:
            self._listener.join()

    @property
    def has_crashed(self) -> bool:
        """Whether it ended, or was ended, without saying so after it had advanced something."""
        return self._has_advanced and not (self._has_ended or self._is_killed)

    def describe_end(self) -> tuple[str, str]:
        """(Exit code or signal in words, a sentence with what it last wrote, if anything)."""
        ending = describe_ending(self._process.returncode)
        if self._has_ended:
            ending = "stopped by SIGTERM"
        words = self._last_words
        return ending, words and f" The last of its standard error:\n{words}"

    def _tell(self, kind: str, content: Any) -> None:
        # It may be gone already, which its listener finds out.
        with contextlib.suppress(OSError, ValueError):
            send(self._process.stdin, kind, content)

    def _listen(self, complaints: IO[bytes]) -> None:
        try:
            with complaints, self._process:
                for message in filter(None, map(parse, self._process.stdout)):
                    self._take(*message)
                    self._inbox.put((self, *message))
                self._process.wait()
                size = complaints.seek(0, os.SEEK_END)
                complaints.seek(max(0, size - _MOST_LAST_WORDS))
                self._last_words = complaints.read().decode(errors="replace").strip()
        finally:
            self._inbox.put((self, "gone", None))

    def _take(self, kind: str, content: Any) -> None:
        self._has_advanced |= kind == "event"
        if kind == "refused":
            self.refusal = error_from_json(content)
        elif kind in ("reached", "ended"):
            self._has_ended = kind == "ended"
            self.failures = {tuple(chains): error_from_json(error) for chains, error in content}


def send(stream: TextIO, kind: str, content: Any) -> None:
    """Writes a message to a text stream. Nothing is shared between lines, so one lost is one."""
    stream.write(json.dumps([kind, content]) + "\n")
    stream.flush()


def parse(line: str) -> tuple[str, Any] | None:
    """(Kind, content) of a message; None for a line that is none.

    It may be the beginning of one whose sender died, or what a library printed on start-up.
    """
    try:
        kind, content = json.loads(line)
    except (TypeError, ValueError):
        return None
    return (kind, content) if line.endswith("\n") and isinstance(kind, str) else None


def error_to_json(error: BaseException) -> list[Any]:
    """An exception as JSON: its type's name, its arguments, its traceback."""
    plain = all(isinstance(argument, (str, int, type(None))) for argument in error.args)
    arguments = list(error.args) if plain and error.args else [str(error)]
    return [type(error).__name__, arguments, "".join(traceback.format_exception(error))]


def errors_to_json(failures: Mapping[tuple[int, ...], BaseException]) -> list[Any]:
    """Errors of lanes as JSON: pairs of their chains and `error_to_json`."""
    return [[list(chains), error_to_json(error)] for chains, error in failures.items()]


def error_from_json(entry: list[Any]) -> Exception:
    """The exception that `error_to_json` described, with its traceback as a note.

    Of the types of this package and of Python it has its own; of others (TensorFlow's, say) it is
    a RuntimeError that names the type.
    """
    name, arguments, origin = entry
    kind: Any = getattr(exceptions, name, None) or getattr(builtins, name, None)
    try:
        error = kind(*arguments)
    except TypeError:
        error = None  # none of the types, or one with arguments of its own
    if not isinstance(error, Exception):
        error = RuntimeError(f"{name}: {' '.join(map(str, arguments))}")
    error.add_note(f"In a worker process:\n{origin}")
    return error
