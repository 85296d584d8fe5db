"""Standard streams and terminals as a command finds them: closed, narrow, or gone on the way."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from tfbnn.system.words import without_controls

_MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_standard_streams() -> None:
    """Open the null device wherever this process was started with a standard stream closed.

    Otherwise the next file that is opened would get its number, and what libraries write to
    standard error would land in the middle of a result.
    """
    for number in range(len(_MODES)):
        try:
            os.fstat(number)
        except OSError:
            # Gets the lowest number that is free: this one, as those below are open by now.
            os.open(os.devnull, os.O_RDWR)
    for name, mode in _MODES.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))


class _Around:
    """A stream around another, which has all that this one does not change.

    Attributes:
        stream: The other.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class PlainText(_Around):
    """A text stream on which control characters come out as escapes."""

    def write(self, text: str) -> int:
        self.stream.write(without_controls(text))
        return len(text)


@contextlib.contextmanager
def plain_standard_output() -> Iterator[None]:
    r"""While active, what is printed is `PlainText`, and no character is too much for its encoding.

    One that the encoding lacks comes out as an escape, such as \xe9 or \u03b1.
    """
    stream = sys.stdout
    reconfigure = getattr(stream, "reconfigure", lambda errors: None)
    errors = getattr(stream, "errors", None)
    reconfigure(errors="backslashreplace")
    try:
        with contextlib.redirect_stdout(cast(TextIO, PlainText(stream))):
            yield
    finally:
        # It may have been closed meanwhile, by a reader that has seen enough.
        with contextlib.suppress(OSError, ValueError):
            reconfigure(errors=errors)


def data_output() -> TextIO:
    """Return the standard output for tables: as it is, unless a terminal shows it.

    Raises:
        ValueError: When it was closed.
    """
    stream = getattr(sys.stdout, "stream", sys.stdout)
    if getattr(stream, "name", None) == os.devnull:  # see `open_standard_streams`
        raise ValueError("Standard output is closed. Name a file to write: -o out.csv.")
    return sys.stdout if stream.isatty() else stream


class Forgiving(_Around):
    """A stream whose terminal or reader may go away: from then on, what is written is dropped."""

    _has_failed = False

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        self._try(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush what was written."""
        self._try(self.stream.flush)

    def _try(self, call: Callable[[], Any]) -> None:
        if self._has_failed:
            return
        try:
            call()
        except (OSError, ValueError):  # ValueError: closed, or text that it cannot encode
            self._has_failed = True


def is_terminal(stream: Any) -> bool:
    """Return whether a stream, or anything that has been put in place of one, is a terminal."""
    return bool(getattr(stream, "isatty", lambda: False)())


def columns(stream: Any) -> int | None:
    """Return the width of the terminal that a stream is, or None where it is none."""
    try:
        size = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return None
    return size or 80  # some pseudo-terminals have never been told their size


def same_file(one: Any, other: Any) -> bool:
    """Return whether two streams write to the same terminal or file."""
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (AttributeError, OSError, ValueError):
        return False
