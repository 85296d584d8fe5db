"""The last part of the search: chosen starts see the rows that were held out to judge them."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from tfbnn.engine.density.data import Data
from tfbnn.engine.starts.newton import NewtonState, polish
from tfbnn.engine.starts.newton_plan import NewtonPlan
from tfbnn.run.counters import Seconds
from tfbnn.run.events import NewtonEvent
from tfbnn.run.preparation import Search, Stand
from tfbnn.run.progress import Notifier
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

_STAGE = "refining"
# The rows that come back change a network little: so many iterations, and of what a start may cost
# at most this share.
_MOST_ITERATIONS, _SHARE = 30, 0.25


class Unrefined(NamedTuple):
    """Where the chains would start.

    Attributes:
        theta: [C, P].
        polished: Numbers of those that Levenberg-Marquardt brought there on a part of the rows.
        text: One line on how all were found.
        seconds: What this took.
        interrupted: Whether the user asked to stop meanwhile.
        state: NewtonState of the first of the polished, where its refinement has begun.
    """

    theta: Array
    polished: tuple[int, ...]
    text: str
    seconds: Seconds
    interrupted: bool
    state: NewtonState | None = None

    def stand(self, seconds: float) -> Stand:
        """What a later process needs to go on, after so many seconds more."""
        spent = asdict(self.seconds + Seconds(pretraining=seconds))
        content = {
            "stage": _STAGE,
            "text": self.text,
            "seconds": spent,
            "polished": list(self.polished),
        }
        arrays = {"theta": self.theta}
        if self.state is not None:
            place, gradient, damping, log_prob, *_ = self.state
            content["damping"] = damping
            arrays |= {"place": place, "gradient": gradient, "log_prob": np.array(log_prob)}
        return Stand(content, arrays)


def after_polish(search: Search) -> Unrefined | None:
    """What an earlier process had not refined yet."""
    found = search.found_in(_STAGE)
    if found is None:
        return None
    content, arrays, state = found.content, found.arrays, None
    if "place" in arrays:
        place, history = arrays["place"], arrays["log_prob"].tolist()
        state = NewtonState(place, arrays["gradient"], content["damping"], history, place, [])
    seconds, polished = Seconds(**content["seconds"]), tuple(content["polished"])
    return Unrefined(arrays["theta"], polished, content["text"], seconds, False, state)


def parted(plan: NewtonPlan) -> tuple[NewtonPlan, NewtonPlan]:
    """A plan as what is made before, and after the starts are chosen."""
    after = min(_MOST_ITERATIONS, round(_SHARE * plan.num_iterations))
    before = plan._replace(num_iterations=plan.num_iterations - after)
    return before, plan._replace(num_iterations=after)


def refine_all(
    spec: NetworkSpec,
    data: Data,
    found: Unrefined,
    plan: NewtonPlan,
    notify: Notifier,
    search: Search,
) -> Unrefined:
    """Polishes those that are polished a little more, on all rows; commits after each.

    Their noise scales do not fall: on rows that were held out they were judged already.

    Args:
        spec: NetworkSpec.
        data: Data of all training rows.
        found: Unrefined.
        plan: NewtonPlan.
        notify, search: As in `find_starts`.
    """
    began, total = time.perf_counter(), plan.num_iterations * len(found.polished)
    noise, current = spec.layout.log_noise_scale, found

    def stand() -> Stand:
        return current.stand(time.perf_counter() - began)

    def show(state: NewtonState) -> bool:
        nonlocal current
        current = current._replace(state=state)
        ended, seconds = len(found.polished) - len(current.polished), time.perf_counter() - began
        done = plan.num_iterations * ended + len(state.log_prob) - 1
        event = NewtonEvent(
            phase="newton",
            transition=done,
            num_transitions=total,
            num_chains=len(found.theta),
            seconds=seconds,
            eta_seconds=seconds * (total - done) / done,
            log_prob=state.log_prob[-1],
        )
        stopped = notify(event)
        search.keep(stand, now=stopped)
        return stopped

    interrupted = found.interrupted
    try:
        while current.polished and not notify.stopped:
            chain, *left = current.polished
            start = current.theta[chain]
            floor = start[noise].astype(np.float64)
            with notify.within(notify.seconds_left / len(current.polished)):
                state = polish(
                    spec,
                    start,
                    data,
                    plan.num_iterations,
                    plan.method,
                    show,
                    state=current.state,
                    noise_floor=lambda _, floor=floor: floor,
                )
            if not notify.stopped:
                theta = current.theta.copy()
                theta[chain] = state.theta
                current = current._replace(theta=theta, polished=tuple(left), state=None)
    except KeyboardInterrupt:
        interrupted = True
        search.keep(stand, now=True)
    spent = found.seconds + Seconds(pretraining=time.perf_counter() - began)
    return current._replace(seconds=spent, interrupted=interrupted)
