"""Bugs of SMMALA, with both metrics."""

import dataclasses

import tensorflow as tf

from tests.support.bugs.bug import Bug
from tests.support.kernels.cases import CASES
from tests.support.kernels.checks import MANIFOLD
from tfbnn.engine.kernels.smmala import ManifoldProposal

__all__ = ["MANIFOLD_BUGS"]


def without_log_det(self, here, there, step_size, right=ManifoldProposal.log_ratio):
    def flat(point):
        return point._replace(metric=point.metric._replace(log_det=tf.zeros_like(point.z[:, 0])))

    return right(self, flat(here), flat(there), step_size)


def forward_metric_backwards(self, here, there, step_size, right=ManifoldProposal.log_ratio):
    return right(self, here, there._replace(metric=here.metric), step_size)


def drift_without_metric(self, here, step_size, seed):
    noise = tf.random.stateless_normal(here.z.shape, seed, dtype=here.z.dtype)
    drift = 0.5 * step_size * here.gradient
    return here.z + drift + tf.sqrt(step_size) * here.metric.spread(noise)


def at_step(name, step_size, method, value):
    """A patch of a method of the proposal, at a step size at which chains still move."""
    case = CASES[name]
    settings = dataclasses.replace(case.settings, step_size=step_size)

    def patch(monkeypatch):
        monkeypatch.setattr(ManifoldProposal, method, value)
        monkeypatch.setitem(CASES, name, dataclasses.replace(case, settings=settings))

    return patch


FAULTS = {
    "without log-det": (
        "the determinants of the metrics are missing from the ratio",
        ("log_ratio", without_log_det),
        0.9,
    ),
    "forward metric backwards": (
        "the way back is given the metric of the start",
        ("log_ratio", forward_metric_backwards),
        0.9,
    ),
    "drift without the metric": (
        "proposals follow the gradient itself, ratios its product with the inverse metric",
        ("draw", drift_without_metric),
        0.2,
    ),
}

MANIFOLD_BUGS = {
    f"{name}, {what}": Bug(changes, at_step(name, step_size, *fault), case=name)
    for what, (changes, fault, step_size) in FAULTS.items()
    for name in MANIFOLD
}
