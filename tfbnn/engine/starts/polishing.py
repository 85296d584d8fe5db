"""Levenberg-Marquardt on each start: first on the rows that are not held out, then on all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.density.data import Data
from tfbnn.engine.starts.holdout import HoldoutScore
from tfbnn.engine.starts.newton import NewtonState, polish
from tfbnn.engine.starts.newton_plan import NewtonPlan
from tfbnn.run.config import Starts
from tfbnn.run.counters import Seconds
from tfbnn.run.events import NewtonEvent
from tfbnn.run.progress import Notifier
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

# The held-out rows that come back change a network little. These limit the iterations on all rows,
# and their share of the iterations of a start.
_MOST_ITERATIONS, _SHARE = 30, 0.25


class Ground(NamedTuple):
    """Rows that starts are polished on.

    Attributes:
        data: Data of all training rows.
        sought_on: Data that ADAM uses, and Levenberg-Marquardt at first: the sample, or else all
            rows that are not held out.
        holdout: HoldoutScore of the held-out or validation rows, or None.
        sample: Data of a weighted sample of the rows that are not held out, if the search uses only
            a sample; else None.
    """

    data: Data
    sought_on: Data
    holdout: HoldoutScore | None
    sample: Data | None = None


def _event(
    done: int, total: int, num_chains: int, seconds: float, state: NewtonState
) -> NewtonEvent:
    """Return the event after `done` of `total` iterations of all starts."""
    return NewtonEvent(
        phase="newton",
        transition=done,
        num_transitions=total,
        num_chains=num_chains,
        seconds=seconds,
        eta_seconds=seconds * (total - done) / done,
        log_prob=state.log_prob[-1],
    )


def _reached(
    spec: NetworkSpec,
    starts: Array,
    data: Data,
    plan: NewtonPlan,
    notify: Notifier,
    settings_of: Callable[[Array], dict[str, Any]],
) -> tuple[list[NewtonState], bool]:
    """Polish starts [n, P] in turn; return the last state of each, and whether the user interrupted.

    Starts share the remaining time. `settings_of` returns the keyword arguments of `polish` for a
    start.
    """
    reached: list[NewtonState] = []
    count, most, began = len(starts), plan.num_iterations, time.perf_counter()
    try:
        for index, theta in enumerate(starts):
            if notify.stopped:
                break
            states = polish(spec, theta, data, most, plan.method, **settings_of(theta))
            with notify.within(notify.seconds_left / (count - index)):
                for number, state in enumerate(states):
                    reached[index:] = [state]
                    seconds, done = time.perf_counter() - began, index * most + number
                    if number and notify(_event(done, count * most, count, seconds, state)):
                        break
    except KeyboardInterrupt:
        return reached, True
    return reached, False


def polish_all(
    spec: NetworkSpec,
    ground: Ground,
    adam: Starts,
    plan: NewtonPlan,
    least: float,
    notify: Notifier,
) -> tuple[Starts, tuple[int, ...]]:
    """Polish all starts, keep the results that are better, and return the indices of those.

    With held-out rows, a result is better if it predicts these rows better. Without them, it must
    gain at least `least` in log density. The log density of a draw from a Gaussian posterior is
    typically P / 2 below the maximum. A start within P of the maximum therefore needs no polishing:
    further up, it would only fit the noise.
    """
    holdout = ground.holdout
    settings: dict[str, Any] = {"least": least, "holdout": holdout}
    if holdout is not None:
        settings["noise_floor"] = holdout.noise_floor
    reached, interrupted = _reached(
        spec, adam.theta, ground.sought_on, plan, notify, lambda _: settings
    )
    theta = adam.theta.copy()
    kept, text = _chosen(reached, plan, least, holdout is not None)
    for chain in kept:
        theta[chain] = reached[chain].best
    text = f"{adam.text}; {text}"
    return adam._replace(theta=theta, text=text, interrupted=interrupted), kept


def _chosen(
    results: Sequence[NewtonState], plan: NewtonPlan, least: float, judged: bool
) -> tuple[tuple[int, ...], str]:
    """Return the indices of the starts that polishing improved, and a text about all of them."""
    if not results:
        return (), "Levenberg-Marquardt was stopped"
    counts = [len(result.log_prob) - 1 for result in results]
    gains = np.array([_gain(result, judged) for result in results])
    kept = np.flatnonzero(gains > 0.0 if judged else gains >= least)
    text = f"Levenberg-Marquardt ({plan.reason})"
    if not max(counts):  # without a finite log density there is no gain to report
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
    """Return the gain of log density, or of the best score if `judged`, since the start."""
    if not judged:
        return state.log_prob[-1] - state.log_prob[0]
    return max(state.scores) - state.scores[0] if np.isfinite(state.scores[0]) else np.inf


def parted(plan: NewtonPlan) -> tuple[NewtonPlan, NewtonPlan]:
    """Split a plan into the iterations before and those after the starts are chosen."""
    after = min(_MOST_ITERATIONS, round(_SHARE * plan.num_iterations))
    before = plan._replace(num_iterations=plan.num_iterations - after)
    return before, plan._replace(num_iterations=after)


def refine_all(
    spec: NetworkSpec,
    data: Data,
    found: Starts,
    polished: Sequence[int],
    plan: NewtonPlan,
    notify: Notifier,
) -> Starts:
    """Polish the chosen starts a little more, on all rows.

    Their noise scales do not fall, because the held-out rows have already set them.

    Args:
        spec: NetworkSpec.
        data: Data of all training rows.
        found: Starts.
        polished: Indices of the starts that are already polished on a part of the rows.
        plan: NewtonPlan.
        notify: As in `find_starts`.
    """
    began, theta = time.perf_counter(), found.theta.copy()

    def settings_of(start: Array) -> dict[str, Any]:
        floor = start[spec.layout.log_noise_scale].astype(np.float64)
        return {"noise_floor": lambda _: floor}

    reached, interrupted = _reached(spec, theta[list(polished)], data, plan, notify, settings_of)
    for chain, state in zip(polished, reached):
        theta[chain] = state.theta
    spent = found.seconds + Seconds(pretraining=time.perf_counter() - began)
    return found._replace(theta=theta, seconds=spent, interrupted=interrupted)
