"""How far the chains of a run go: asked whenever all of them are where they were to go.

The one place that says so, for lanes on threads and as tasks on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tfbnn.run.events import Look
from tfbnn.run.result import Kept
from tfbnn.run.until import next_look

if TYPE_CHECKING:
    from tfbnn.run.crew import Crew
    from tfbnn.run.stores import Store


class Standing(NamedTuple):
    """What was found when the draws of a run were looked at.

    Attributes:
        is_enough: Whether they are good enough.
        text: By which numbers, "ESS 412 and R-hat 1.006" say.
        rhat, ess: The two numbers.
    """

    is_enough: bool
    text: str
    rhat: float
    ess: float


Judge = Callable[[Kept], Standing]


@dataclass(frozen=True)
class Goal:
    """When a run is over that need not go on to its last draw.

    Attributes:
        num_results: The most draws per chain.
        judge: Says of draws whether they are enough.
        is_budget: Whether that number is what the run can afford, not what somebody asked for.
    """

    num_results: int
    judge: Judge
    is_budget: bool


class Course:
    """How far the lanes of a crew go: to a number of draws, without a look on the way.

    Attributes:
        ended: Why the run has ended, in words; None where nobody asks, or it has not.
        look: What was found when the draws were looked at last; None before.
    """

    ended: str | None = None
    look: Look | None = None

    def __init__(self, num_results: int) -> None:
        """
        Args:
            num_results: Draws per chain.
        """
        self._num_results = num_results

    def next(self, crew: Crew) -> int | None:
        """Draws per chain to go to next; None where nothing is left to do.

        Called before the lanes set out, and again whenever all that have not failed are there.
        """
        has_way_to_go = any(count < self._num_results for count in crew.num_kept)
        return self._num_results if has_way_to_go else None


class Judged(Course):
    """From look to look, until the draws are enough or there are as many as there may be.

    Looks are at fixed numbers of draws (`next_look`) and chains wait there for each other, so that
    what is kept does not depend on who was faster.
    """

    def __init__(self, goal: Goal, store: Store) -> None:
        """
        Args:
            goal: Goal.
            store: Where the draws are.
        """
        super().__init__(goal.num_results)
        self._goal, self._store = goal, store

    def next(self, crew: Crew) -> int | None:
        counts, most = crew.num_kept, self._num_results
        if not counts:
            return None
        # Of a run that goes on, chains may be anywhere between two looks, and together by chance.
        furthest = max(counts)
        look = min(next_look(furthest - 1), most)
        if min(counts) < look:
            return look
        self.ended = self._end(crew, min(counts))
        return None if self.ended else min(next_look(furthest), most)

    def _end(self, crew: Crew, num_results: int) -> str | None:
        """Why a run ends with so many draws of all its chains, or None."""
        found = self._goal.judge(self._store.read(crew.healthy))
        self.look = Look(num_results, found.rhat, found.ess)
        after = f"after {num_results} draws per chain"
        if found.is_enough:
            return f"{found.text} {after}"
        if num_results < self._num_results:
            return None
        if self._goal.is_budget:
            counts = [crew.counters[lane].num_gradients for lane in crew.healthy]
            total = sum(int(one.sum()) for phases in counts for one in phases.values())
            return f"budget of {total} gradients spent: {found.text} {after}"
        return f"num_results={num_results} reached: {found.text}"
