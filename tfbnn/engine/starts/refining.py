"""The last part of the search: chosen starts see the rows that were held out to judge them."""

from __future__ import annotations

import time
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
    """

    theta: Array
    polished: tuple[int, ...]
    text: str
    seconds: Seconds
    interrupted: bool

    def stand(self, seconds: float) -> Stand:
        """What a later process needs to go on, after so many seconds more."""
        spent = asdict(self.seconds + Seconds(pretraining=seconds))
        content = {
            "stage": _STAGE,
            "text": self.text,
            "seconds": spent,
            "polished": list(self.polished),
        }
        return Stand(content, {"theta": self.theta})


def after_polish(search: Search) -> Unrefined | None:
    """What an earlier process had not refined yet."""
    found = search.found_in(_STAGE)
    if found is None:
        return None
    content = found.content
    seconds, polished = Seconds(**content["seconds"]), tuple(content["polished"])
    return Unrefined(found.arrays["theta"], polished, content["text"], seconds, False)


def parted(plan: NewtonPlan) -> tuple[NewtonPlan, NewtonPlan]:
    """A plan as what is made before, and after the starts are chosen."""
    after = min(_MOST_ITERATIONS, round(_SHARE * plan.num_iterations))
    before = plan._replace(num_iterations=plan.num_iterations - after)
    return before, plan._replace(num_iterations=after)


def refine_all(
    spec: ModelSpec,
    data: Data,
    found: Unrefined,
    plan: NewtonPlan,
    notify: Notifier,
    search: Search,
) -> Unrefined:
    """Polishes those that are polished a little more, on all rows; commits after each.

    Their noise scales do not fall: on rows that were held out they were judged already.

    Args:
        spec: ModelSpec.
        data: Data of all training rows.
        found: Unrefined.
        plan: NewtonPlan.
        notify, search: As in `find_starts`.
    """
    began, left, theta = time.perf_counter(), found.polished, found.theta.copy()
    ended = 0

    def show(state: NewtonState) -> bool:
        seconds = time.perf_counter() - began
        share = (ended + (len(state.log_prob) - 1) / plan.num_iterations) / len(found.polished)
        event = NewtonEvent(
            phase="newton",
            transition=round(share * plan.num_iterations * len(found.polished)),
            num_transitions=plan.num_iterations * len(found.polished),
            num_chains=len(theta),
            seconds=seconds,
            eta_seconds=seconds * (1.0 - share) / share,
            log_prob=state.log_prob[-1],
        )
        return notify(event)

    def now() -> Unrefined:
        return found._replace(theta=theta.copy(), polished=left)

    def stand() -> Stand:
        return now().stand(time.perf_counter() - began)

    interrupted = found.interrupted
    try:
        for chain in found.polished:
            floor = theta[chain, spec.layout.log_noise_scale].astype(np.float64)
            state = polish(
                spec,
                theta[chain],
                data,
                plan.num_iterations,
                plan.method,
                show,
                noise_floor=lambda _, floor=floor: floor,
            )
            if notify.stopped:
                break
            theta[chain], ended = state.theta, ended + 1
            left = found.polished[ended:]
            search.keep(stand)
    except KeyboardInterrupt:
        interrupted = True
    if interrupted or notify.stopped:
        search.keep(stand, now=True)
    spent = found.seconds + Seconds(pretraining=time.perf_counter() - began)
    return now()._replace(seconds=spent, interrupted=interrupted)
