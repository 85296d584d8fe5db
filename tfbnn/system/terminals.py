"""Standard streams and terminals, which may be closed, narrow, or lost during a command."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from tfbnn.system.words import without_controls

_MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_standard_streams() -> None:
    """Open the null device for each standard stream that is closed at the start of this process.

    Otherwise the next file that is opened would get the stream's descriptor, and text that
    libraries write to standard error would end up in the middle of a result.
    """
    for number in range(len(_MODES)):
        try:
            os.fstat(number)
        except OSError:
            # Gets the lowest free descriptor: this one, as all lower ones are open.
            os.open(os.devnull, os.O_RDWR)
    for name, mode in _MODES.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))


class _Around:
    """Wrapper of a stream, which passes on all attributes that it does not define.

    Attributes:
        stream: The wrapped stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class PlainText(_Around):
    """Text stream that writes control characters as escapes."""

    def write(self, text: str) -> int:
        self.stream.write(without_controls(text))
        return len(text)


@contextlib.contextmanager
def plain_standard_output() -> Iterator[None]:
    r"""Print through `PlainText` while active, and never fail because of the encoding.

    A character that the encoding lacks is written as an escape, such as \xe9 or \u03b1.
    """
    stream = sys.stdout
    reconfigure = getattr(stream, "reconfigure", lambda errors: None)
    errors = getattr(stream, "errors", None)
    reconfigure(errors="backslashreplace")
    try:
        with contextlib.redirect_stdout(cast(TextIO, PlainText(stream))):
            yield
    finally:
        # The reader may have closed it meanwhile.
        with contextlib.suppress(OSError, ValueError):
            reconfigure(errors=errors)


def data_output() -> TextIO:
    """Return standard output for tables: without `PlainText`, unless it is a terminal.

    Raises:
        ValueError: When standard output was closed.
    """
    stream = getattr(sys.stdout, "stream", sys.stdout)
    if getattr(stream, "name", None) == os.devnull:  # see `open_standard_streams`
        raise ValueError("Standard output is closed. Name a file to write: -o out.csv.")
    return sys.stdout if stream.isatty() else stream


class Forgiving(_Around):
    """Stream that drops all text once its terminal or reader has gone."""

    _has_failed = False

    def write(self, text: str) -> int:
        """Write a text, or drop it after a failure."""
        self._try(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream, unless it has failed."""
        self._try(self.stream.flush)

    def _try(self, call: Callable[[], Any]) -> None:
        if self._has_failed:
            return
        try:
            call()
        except (OSError, ValueError):  # ValueError: closed, or text that it cannot encode
            self._has_failed = True


def is_terminal(stream: Any) -> bool:
    """Return whether a stream, or an object used in place of one, is a terminal."""
    return bool(getattr(stream, "isatty", lambda: False)())


def columns(stream: Any) -> int | None:
    """Return the width of a terminal stream in columns, or None for another stream."""
    try:
        size = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return None
    return size or 80  # some pseudo-terminals do not know their size


def same_file(one: Any, other: Any) -> bool:
    """Return whether two streams write to the same terminal or file."""
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (AttributeError, OSError, ValueError):
        return False
