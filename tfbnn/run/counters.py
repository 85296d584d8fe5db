"""Counters of a chain group, and the seconds of a run."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np

from tfbnn.system.arrays import Array
from tfbnn.system.words import plain

PHASES = ("warmup", "sampling")


@dataclass(frozen=True, eq=False)
class Counters:
    """Progress of a chain group of C chains. It is never changed, but replaced.

    Attributes:
        chains: Indices of its chains.
        transition: Transitions of each chain so far.
        transitions: Dict phase -> number of transitions in it.
        acceptance_sum, num_gradients: Dict phase -> sums over its transitions [C].
        num_divergent: Divergent transitions of the sampling phase [C].
        num_refused: Transitions since the last block in which a chain moved [C].
        recent_acceptance: Mean acceptance over the last block [C], NaN before it.
        step_size: Step sizes in use [C], NaN before they are known.
        warmup_cut: Number of warm-up transitions if a time limit has cut warm-up short, else None.
        seconds: Dict field of Seconds -> wall-clock seconds that the run had spent at this commit, None
            elsewhere. Earlier releases recorded only the phases.
    """

    chains: list[int]
    transition: int
    transitions: dict[str, int]
    acceptance_sum: dict[str, Array]
    num_gradients: dict[str, Array]
    num_divergent: Array
    num_refused: Array
    recent_acceptance: Array
    step_size: Array
    warmup_cut: int | None = None
    seconds: dict[str, float] | None = None

    @classmethod
    def nothing(cls, chains: Sequence[int]) -> "Counters":
        """Return the counters of a chain group that has made no transition."""
        zeros, unknown = np.zeros(len(chains), int), np.full(len(chains), np.nan)
        return cls(
            chains=list(chains),
            transition=0,
            transitions=dict.fromkeys(PHASES, 0),
            acceptance_sum=dict.fromkeys(PHASES, np.zeros(len(chains))),
            num_gradients=dict.fromkeys(PHASES, zeros),
            num_divergent=zeros,
            num_refused=zeros,
            recent_acceptance=unknown,
            step_size=unknown,
        )

    def after_block(
        self, phase: str, count: int, acceptance_sum: Array, num_gradients: Array, **others: Any
    ) -> "Counters":
        """Return the counters after `count` more transitions of a phase.

        The other arguments are new values of fields.
        """
        return replace(
            self,
            transition=self.transition + count,
            transitions=_raised(self.transitions, phase, count),
            acceptance_sum=_raised(self.acceptance_sum, phase, acceptance_sum),
            num_gradients=_raised(self.num_gradients, phase, num_gradients),
            recent_acceptance=(acceptance_sum / count).astype(float),
            **others,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the dict that checkpoints and messages hold; None stands for NaN."""
        return {name: plain(value) for name, value in vars(self).items() if value is not None}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Counters":
        """Read the dict of `to_json`."""
        plain = ("chains", "transition", "transitions", "warmup_cut", "seconds")
        return cls(**{name: v if name in plain else _arrays(v) for name, v in entry.items()})


def _raised(values: dict[str, Any], phase: str, by: Any) -> dict[str, Any]:
    return values | {phase: values[phase] + by}


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _arrays(part) for name, part in value.items()}
    return np.array([np.nan if number is None else number for number in value])


@dataclass(frozen=True)
class Seconds:
    """Wall-clock seconds of a run by category. Each second counts once, however many threads wait."""

    startup: float = 0.0
    compile: float = 0.0
    pretraining: float = 0.0
    warmup: float = 0.0
    sampling: float = 0.0

    def __add__(self, other: "Seconds") -> "Seconds":
        return Seconds(*(a + b for a, b in zip(astuple(self), astuple(other))))

    @property
    def phases(self) -> dict[str, float]:
        """Dict phase -> the seconds spent in it."""
        return {phase: getattr(self, phase) for phase in PHASES}

    @classmethod
    def committed(cls, groups: Sequence[Counters]) -> "Seconds":
        """Return the seconds since a run began, from the commits of its chain groups."""
        found = [group.seconds for group in groups if group.seconds is not None]
        names = [item.name for item in fields(cls)]
        return cls(**{name: max([0.0, *(one.get(name, 0.0) for one in found)]) for name in names})


class Clock:
    """Measures the seconds of a run. Other threads may read it at any time."""

    def __init__(self, seconds: Seconds = Seconds()) -> None:
        """Make a Clock.

        Args:
            seconds: Seconds spent before.
        """
        self._state = seconds, "", 0.0

    @property
    def seconds(self) -> Seconds:
        """Seconds spent so far."""
        spent, name, since = self._state
        return spent + Seconds(**{name: time.perf_counter() - since}) if name else spent

    def add(self, seconds: Seconds) -> None:
        """Add seconds that were spent elsewhere. Must not be called inside `measure`."""
        self._state = self.seconds + seconds, "", 0.0

    def count_as(self, name: str) -> None:
        """Count the time from now on as this field of Seconds, or not at all for ""."""
        self._state = self.seconds, name, time.perf_counter()

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Count the time inside the context as a field of Seconds."""
        self.count_as(name)
        try:
            yield
        finally:
            self.count_as("")
