"""Progress events of a run, for the progress line and for callbacks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tfbnn.run.counters import PHASES, Counters
from tfbnn.run.plan import Plan

# A chain that has not moved for so many transitions is named in the events of the run.
_STANDING_STILL = 20
# Chains that stand still accept either all proposals or none; this separates the two cases.
_ACCEPTED = 0.5


@dataclass(frozen=True, kw_only=True)
class Event:
    """Progress of a phase of a run.

    Attributes:
        phase: "pretraining", "population", "newton", "warmup" or "sampling".
        transition, num_transitions: Steps of the phase so far, and in all.
        num_chains: Chains that take part.
        seconds, eta_seconds: Seconds spent in the phase, and estimated seconds left; NaN if unknown.
        total_eta_seconds: Estimated seconds left of the run, including all later phases. NaN until the
            chains move, because only then their speed is known.
        is_open: Whether the run may end earlier, when its draws are good enough.
        unit: Unit of `transition`: "steps" of ADAM, "temperatures" of a population,
            "iterations" of Levenberg-Marquardt, "transitions" of a chain.
    """

    unit: ClassVar[str] = "transitions"
    phase: str
    transition: int
    num_transitions: int
    num_chains: int
    seconds: float
    eta_seconds: float
    total_eta_seconds: float = math.nan
    is_open: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the dict passed to callbacks, JSON-able except for NaN."""
        return vars(self) | {"unit": self.unit}

    def count(self) -> tuple[int, int, str]:
        """Return (number so far, total, unit) for display."""
        return self.transition, self.num_transitions, self.unit

    def remarks(self) -> Iterator[str]:
        """Yield further texts for the progress line."""
        return iter(())


@dataclass(frozen=True, kw_only=True)
class PretrainingEvent(Event):
    """An event of ADAM.

    The validation log likelihood is a mean over rows and chains, NaN without rows.
    """

    unit = "steps"
    epoch: int
    validation_log_likelihood: float

    def count(self) -> tuple[int, int, str]:
        """Return the progress in epochs, which all have the same number of steps."""
        return self.epoch, self.num_transitions * self.epoch // max(self.transition, 1), "epochs"

    def remarks(self) -> Iterator[str]:
        if math.isfinite(self.validation_log_likelihood):
            yield f"validation log likelihood {self.validation_log_likelihood:.3f}"


@dataclass(frozen=True, kw_only=True)
class PopulationEvent(Event):
    """An event of a cooled population at a temperature. The total number of temperatures is an estimate."""

    unit = "temperatures"
    temperature: float


@dataclass(frozen=True, kw_only=True)
class NewtonEvent(Event):
    """An event of Levenberg-Marquardt, with the log density of the current chain."""

    unit = "iterations"
    log_prob: float


class Look(NamedTuple):
    """Result of a check of the draws of a run by its stopping rule.

    Attributes:
        num_judged: Draws per chain at the check.
        rhat: R-hat of the function at 95 % of the reference inputs, or the largest R-hat if that is too
            large.
        ess: The smallest effective sample size there, of bulk and tail.
    """

    num_judged: int
    rhat: float
    ess: float


