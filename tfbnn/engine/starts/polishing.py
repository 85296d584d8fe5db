"""Levenberg-Marquardt on one start after the other, committed on the way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from tfbnn.engine.density.data import Data
from tfbnn.engine.starts.judge import Judge
from tfbnn.engine.starts.newton import NewtonState, polish
from tfbnn.engine.starts.newton_plan import NewtonPlan
from tfbnn.engine.starts.turns import Turns
from tfbnn.run.counters import Seconds
from tfbnn.run.events import NewtonEvent
from tfbnn.run.preparation import Search, Stand
from tfbnn.run.progress import Notifier
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

_STAGE = "newton"


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


class _Progress(NamedTuple):
    """How far Levenberg-Marquardt is; a new one after each iteration.

    Attributes:
        reached: NewtonState of each start that was tried.
        done: Turns that have ended.
    """

    reached: tuple[NewtonState, ...] = ()
    done: int = 0

    def at(self, start: int) -> NewtonState | None:
        """The state of a start, None before its first iteration."""
        return self.reached[start] if start < len(self.reached) else None

    def after(self, start: int, state: NewtonState) -> _Progress:
        """With another state of a start."""
        return self._replace(reached=(*self.reached[:start], state, *self.reached[start + 1 :]))

    def stand(self, adam: Unpolished, seconds: float) -> Stand:
        """What a later process needs to go on."""
        spent = asdict(adam.seconds + Seconds(pretraining=seconds))
        reached, arrays = self.reached, {"adam": adam.theta}
        content = {"stage": _STAGE, "text": adam.text, "seconds": spent, "done": self.done}
        if reached:
            arrays["theta"] = np.stack([state.theta for state in reached])
            arrays["gradient"] = np.stack([state.gradient for state in reached])
            arrays["damping"] = np.array([state.damping for state in reached])
            arrays["log_prob"] = np.concatenate([state.log_prob for state in reached])
            arrays["lengths"] = np.array([len(state.log_prob) for state in reached])
            arrays["best"] = np.stack([state.best for state in reached])
            arrays["scores"] = np.concatenate([state.scores for state in reached])
        return Stand(content, arrays)

    @classmethod
    def read(cls, found: Stand | None) -> _Progress:
        """What `stand` said, or the beginning."""
        if found is None or "theta" not in found.arrays:
            return cls()
        arrays = found.arrays
        ends = np.cumsum(arrays["lengths"])[:-1]
        histories = np.split(arrays["log_prob"], ends)
        # Without a judge there are no scores.
        scores = np.split(arrays["scores"], ends if len(arrays["scores"]) else 0 * ends)
        reached = [
            NewtonState(theta, gradient, float(damping), history.tolist(), best, judged.tolist())
            for theta, gradient, damping, history, best, judged in zip(
                *(arrays[name] for name in ("theta", "gradient", "damping")),
                histories,
                arrays["best"],
                scores,
            )
        ]
        return cls(tuple(reached), found.content["done"])


def after_adam(search: Search) -> Unpolished | None:
    """What ADAM left an earlier process, which was polishing."""
    found = search.found_in(_STAGE)
    if found is None:
        return None
    content = found.content
    return Unpolished(found.arrays["adam"], content["text"], Seconds(**content["seconds"]))


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
    search: Search,
) -> Polished:
    """Starts after Levenberg-Marquardt, where that made them better.

    With a judge those are better that predict held-out rows better. Without one it has to gain at
    least so much log density: a Gaussian posterior's is typically P / 2 below its maximum. A start
    that is closer to the maximum than P is as good as polished: further up, it would only fit the
    noise.
    """
    began, interrupted, before = time.perf_counter(), False, 0.0
    progress, judge = _Progress.read(search.found_in(_STAGE)), ground.judge
    first = start = progress.done

    def stand() -> Stand:
        return progress.stand(adam, time.perf_counter() - began)

    def show(state: NewtonState) -> bool:
        nonlocal progress
        turn, progress = progress.done, progress.after(start, state)
        ended, seconds = turns.planned(turn), time.perf_counter() - began
        event = NewtonEvent(
            phase="newton",
            transition=ended + len(state.log_prob) - 1 - turns.before(turn),
            num_transitions=turns.planned(turns.count),
            num_chains=len(adam.theta),
            seconds=seconds,
            # A turn may end early: only those before it tell how long one takes.
            eta_seconds=_time_to_go(before, seconds, turns, first, turn),
            log_prob=state.log_prob[-1],
        )
        stopped = notify(event)
        search.keep(stand, now=stopped)
        return stopped

    try:
        while progress.done < turns.count and not notify.stopped:
            before = time.perf_counter() - began
            start = turns.start(progress.done, progress.reached)
            with notify.within(notify.seconds_left / (turns.count - progress.done)):
                state = polish(
                    spec,
                    adam.theta[start],
                    ground.sought_on,
                    turns.most(progress.done),
                    plan.method,
                    show,
                    least,
                    progress.at(start),
                    judge=judge,
                    noise_floor=None if judge is None else judge.noise_floor,
                )
            if not notify.stopped:
                progress = progress.after(start, state)._replace(done=progress.done + 1)
    except KeyboardInterrupt:
        interrupted = True
        search.keep(stand, now=True)
    results, theta = progress.reached, adam.theta.copy()
    kept, text = _chosen(results, plan, turns, least, judge is not None)
    for chain in kept:
        theta[chain] = results[chain].best
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


def _time_to_go(before: float, seconds: float, turns: Turns, first: int, turn: int) -> float:
    """Seconds that turns still take, of which those from `first` on to this one took `before`.

    NaN in the first of them.
    """
    if turn == first:
        return np.nan
    ended, whole = (turns.planned(number) - turns.planned(first) for number in (turn, turns.count))
    return max(before * whole / ended - seconds, 0.0)
