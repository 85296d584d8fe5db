"""Terminals, and streams that may be one and may go away."""

import os
from collections.abc import Callable
from typing import Any, TextIO


class Forgiving:
    """A stream whose terminal or reader may go away: from then on, what is written is dropped.

    All else is that of the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        """
        Args:
            stream: Where to write.
        """
        self._stream, self._has_failed = stream, False

    def write(self, text: str) -> int:
        """Writes a text, or drops it."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flushes what was written."""
        self._try(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _try(self, call: Callable[[], Any]) -> None:
        if self._has_failed:
            return
        try:
            call()
        except (OSError, ValueError):  # ValueError: closed, or text that it cannot encode
            self._has_failed = True


def is_terminal(stream: Any) -> bool:
    """Whether a stream, which may be anything that has been put in place of one, is a terminal."""
    return bool(getattr(stream, "isatty", lambda: False)())


def columns(stream: Any) -> int | None:
    """The width of the terminal that a stream is, or None where it is none."""
    try:
        # Some pseudo-terminals have never been told their size.
        return (
            (os.get_terminal_size(stream.fileno()).columns or 80) if is_terminal(stream) else None
        )
    except (AttributeError, OSError, ValueError):
        return None


def same_file(one: Any, other: Any) -> bool:
    """Whether two streams write to the same terminal or file."""
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (AttributeError, OSError, ValueError):
        return False
