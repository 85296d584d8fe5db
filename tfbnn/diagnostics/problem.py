"""What is wrong with a run, what it spoils, and what to do, in the words of who asks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from tfbnn.diagnostics.wording import wrapped


class Spoils(IntEnum):
    """What a problem makes unusable; means without knowing them are no ground for error bars."""

    NOTHING = 0
    ERROR_BARS = 1
    MEANS = 2


VERDICTS = {
    Spoils.NOTHING: "usable for error bars",
    Spoils.ERROR_BARS: "usable for means, not yet for error bars",
    Spoils.MEANS: "not yet",
}


@dataclass(frozen=True)
class Interface:
    """In whose words advice is given.

    Attributes:
        is_command_line: Whether to name commands and options; else calls and arguments.
        folder: The run folder, or None where there is none, so that only a new fit goes on.
    """

    is_command_line: bool = False
    folder: str | None = None

    @property
    def details(self) -> str:
        """How to get the whole report."""
        if self.is_command_line:
            return "--verbose 2, or later: tfbnn diagnose MODEL.h5"
        return "run.report(details=True)"

    def more_draws(self, num_results: int) -> str:
        """How to get so many draws per chain."""
        if self.is_command_line:
            begin = "fit ..." if self.folder is None else f"resume {shlex.quote(self.folder)}"
            return f"tfbnn {begin} --num-results {num_results}"
        if self.folder is None:
            return f"fit_posterior(..., num_results={num_results})"
        return f"tfbnn.resume({self.folder!r}, num_results={num_results})"


PYTHON = Interface()


@dataclass(frozen=True)
class Remedy:
    """What to do next.

    Attributes:
        python, command: In calls, and in options of the command line.
        num_results: Draws per chain to go on to, named before what else is said; or None.
    """

    python: str = ""
    command: str = ""
    num_results: int | None = None

    def words(self, interface: Interface) -> str:
        """What to do, in the words of an interface."""
        more = "" if self.num_results is None else interface.more_draws(self.num_results)
        other = self.command if interface.is_command_line else self.python
        return "; ".join(text for text in (more, other) if text)


# Settings of one's own hold out nothing unless told to, and starts are the worse for it.
LONGER_SEARCH = Remedy(
    "a longer Pretraining(epochs=..., early_stopping=..., validation_split=0.15)",
    "more --epochs, with --early-stopping and --validation-split 0.15",
)
ABOVE_FIRST = Remedy("first what stands above", "first what stands above")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        what: What it is and by how much, in a short sentence without a full stop.
        why: What it means, in sentences, for those who ask.
        remedy: Remedy.
        spoils: Spoils.
    """

    what: str
    why: str
    remedy: Remedy
    spoils: Spoils

    def sentences(self, interface: Interface, details: bool = True) -> str:
        """The problem, what it means where that is asked for, and what to do next."""
        return f"{self._says(details)} Next: {self.remedy.words(interface)}"

    def lines(self, interface: Interface, width: int, details: bool = False) -> str:
        """The same broken at `width`; what to do stands by itself unless all is on one line."""
        text = f"! {self.sentences(interface, details)}"
        if len(text) <= width:
            return text
        remedy = wrapped("  Next: ", self.remedy.words(interface), width)
        return f"{wrapped('! ', self._says(details), width)}\n{remedy}"

    def _says(self, details: bool) -> str:
        return f"{self.what}. {self.why}" if details and self.why else f"{self.what}."


def verdict_of(problems: Iterable[Problem]) -> Spoils:
    """The worst that any of them spoils; a key of VERDICTS."""
    return max((problem.spoils for problem in problems), default=Spoils.NOTHING)
