"""In which turns starts are polished: one each, or after a trial of all the best of them go on.

Successive halving (Jamieson and Talwalkar 2016, AISTATS, Proc. Mach. Learn. Res. 51, 240) with one
round: which starts end best is plain long before the end. Of seven starts on 11746 rows of neutralinos
the best four after 40 iterations were the best four after 300, with 5-20-20-1 on raw inputs and with
6-20-20-1 on invariant ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfbnn.engine.starts.newton import NewtonState
from tfbnn.engine.starts.newton_plan import NewtonPlan
from tfbnn.spec.settings_json import Pretraining

# After half as many, one of the best four on invariant inputs was another.
_TRIAL = 40


class Turns(NamedTuple):
    """Turns of starts, one after the other: a first one of each, a last one of each finalist.

    Attributes:
        num_starts: How many are polished.
        num_finalists: How many have a second turn, 0 for none.
        first: Iterations of a start in its first turn, at most.
        last: Iterations of a finalist in both, at most.
    """

    num_starts: int
    num_finalists: int
    first: int
    last: int

    @classmethod
    def of(
        cls,
        plan: NewtonPlan,
        settings: Pretraining,
        num_starts: int,
        num_chains: int,
        is_judged: bool,
    ) -> Turns:
        """A trial of every start where there are more than chains; else one turn each.

        Finalists share half of the iterations that the others are spared: the other half is time. As
        many iterations as were asked for stay that, and where held-out rows judge, they end turns.
        """
        most = plan.num_iterations
        spared = (num_starts - num_chains) * (most - _TRIAL)
        if settings.newton_iterations != "auto" or is_judged or min(spared, most - _TRIAL) <= 0:
            return cls(num_starts, 0, most, most)
        return cls(num_starts, num_chains, _TRIAL, most + spared // (2 * num_chains))

    @property
    def count(self) -> int:
        """How many turns there are."""
        return self.num_starts + self.num_finalists

    def planned(self, turns: int) -> int:
        """Iterations of so many turns, at most."""
        second = max(turns - self.num_starts, 0)
        return (turns - second) * self.first + second * (self.last - self.first)

    def most(self, turn: int) -> int:
        """Iterations of a start up to the end of this turn, at most."""
        return self.first if turn < self.num_starts else self.last

    def before(self, turn: int) -> int:
        """Iterations of a start before this turn, at most."""
        return 0 if turn < self.num_starts else self.first

    def start(self, turn: int, reached: Sequence[NewtonState]) -> int:
        """The number of the start whose turn it is, after first turns have come to these states."""
        return turn if turn < self.num_starts else self.finalists(reached)[turn - self.num_starts]

    def finalists(self, reached: Sequence[NewtonState]) -> list[int]:
        """Numbers of the starts that had the highest log densities after their first turn."""
        scores = np.array([state.log_prob[: self.first + 1][-1] for state in reached])
        ranked = np.argsort(-scores, kind="stable")
        return sorted(ranked[: self.num_finalists].tolist())
