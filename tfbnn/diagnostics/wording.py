"""Numbers and lines of reports as text."""

import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from tfbnn.system.arrays import Array
from tfbnn.system.terminals import columns

_WIDTH = 100  # columns if their number is unknown
_LEAST_WIDTH = 40
LABEL_WIDTH = 13  # columns of the labels left of the lines of a report
# (label, text); a continuation line has the label "".
Facts: TypeAlias = Iterator[tuple[str, str]]


def megabytes(num_bytes: float) -> str:
    """Return a size in megabytes, with one decimal below ten: "8.3 MB"."""
    size = num_bytes / 1e6
    return f"{size:.1f} MB" if size < 10 else f"{size:.0f} MB"


def percent(share: float) -> str:
    """Return a share in per cent with two digits; only 0 and 1 are shown as 0 and 100 %."""
    value = 100.0 * share
    if 0.0 < value < 0.01:
        return "under 0.01 %"
    if 99.0 < value < 100.0:
        return "over 99 %"
    return f"{value:.0f} %" if value >= 10.0 else f"{value:.2g} %"


def counted(number: int, noun: str) -> str:
    """Return a number and its noun: "1 chain", "3 chains"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def span(values: Array, form: str = ".4g") -> str:
    """Return the range of some values: "3 to 5", or "3"; "unknown" with a NaN among them."""
    low, high = np.min(values), np.max(values)
    if np.isnan(low):  # a user-defined kernel need not record it
        return "unknown"
    return f"{low:{form}}" if low == high else f"{low:{form}} to {high:{form}}"


def named(noun: str, indices: Array) -> str:
    """Return a noun and the indices that it refers to: "Chain 2", "Chains 0, 3"."""
    return f"{noun}{'s' * (len(indices) != 1)} {', '.join(str(index) for index in indices)}"


def shown(name: str) -> str:
    """Return a name from a user or a file for reports, with control characters escaped."""
    return name if name.isprintable() else ascii(name)


def labelled(label: str, lines: Iterable[str]) -> Facts:
    """Pair lines with labels: the first line has the label, the others continue it."""
    return (("" if number else label, line) for number, line in enumerate(lines))


def text_width() -> int:
    """Return the columns for text on standard output: those of a terminal, else 100."""
    return max(columns(sys.stdout) or _WIDTH, _LEAST_WIDTH)


def label_lines(facts: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Return labels and texts as lines of a report, each broken at `width`."""
    return [wrapped(label.ljust(LABEL_WIDTH), text, width) for label, text in facts]


def wrapped(label: str, text: str, width: int) -> str:
    """Return a label and its text, broken at `width` and aligned behind the label."""
    return textwrap.fill(
        label + text,
        width=width,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,  # an option of a command is one word
    )
