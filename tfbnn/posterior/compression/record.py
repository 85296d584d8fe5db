"""What a compressed ensemble says of its compression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from tfbnn.posterior.record_kinds import (
    COUNT,
    COUNTS,
    NUMBER,
    POSITIVE,
    SIZE,
    TEXT,
    Kinds,
    check_entries,
)

_SIZES = {"average": SIZE, "largest": SIZE}
_KINDS: Kinds = {
    "method": TEXT,
    "num_draws": POSITIVE,
    "num_distinct": POSITIVE,
    "num_available": POSITIVE,
    "num_candidates": POSITIVE,
    "draws_per_chain": COUNTS,
    "num_inputs": COUNT,
    "change": {
        "num_rows": POSITIVE,
        "mean_stddev": NUMBER,
        "mean": _SIZES,
        "stddev": _SIZES,
        "quantiles": _SIZES,
    },
}


class Sizes(TypedDict):
    """Absolute sizes of relative changes, over inputs and outputs."""

    average: float
    largest: float


class Change(TypedDict):
    """How far predictions are apart; `measure_change` says what the numbers are."""

    num_rows: int
    mean_stddev: float
    mean: Sizes
    stddev: Sizes
    quantiles: Sizes


@dataclass(frozen=True)
class Compression:
    """What `BayesianMLP.compress` did, and what it changed.

    Attributes:
        method: "kernel_thinning", "stein" or "stride".
        num_draws: Draws that were chosen.
        num_distinct: How many of them are different ones.
        num_available: Draws there were to choose from, of chains with a weight.
        num_candidates: The same, or fewer where the kernel had to be limited to equally spaced
            ones.
        draws_per_chain: List of the numbers chosen from every chain.
        num_inputs: Inputs that kernel thinning compared predictions at.
        change: The Change at inputs that played no role in the choice.
    """

    method: str
    num_draws: int
    num_distinct: int
    num_available: int
    num_candidates: int
    draws_per_chain: list[int]
    num_inputs: int
    change: Change

    @classmethod
    def from_json(cls, entries: Any) -> Compression:
        """Of what a file says.

        Raises:
            TypeError: For entries that are no such record.
            ValueError: For numbers that contradict each other.
        """
        check_entries("compression", entries, _KINDS)
        record = cls(**entries)
        for name, most in (
            ("num_distinct", record.num_draws),
            ("num_draws", record.num_available),
            ("num_candidates", record.num_available),
        ):
            if getattr(record, name) > most:
                raise ValueError(
                    f"compression.{name} must be at most {most}, found {getattr(record, name)}."
                )
        return record

    @property
    def choice(self) -> str:
        """One line on how many draws were chosen, and how."""
        text = f"{self.num_draws} of {self.num_available} draws by {self.method}"
        if self.num_distinct < self.num_draws:
            text += f", {self.num_distinct} of them different"
        if self.num_candidates < self.num_available:
            text += f", out of {self.num_candidates} equally spaced ones"
        return text

    def summary(self) -> str:
        """Returns the choice and the change in a few aligned lines."""
        change = self.change
        lines = [
            ("draws", self.choice),
            ("per chain", " ".join(map(str, self.draws_per_chain))),
            ("change", f"at {change['num_rows']} inputs that played no role in the choice"),
            ("", f"of the mean stddev {100 * change['mean_stddev']:+.2f} %"),
            ("", f"of a stddev {_sizes_text(change['stddev'])}"),
            ("", f"of a mean {_sizes_text(change['mean'])} of the stddev"),
            ("", f"of the 16 and 84 % quantiles {_sizes_text(change['quantiles'])} of the stddev"),
        ]
        return "\n".join(f"{label:<13}{text}" for label, text in lines)


def _sizes_text(sizes: Sizes) -> str:
    return f"{100 * sizes['average']:.2f} % on average, at most {100 * sizes['largest']:.2f} %"
