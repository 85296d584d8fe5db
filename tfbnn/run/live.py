"""The line of a run at the foot of a terminal.

Rich draws it, moves its clock, and lets what the process prints meanwhile pass above it.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TextIO, cast

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.segment import ControlType, Segment

from tfbnn.run.wording import fitted
from tfbnn.system.terminals import Forgiving, columns, same_file

_PER_SECOND = 2.0


class LiveLine:
    """A line that is drawn anew twice a second, by a thread that ends with the process."""

    def __init__(self, stream: TextIO, parts: Callable[[], Sequence[str]]) -> None:
        """
        Args:
            stream: A terminal.
            parts: Function that returns the parts of the line as it should be now.
        """
        self._stream, self._parts = stream, parts
        self._console = Console(
            file=cast(IO[str], Forgiving(stream)),
            force_terminal=True,
            force_jupyter=False,
            # What others print is no markup.
            markup=False,
            emoji=False,
            highlight=False,
        )
        self._live = Live(
            console=self._console,
            get_renderable=self._line,
            refresh_per_second=_PER_SECOND,
            transient=True,
            # What goes to a file stays there.
            redirect_stdout=same_file(sys.stdout, stream),
            redirect_stderr=same_file(sys.stderr, stream),
        )
        self._live.start(refresh=True)
        self._console.show_cursor(True)  # a process that is killed would leave it hidden

    def changed(self) -> None:
        """Draws nothing: the thread will, in a moment."""

    def keep(self, parts: Sequence[str], seconds: float) -> None:
        """Prints the last line of a phase above, however short that was."""
        del seconds
        self._live.refresh()  # else the line of the phase that is over would stand below for a moment
        self._console.print(fitted(parts, self._width()), soft_wrap=True)

    def close(self) -> None:
        """Takes the line away."""
        self._live.stop()

    def _line(self) -> "_Line":
        parts = self._parts()
        width = self._console.width = self._width()  # asked last: the window may change any time
        return _Line(fitted(parts, width))

    def _width(self) -> int:
        # Terminals differ in what follows a letter in the last column.
        return (columns(self._stream) or 80) - 1


@dataclass(frozen=True)
class _Line:
    """What Rich is to draw."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        yield Segment(self.text)
        # Many terminals fold what is on them when they become narrower. With the cursor at the
        # beginning of the line, what is folded is below it, and goes when all there is erased.
        yield Segment("\x1b[J\r", None, [(ControlType.CARRIAGE_RETURN,)])
