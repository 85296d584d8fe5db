"""Polish starts one by one by Levenberg-Marquardt: on rows that are not held out, then on all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tfbnn.engine.density.data import Data
from tfbnn.engine.starts.holdout import HoldoutScore
from tfbnn.engine.starts.newton import NewtonState, NoiseFloor, polish
from tfbnn.engine.starts.newton_plan import NewtonPlan
from tfbnn.run.config import Starts
from tfbnn.run.counters import Seconds
from tfbnn.run.events import NewtonEvent
from tfbnn.run.progress import Notifier
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

# The rows that come back change a network little: so many iterations, and of what a start may cost
# at most this share.
_MOST_ITERATIONS, _SHARE = 30, 0.25


class Ground(NamedTuple):
    """Rows that starts are polished on.

    Attributes:
        data: Data of all training rows.
        sought_on: Data of those that ADAM sees, and Levenberg-Marquardt at first: the sample, or
            else all that are not held out.
        holdout: HoldoutScore of the others, or with validation rows; or None.
        sample: Data of a sample of those that are not held out, in which each row stands for
            several, where starts are sought on no others; else None.
    """

    data: Data
    sought_on: Data
    holdout: HoldoutScore | None
    sample: Data | None = None


def _watch(notify: Notifier, num_chains: int, total: int) -> Callable[[NewtonState, int], bool]:
    """Return a function of a state, and of the iterations before its start, that reports it.

    It returns whether to stop. `total` is the most iterations of all starts together.
    """
    began = time.perf_counter()

    def watch(state: NewtonState, before: int) -> bool:
        seconds, done = time.perf_counter() - began, before + len(state.log_prob) - 1
        event = NewtonEvent(
            phase="newton",
            transition=done,
            num_transitions=total,
            num_chains=num_chains,
            seconds=seconds,
            eta_seconds=seconds * (total - done) / done,
            log_prob=state.log_prob[-1],
        )
        return notify(event)

    return watch


def polish_all(
    spec: NetworkSpec,
    ground: Ground,
    adam: Starts,
    plan: NewtonPlan,
    least: float,
    notify: Notifier,
) -> tuple[Starts, tuple[int, ...]]:
    """Return starts after Levenberg-Marquardt where that made them better, and the numbers of those.

    With held-out rows those are better that predict these rows better. Without them it has to gain at
    least so much log density: a Gaussian posterior's is typically P / 2 below its maximum. A start
    that is closer to the maximum than P is as good as polished: further up, it would only fit the
    noise.
    """
    holdout, interrupted = ground.holdout, False
    reached: list[NewtonState] = []  # of each start that was tried
    count, most = len(adam.theta), plan.num_iterations
    watch = _watch(notify, count, count * most)
    try:
        for start in range(count):
            if notify.stopped:
                break
            states = polish(
                spec,
                adam.theta[start],
                ground.sought_on,
                most,
                plan.method,
                least,
                holdout=holdout,
                noise_floor=None if holdout is None else holdout.noise_floor,
            )
            with notify.within(notify.seconds_left / (count - start)):
                for number, state in enumerate(states):
                    reached[start : start + 1] = [state]
                    if number and watch(state, start * most):
                        break
    except KeyboardInterrupt:
        interrupted = True
    theta = adam.theta.copy()
    kept, text = _chosen(reached, plan, least, holdout is not None)
    for chain in kept:
        theta[chain] = reached[chain].best
    text = f"{adam.text}; {text}"
    return adam._replace(theta=theta, text=text, interrupted=interrupted), kept


def _chosen(
    results: Sequence[NewtonState], plan: NewtonPlan, least: float, judged: bool
) -> tuple[tuple[int, ...], str]:
    """Numbers of the polished starts that are better than they were, and a line on all."""
    if not results:
        return (), "Levenberg-Marquardt was stopped"
    counts = [len(result.log_prob) - 1 for result in results]
    gains = np.array([_gain(result, judged) for result in results])
    kept = np.flatnonzero(gains > 0.0 if judged else gains >= least)
    text = f"Levenberg-Marquardt ({plan.reason})"
    if not max(counts):  # where the log density is not finite there is no gain to speak of
        text += " found no step that raises the log density"
    elif len(kept):
        what = "score of held-out rows" if judged else "log density"
        text += f", {min(counts)} to {max(counts)} iterations"
        text += f", {what} up by {min(gains):.4g} to {max(gains):.4g}"
        if len(kept) < len(results):
            text += f", kept for {len(kept)} of {len(results)} starts: it gained little for others"
    else:
        text += f" left out after {max(counts)} iterations: it gained too little to matter"
    return tuple(kept.tolist()), text


def _gain(state: NewtonState, judged: bool) -> float:
    """Return by how much the log density, or the best score, is above that of the start."""
    if not judged:
        return state.log_prob[-1] - state.log_prob[0]
    return max(state.scores) - state.scores[0] if np.isfinite(state.scores[0]) else np.inf


def parted(plan: NewtonPlan) -> tuple[NewtonPlan, NewtonPlan]:
    """A plan as what is made before, and after the starts are chosen."""
    after = min(_MOST_ITERATIONS, round(_SHARE * plan.num_iterations))
    before = plan._replace(num_iterations=plan.num_iterations - after)
    return before, plan._replace(num_iterations=after)


def _constant(floor: Array) -> NoiseFloor:
    return lambda _: floor


def refine_all(
    spec: NetworkSpec,
    data: Data,
    found: Starts,
    polished: Sequence[int],
    plan: NewtonPlan,
    notify: Notifier,
) -> Starts:
    """Polish some starts a little more, on all rows.

    Their noise scales do not fall: on rows that were held out they were judged already.

    Args:
        spec: NetworkSpec.
        data: Data of all training rows.
        found: Starts.
        polished: Numbers of those that are polished already, on a part of the rows.
        plan: NewtonPlan.
        notify: As in `find_starts`.
    """
    began, theta, interrupted = time.perf_counter(), found.theta.copy(), found.interrupted
    watch = _watch(notify, len(theta), plan.num_iterations * len(polished))
    try:
        for ended, chain in enumerate(polished):
            if notify.stopped:
                break
            floor = theta[chain, spec.layout.log_noise_scale].astype(np.float64)
            states = polish(
                spec,
                theta[chain],
                data,
                plan.num_iterations,
                plan.method,
                noise_floor=_constant(floor),
            )
            with notify.within(notify.seconds_left / (len(polished) - ended)):
                for number, state in enumerate(states):
                    if number and watch(state, plan.num_iterations * ended):
                        break
            if not notify.stopped:
                theta[chain] = state.theta
    except KeyboardInterrupt:
        interrupted = True
    spent = found.seconds + Seconds(pretraining=time.perf_counter() - began)
    return found._replace(theta=theta, seconds=spent, interrupted=interrupted)
