"""Choices where a setting is "auto", in one form for report and model file."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

AUTO = "auto"


@dataclass(frozen=True)
class Choice:
    """One setting that was "auto".

    Attributes:
        what: Name of the argument: "prior", "kernel".
        chosen: What it came to, as text.
        why: The reason in a line, with the numbers that decided.
    """

    what: str
    chosen: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} {self.chosen}: {self.why}"


def is_auto(setting: Any) -> bool:
    """Tell whether a setting is left open; it may be an array."""
    return isinstance(setting, str) and setting == AUTO


def choices_to_json(choices: Iterable[Choice]) -> dict[str, dict[str, str]]:
    """Return {what: {"chosen": .., "why": ..}}, as --json and model files have it."""
    return {one.what: {"chosen": one.chosen, "why": one.why} for one in choices}
