"""Events as a small run would tell them."""

from dataclasses import replace

import numpy as np

from tfbnn.run.counters import Counters
from tfbnn.run.events import NewtonEvent, PretrainingEvent, SamplingEvent
from tfbnn.run.plan import Plan, Stage

PLAN = Plan(
    [[0], [1]], 16, [Stage("warmup", 300), Stage("sampling", 100)], num_results=100, stride=1
)


def pretraining(step, validation_log_likelihood=float("nan"), seconds=2.0):
    """Return an event of ADAM, 50 steps an epoch."""
    return PretrainingEvent(
        phase="pretraining",
        transition=step,
        num_transitions=25_000,
        num_chains=2,
        seconds=seconds,
        eta_seconds=8.0,
        epoch=step // 50,
        validation_log_likelihood=validation_log_likelihood,
    )


def newton(iteration):
    count = dict(transition=iteration, num_transitions=800, num_chains=2)
    return NewtonEvent(
        phase="newton", **count, seconds=4.0, eta_seconds=float("nan"), log_prob=-3.0
    )


def sampling(phase, done, seconds=1.0, divergent=0, refused=0):
    """Return an event of two chains that accept nine of ten."""
    before = PLAN.num_transitions("warmup") if phase == "sampling" else 0
    groups = [
        replace(Counters.nothing([chain]), transition=before).after_block(
            phase,
            done,
            np.array([0.9 * done]),
            np.array([done]),
            step_size=np.array([0.0923]),
            num_divergent=np.array([divergent]),
            num_refused=np.array([refused]),
        )
        for chain in (0, 1)
    ]
    return SamplingEvent.of(phase, groups, PLAN, seconds)
