"""The stopping rule of a run: checks whether the draws so far are enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfbnn.diagnostics.agreement import Agreement
from tfbnn.run.events import Look
from tfbnn.run.result import Kept
from tfbnn.run.until import Until
from tfbnn.system.arrays import Array

# Share of the maximum draws from which an unchanged score ends a run. Before that, chains may come to agree.
_LEAST_SHARE = 0.5


@dataclass(frozen=True)
class StoppingRule:
    """Stopping rule of a run that has an `Until`.

    Attributes:
        until: The requirements on the draws.
        num_results: The most draws per chain.
        measure: Function that returns the Agreement of chains, given their kept draws and their
            superchains or None.
        is_budget: Whether `num_results` is the budget of the run and was not requested.
        score: Function that returns the mean log density of a row under draws [C, S, P], for a fit.
        superchains: As in `Starts`, once they are known.
    """

    until: Until
    num_results: int
    measure: Callable[[Kept, Array | None], Agreement]
    is_budget: bool = False
    score: Callable[[Array], float] | None = None
    superchains: Array | None = None

    def check(self, kept: Kept) -> tuple[Look, str | None]:
        """Check the draws. Return (findings, reason to end the run, or None to continue it)."""
        superchains = kept.superchains(self.superchains)
        found, until, count = self.measure(kept, superchains), self.until, kept.draws.shape[1]
        text, after = found.text(until.rhat), f"after {count} draws per chain"
        look = Look(count, found.decisive_rhat(until.rhat), found.smallest_ess)
        if found.is_enough(until.ess, until.rhat):
            return look, f"{text} {after}"
        score, most = self.score, until.score_change
        is_due = count >= max(2, _LEAST_SHARE * self.num_results)  # both halves have draws
        if score is not None and most is not None and is_due:
            change = abs(score(kept.draws) - score(kept.draws[:, : count // 2]))
            if change <= most:
                told = f"twice as many draws changed the log density of a row by {change:.2g}"
                return look, f"{told} {after}: {text}"
        if count < self.num_results:
            return look, None
        if not self.is_budget:
            return look, f"num_results={count} reached: {text}"
        gradients = (phase for group in kept.counters for phase in group.num_gradients.values())
        total = sum(int(phase.sum()) for phase in gradients)
        return look, f"budget of {total} gradients spent: {text} {after}"
