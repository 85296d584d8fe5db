"""Levenberg-Marquardt on one start after the other, committed on the way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from tfbnn.engine.density.data import Data
from tfbnn.engine.starts.newton import NewtonPlan, NewtonState, polish
from tfbnn.run.counters import Seconds
from tfbnn.run.events import NewtonEvent
from tfbnn.run.preparation import Search, Stand
from tfbnn.run.progress import Notifier
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.system.arrays import Array

_STAGE = "newton"


class Unpolished(NamedTuple):
    """What ADAM has left: theta [C, P], a line on it, and the seconds of the search so far."""

    theta: Array
    text: str
    seconds: Seconds
    interrupted: bool = False


class Polished(NamedTuple):
    """Starts theta [C, P], a line on how they came about, and whether the user asked to stop."""

    theta: Array
    text: str
    interrupted: bool


class _Progress(NamedTuple):
    """How far Levenberg-Marquardt is; a new one after each iteration.

    Attributes:
        results: NewtonState of each start that is done.
        state: That of the next start, None before its first iteration.
    """

    results: tuple[NewtonState, ...] = ()
    state: NewtonState | None = None

    @property
    def reached(self) -> tuple[NewtonState, ...]:
        """The states of all starts that were tried."""
        return self.results if self.state is None else (*self.results, self.state)

    def stand(self, adam: Unpolished, seconds: float) -> Stand:
        """What a later process needs to go on."""
        spent = asdict(adam.seconds + Seconds(pretraining=seconds))
        reached, arrays = self.reached, {"adam": adam.theta}
        content = {"stage": _STAGE, "text": adam.text, "seconds": spent, "done": len(self.results)}
        if reached:
            arrays["theta"] = np.stack([state.theta for state in reached])
            arrays["gradient"] = np.stack([state.gradient for state in reached])
            arrays["damping"] = np.array([state.damping for state in reached])
            arrays["log_prob"] = np.concatenate([state.log_prob for state in reached])
            arrays["lengths"] = np.array([len(state.log_prob) for state in reached])
        return Stand(content, arrays)

    @classmethod
    def read(cls, found: Stand | None) -> _Progress:
        """What `stand` said, or the beginning."""
        if found is None or "theta" not in found.arrays:
            return cls()
        arrays, done = found.arrays, found.content["done"]
        histories = np.split(arrays["log_prob"], np.cumsum(arrays["lengths"])[:-1])
        reached = [
            NewtonState(theta, gradient, float(damping), history.tolist())
            for theta, gradient, damping, history in zip(
                arrays["theta"], arrays["gradient"], arrays["damping"], histories
            )
        ]
        return cls(tuple(reached[:done]), reached[done] if len(reached) > done else None)


def after_adam(search: Search) -> Unpolished | None:
    """What ADAM left an earlier process, which was polishing."""
    found = search.found_in(_STAGE)
    if found is None:
        return None
    content = found.content
    return Unpolished(found.arrays["adam"], content["text"], Seconds(**content["seconds"]))


def polish_all(
    spec: ModelSpec,
    data: Data,
    adam: Unpolished,
    plan: NewtonPlan,
    least: float,
    notify: Notifier,
    search: Search,
) -> Polished:
    """Starts after Levenberg-Marquardt where it gained at least so much.

    A Gaussian posterior's log density is typically P / 2 below its maximum. A start that is closer
    to the maximum than P is as good as polished: further up, it would only fit the noise.
    """
    began, interrupted, before = time.perf_counter(), False, 0.0
    progress = _Progress.read(search.found_in(_STAGE))
    total, first = plan.num_iterations * len(adam.theta), len(progress.results)

    def stand() -> Stand:
        return progress.stand(adam, time.perf_counter() - began)

    def show(state: NewtonState) -> bool:
        nonlocal progress
        progress = progress._replace(state=state)
        done = plan.num_iterations * len(progress.results) + len(state.log_prob) - 1
        seconds, ended = time.perf_counter() - began, len(progress.results) - first
        event = NewtonEvent(
            phase="newton",
            transition=done,
            num_transitions=total,
            num_chains=len(adam.theta),
            seconds=seconds,
            # A start may end early: only those before it tell how long one takes.
            eta_seconds=_time_to_go(before, seconds, ended, len(adam.theta) - first),
            log_prob=state.log_prob[-1],
        )
        stopped = notify(event)
        search.keep(stand, now=stopped)
        return stopped

    try:
        while len(progress.results) < len(adam.theta) and not notify.stopped:
            before = time.perf_counter() - began
            start, state = adam.theta[len(progress.results)], progress.state
            method, count = plan.method, plan.num_iterations
            state = polish(spec, start, data, count, method, show, least, state)
            if not notify.stopped:
                progress = _Progress((*progress.results, state))
    except KeyboardInterrupt:
        interrupted = True
        search.keep(stand, now=True)
    return Polished(*_chosen(adam.theta, progress.reached, plan, least), interrupted)


def _chosen(
    theta: Array, results: Sequence[NewtonState], plan: NewtonPlan, least: float
) -> tuple[Array, str]:
    """Starts [C, P], the results where they gained at least so much, and a line on them."""
    if not results:
        return theta, "Levenberg-Marquardt was stopped"
    counts = [len(result.log_prob) - 1 for result in results]
    gains = np.array([result.gain for result in results])
    kept = np.flatnonzero(gains >= least)
    text = f"Levenberg-Marquardt ({plan.reason})"
    if not max(counts):  # where the log density is not finite there is no gain to speak of
        text += " found no step that raises the log density"
    elif len(kept):
        text += (
            f", {min(counts)} to {max(counts)} iterations, log density up by "
            f"{min(gains):.4g} to {max(gains):.4g}"
        )
        if len(kept) < len(results):
            text += f", kept for {len(kept)} of {len(results)} starts: it gained little for others"
    else:
        text += f" left out after {max(counts)} iterations: it gained too little to matter"
    theta = theta.copy()
    for chain in kept:
        theta[chain] = results[chain].theta
    return theta, text


def _time_to_go(before: float, seconds: float, ended: int, count: int) -> float:
    """Seconds that so many starts still take, of which `ended` took `before`; NaN before the first."""
    return max(before * count / ended - seconds, 0.0) if ended else np.nan
