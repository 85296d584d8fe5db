"""The stopping rule of a run: whether the draws at a look are enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfbnn.diagnostics.agreement import Agreement
from tfbnn.run.events import Look
from tfbnn.run.result import Kept
from tfbnn.run.until import Until
from tfbnn.system.arrays import Array

# Share of the most draws from which a score that does not change ends a run: before, chains may come to agree.
_LEAST_SHARE = 0.5


@dataclass(frozen=True)
class StoppingRule:
    """Says when a run that has an `Until` is over.

    Attributes:
        until: What is asked of the draws.
        num_results: The most draws per chain.
        measure: Returns the Agreement of chains, given what they have kept and their superchains or None.
        is_budget: Whether `num_results` is what the run can afford, not what somebody asked for.
        score: Returns the mean log density of a row under draws [C, S, P], of a fit to rows.
        superchains: As in `Starts`, once they are known.
    """

    until: Until
    num_results: int
    measure: Callable[[Kept, Array | None], Agreement]
    is_budget: bool = False
    score: Callable[[Array], float] | None = None
    superchains: Array | None = None

    def check(self, kept: Kept) -> tuple[Look, str | None]:
        """Return what the draws are worth, and why the run ends with them; None where it goes on."""
        superchains = kept.superchains(self.superchains)
        found, until, count = self.measure(kept, superchains), self.until, kept.draws.shape[1]
        text, after = found.text(until.rhat), f"after {count} draws per chain"
        look = Look(count, found.decisive_rhat(until.rhat), found.smallest_ess)
        if found.is_enough(until.ess, until.rhat):
            return look, f"{text} {after}"
        score, most = self.score, until.score_change
        if score is not None and most is not None and count >= _LEAST_SHARE * self.num_results:
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
