"""Levenberg-Marquardt on one start after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfbnn.engine.density.data import Data
from tfbnn.engine.starts.judge import Judge
from tfbnn.engine.starts.newton import NewtonState, polish
from tfbnn.engine.starts.newton_plan import NewtonPlan
from tfbnn.engine.starts.turns import Turns
from tfbnn.run.counters import Seconds
from tfbnn.run.events import NewtonEvent
from tfbnn.run.progress import Notifier
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array


class Unpolished(NamedTuple):
    """What ADAM has left: theta [C, P], a line on it, and the seconds of the search so far."""

    theta: Array
    text: str
    seconds: Seconds
    interrupted: bool = False


class Polished(NamedTuple):
    """What has become of the starts.

    Attributes:
        theta: [C, P].
        kept: Numbers of those that are polished now.
        text: One line on how they came about.
        interrupted: Whether the user asked to stop.
    """

    theta: Array
    kept: tuple[int, ...]
    text: str
    interrupted: bool


class Ground(NamedTuple):
    """What starts are polished on.

    Attributes:
        data: Data of all training rows.
        fitted: Data of those that a judge leaves: all, without one.
        judge: Judge with the others, or with validation rows; or None.
        sample: Data of a sample of `fitted`, in which each row stands for several, where starts
            are sought on no others; else None.
    """

    data: Data
    fitted: Data
    judge: Judge | None
    sample: Data | None = None

    @property
    def sought_on(self) -> Data:
        """Data of the rows that ADAM sees, and Levenberg-Marquardt at first."""
        return self.fitted if self.sample is None else self.sample

    @property
    def leaves_rows_out(self) -> bool:
        """Whether there are training rows that they have not seen then."""
        return self.sought_on is not self.data


def polish_all(
    spec: NetworkSpec,
    ground: Ground,
    adam: Unpolished,
    plan: NewtonPlan,
    turns: Turns,
    least: float,
    notify: Notifier,
) -> Polished:
    """Starts after Levenberg-Marquardt, where that made them better.

    With a judge those are better that predict held-out rows better. Without one it has to gain at
    least so much log density: a Gaussian posterior's is typically P / 2 below its maximum. A start
    that is closer to the maximum than P is as good as polished: further up, it would only fit the
    noise.
    """
    began, interrupted, before = time.perf_counter(), False, 0.0
    judge, turn, start = ground.judge, 0, 0
    reached: list[NewtonState] = []  # of each start that was tried

    def show(state: NewtonState) -> bool:
        reached[start : start + 1] = [state]
        seconds = time.perf_counter() - began
        event = NewtonEvent(
            phase="newton",
            transition=turns.planned(turn) + len(state.log_prob) - 1 - turns.before(turn),
            num_transitions=turns.planned(turns.count),
            num_chains=len(adam.theta),
            seconds=seconds,
            # A turn may end early: only those before it tell how long one takes.
            eta_seconds=_time_to_go(before, seconds, turns, turn),
            log_prob=state.log_prob[-1],
        )
        return notify(event)

    try:
        while turn < turns.count and not notify.stopped:
            before = time.perf_counter() - began
            start = turns.start(turn, reached)
            with notify.within(notify.seconds_left / (turns.count - turn)):
                state = polish(
                    spec,
                    adam.theta[start],
                    ground.sought_on,
                    turns.most(turn),
                    plan.method,
                    show,
                    least,
                    reached[start] if start < len(reached) else None,
                    judge=judge,
                    noise_floor=None if judge is None else judge.noise_floor,
                )
            if not notify.stopped:
                reached[start : start + 1] = [state]
                turn += 1
    except KeyboardInterrupt:
        interrupted = True
    theta = adam.theta.copy()
    kept, text = _chosen(reached, plan, turns, least, judge is not None)
    for chain in kept:
        theta[chain] = reached[chain].best
    return Polished(theta, kept, text, interrupted)


def _chosen(
    results: Sequence[NewtonState], plan: NewtonPlan, turns: Turns, least: float, judged: bool
) -> tuple[tuple[int, ...], str]:
    """Numbers of the polished starts that are better than they were, and a line on all."""
    if not results:
        return (), "Levenberg-Marquardt was stopped"
    counts = [len(result.log_prob) - 1 for result in results]
    gains = np.array([_score_gain(result) if judged else result.gain for result in results])
    kept = np.flatnonzero(gains > 0.0 if judged else gains >= least)
    text = f"Levenberg-Marquardt ({plan.reason})"
    if not max(counts):  # where the log density is not finite there is no gain to speak of
        text += " found no step that raises the log density"
    elif len(kept):
        what = "score of held-out rows" if judged else "log density"
        text += f", {min(counts)} to {max(counts)} iterations"
        if turns.num_finalists:
            text += f" (the best {turns.num_finalists} of {turns.num_starts} went on after {turns.first})"
        text += f", {what} up by {min(gains):.4g} to {max(gains):.4g}"
        if len(kept) < len(results):
            text += f", kept for {len(kept)} of {len(results)} starts: it gained little for others"
    elif judged:
        text += f" left out after {max(counts)} iterations: held-out rows were predicted no better"
    else:
        text += f" left out after {max(counts)} iterations: it gained too little to matter"
    return tuple(kept.tolist()), text


def _score_gain(state: NewtonState) -> float:
    """By how much the best score is above that of the start."""
    return max(state.scores) - state.scores[0] if np.isfinite(state.scores[0]) else np.inf


def _time_to_go(before: float, seconds: float, turns: Turns, turn: int) -> float:
    """Seconds that turns still take, of which those before this one took `before`; NaN in the first."""
    if turn == 0:
        return np.nan
    return max(before * turns.planned(turns.count) / turns.planned(turn) - seconds, 0.0)