@dataclass(frozen=True, kw_only=True)
class SamplingEvent(Event):
    """An event of the chains, after a block, and after a check of the draws by `until`.

    Attributes besides those of an Event:
        num_kept: Draws that every chain has kept.
        acceptance_rate, step_size: Mean over the last blocks, and median, of all chains.
        num_divergent, num_gradients: Totals of all chains so far; the latter in this phase.
        num_judged, rhat, ess: Fields of the last `Look`; 0 and NaN before the first.
        standing_still: Chains that have not moved for long.
        groups: Counters of the chain groups.
    """

    num_kept: int
    acceptance_rate: float
    step_size: float
    num_divergent: int
    num_gradients: int
    num_judged: int = 0
    rhat: float = math.nan
    ess: float = math.nan
    standing_still: list[int]
    groups: Sequence[Counters]

    @classmethod
    def of(
        cls, phase: str, groups: Sequence[Counters], plan: Plan, seconds: float
    ) -> SamplingEvent:
        """Return the event of a run with these chain groups; `seconds` is the time spent in the phase."""
        total = plan.num_transitions(phase)
        done = float(np.mean([group.transitions[phase] for group in groups]))
        later = sum(plan.num_transitions(name) for name in PHASES[PHASES.index(phase) + 1 :])
        pace = seconds / done if done else math.nan
        return cls(
            phase=phase,
            transition=int(done),
            num_transitions=total,
            num_chains=sum(len(group.chains) for group in groups),
            num_kept=min(group.transitions["sampling"] for group in groups) // plan.stride,
            seconds=seconds,
            eta_seconds=pace * (total - done),
            total_eta_seconds=pace * (total - done + later),
            is_open=plan.is_open,
            acceptance_rate=_known(np.mean, [group.recent_acceptance for group in groups]),
            step_size=_known(np.median, [group.step_size for group in groups]),
            num_divergent=sum(int(group.num_divergent.sum()) for group in groups),
            num_gradients=sum(int(group.num_gradients[phase].sum()) for group in groups),
            standing_still=[
                chain
                for group in groups
                for chain, refused in zip(group.chains, group.num_refused)
                if refused >= _STANDING_STILL
            ],
            groups=groups,
        )

    @property
    def idle(self) -> list[int]:
        """Chains standing still that accept their proposals, because their steps are rounded to zero."""
        acceptance = {
            chain: rate
            for group in self.groups
            for chain, rate in zip(group.chains, group.recent_acceptance)
        }
        return [chain for chain in self.standing_still if acceptance[chain] > _ACCEPTED]

    def after(self, look: Look) -> SamplingEvent:
        """Return this event with the result of a check added."""
        return replace(self, **look._asdict())

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"groups": [group.to_json() for group in self.groups]}

    def remarks(self) -> Iterator[str]:
        # Problems come first, because later remarks are dropped if there is no room.
        if self.num_divergent:
            yield f"{self.num_divergent} divergent"
        if math.isfinite(self.ess):
            yield f"ESS {self.ess:.0f}"
        if math.isfinite(self.rhat):
            yield f"R-hat {self.rhat:.3g}"
        if math.isfinite(self.acceptance_rate):
            yield f"acceptance {self.acceptance_rate:.2f}"
        if math.isfinite(self.step_size):
            yield f"step size {self.step_size:.3g}"


def _known(average: Any, values: list[Any]) -> float:
    known = np.concatenate(values)
    known = known[~np.isnan(known)]
    return float(average(known)) if len(known) else float("nan")


# Fields of events that are kept in the history, if an event has them.
_COLUMNS = (
    "transition",
    "seconds",
    "epoch",
    "validation_log_likelihood",
    "log_prob",
    "num_kept",
    "acceptance_rate",
    "step_size",
    "num_divergent",
    "num_gradients",
)
# Most rows of a history table. In a run of days every second row is removed when there are more.
_MOST_ROWS = 2000

Columns = dict[str, list[Any]]


def rows_of(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows to keep of an event: (phase, row), and ("looks", row) after a check of the draws."""
    yield event.phase, {name: getattr(event, name) for name in _COLUMNS if hasattr(event, name)}
    if isinstance(event, SamplingEvent) and event.num_judged:
        yield "looks", {"num_results": event.num_judged, "rhat": event.rhat, "ess": event.ess}


class HistoryTable:
    """Table of a history. The first entry of a row is the progress; of equal ones the last row is kept."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._stride, self._count, self._kept = 1, 0, 0

    def add(self, row: dict[str, Any]) -> None:
        """Add a row. It replaces the last row if that one is not to be kept."""
        if self._rows and _first(self._rows[-1]) == _first(row):
            self._rows[-1] = row
            return
        del self._rows[self._kept :]
        self._rows.append(row)
        if self._count % self._stride == 0:
            self._kept = len(self._rows)
        self._count += 1
        if self._kept > _MOST_ROWS:
            self._rows, self._stride = self._rows[::2], 2 * self._stride
            self._kept = len(self._rows)

    def columns(self) -> Columns:
        """Return the table as a dict of columns, name -> list."""
        return {name: [row[name] for row in self._rows] for name in self._rows[0]}


def _first(row: dict[str, Any]) -> Any:
    return next(iter(row.values()))
