"""A pseudo-terminal with a screen that can be looked at.

It knows the few control sequences that a line needs which is drawn anew, and refuses others.
"""

import codecs
import fcntl
import os
import re
import select
import struct
import termios
import threading
import time
from contextlib import contextmanager, suppress

_TOKEN = re.compile(r"\x1b\[(?P<values>[?0-9;]*)(?P<command>[A-Za-z])|(?P<plain>[^\x1b])", re.S)
_UNFINISHED = re.compile(r"(\x1b(\[[?0-9;]*)?)?\Z")


class Screen:
    """The contents of a terminal: rows of text and a cursor; it never scrolls.

    Attributes:
        width: Columns.
    """

    def __init__(self, width):
        self.width = width
        self._rows, self._row, self._column, self._unfinished = [""], 0, 0, ""

    @property
    def lines(self):
        """The rows down to the last that is not empty."""
        rows = [row.rstrip() for row in self._rows]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def feed(self, text):
        """Does what a terminal does with a text, which may end within a control sequence."""
        text, position = self._unfinished + text, 0
        self._unfinished = _UNFINISHED.search(text)[0]
        while position < len(text) - len(self._unfinished):
            found = _TOKEN.match(text, position)
            assert found, f"unknown control sequence: {text[position : position + 10]!r}"
            position = found.end()
            if found["plain"]:
                self._put(found["plain"])
            else:
                self._control(found["command"], found["values"])

    def _put(self, letter):
        if letter == "\r":
            self._column = 0
        elif letter == "\n":
            self._down()
        else:
            assert letter.isprintable(), repr(letter)
            if self._column == self.width:
                self._down()
                self._column = 0
            row = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = row[: self._column] + letter + row[self._column + 1 :]
            self._column += 1

    def _down(self):
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append("")

    def _control(self, command, values):
        if command == "K" and values == "2":
            self._rows[self._row] = ""
        elif command == "J" and not values:
            self._rows[self._row] = self._rows[self._row][: self._column]
            del self._rows[self._row + 1 :]
        elif command == "A":
            self._row = max(self._row - int(values or 1), 0)
        else:
            # The cursor's look, and colours.
            assert (command in "hl" and values == "?25") or command == "m", (command, values)


class Terminal:
    """A pseudo-terminal whose screen is of a certain width.

    Attributes:
        stream: What a process writes to.
    """

    def __init__(self, width):
        self._master, slave = os.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        self._screen, self._lock = Screen(width), threading.Lock()
        self._unread = codecs.getincrementaldecoder("utf-8")()
        self._set_width(width)
        # Who writes to a terminal that nobody reads has to wait.
        threading.Thread(target=self._read, daemon=True).start()

    def lines(self):
        """Return the lines that stand on the screen by now."""
        with self._lock:
            while self._master is not None and select.select([self._master], [], [], 0)[0]:
                try:
                    read = os.read(self._master, 1 << 16)
                except OSError:  # the stream is closed
                    break
                self._screen.feed(self._unread.decode(read))
            return self._screen.lines

    def _read(self):
        while self._master is not None:
            self.lines()
            time.sleep(0.002)

    def wait_for(self, text):
        """The lines as soon as one of them has a text."""
        until, lines = time.monotonic() + 20, self.lines()
        while not any(text in line for line in lines):
            assert time.monotonic() < until, f"{text!r} is not among {lines}"
            time.sleep(0.002)
            lines = self.lines()
        return lines

    def hang_up(self):
        """Goes away."""
        with self._lock:
            os.close(self._master)
            self._master = None

    def close(self):
        """Gives all back."""
        with suppress(OSError):  # what nobody can read any more
            self.stream.close()
        if self._master is not None:
            self.hang_up()

    def _set_width(self, width):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))


@contextmanager
def terminal(width):
    """Yields a Terminal."""
    made = Terminal(width)
    try:
        yield made
    finally:
        made.close()
