"""The last part of the search: chosen starts see the rows that were held out to judge them."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from tfbnn.engine.density.data import Data
from tfbnn.engine.starts.newton import NewtonState, polish
from tfbnn.engine.starts.newton_plan import NewtonPlan
from tfbnn.run.counters import Seconds
from tfbnn.run.events import NewtonEvent
from tfbnn.run.progress import Notifier
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

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
) -> Unrefined:
    """Polishes those that are polished a little more, on all rows.

    Their noise scales do not fall: on rows that were held out they were judged already.

    Args:
        spec: NetworkSpec.
        data: Data of all training rows.
        found: Unrefined.
        plan: NewtonPlan.
        notify: As in `find_starts`.
    """
    began, total = time.perf_counter(), plan.num_iterations * len(found.polished)
    noise, theta, ended = spec.layout.log_noise_scale, found.theta.copy(), 0

    def show(state: NewtonState) -> bool:
        seconds, done = time.perf_counter() - began, plan.num_iterations * ended
        done += len(state.log_prob) - 1
        event = NewtonEvent(
            phase="newton",
            transition=done,
            num_transitions=total,
            num_chains=len(found.theta),
            seconds=seconds,
            eta_seconds=seconds * (total - done) / done,
            log_prob=state.log_prob[-1],
        )
        return notify(event)

    interrupted = found.interrupted
    try:
        for ended, chain in enumerate(found.polished):
            if notify.stopped:
                break
            start = theta[chain]
            floor = start[noise].astype(np.float64)
            with notify.within(notify.seconds_left / (len(found.polished) - ended)):
                state = polish(
                    spec,
                    start,
                    data,
                    plan.num_iterations,
                    plan.method,
                    show,
                    noise_floor=lambda _, floor=floor: floor,
                )
            if not notify.stopped:
                theta[chain] = state.theta
    except KeyboardInterrupt:
        interrupted = True
    spent = found.seconds + Seconds(pretraining=time.perf_counter() - began)
    return found._replace(theta=theta, seconds=spent, interrupted=interrupted)
