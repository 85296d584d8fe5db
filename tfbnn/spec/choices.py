"""Choices made for settings that were "auto", in one form for report and model file."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

AUTO = "auto"


@dataclass(frozen=True)
class Choice:
    """The choice made for one setting that was "auto".

    Attributes:
        what: Name of the argument: "prior", "kernel".
        chosen: The chosen value, as text.
        why: The reason in one line, with the numbers that decided.
    """

    what: str
    chosen: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} {self.chosen}: {self.why}"


def is_auto(setting: Any) -> bool:
    """Check whether a setting, which may be an array, is "auto"."""
    return isinstance(setting, str) and setting == AUTO


def choices_to_json(choices: Iterable[Choice]) -> dict[str, dict[str, str]]:
    """Return {what: {"chosen": .., "why": ..}}, as in --json and model files."""
    return {one.what: {"chosen": one.chosen, "why": one.why} for one in choices}
