"""Bugs of the kernels that learn how long their trajectories are: Microcanonical and ChEESHMC."""

import tensorflow as tf

from tests.support.bugs.bug import Bug, around, without
from tests.support.kernels.trajectory_checks import (
    check_chees_frozen,
    check_chees_length,
    check_microcanonical_frozen,
)
from tfbnn.engine.kernels import chees, microcanonical
from tfbnn.kernels import ChEESHMC, Microcanonical

__all__ = ["TRAJECTORY_BUGS"]


def with_kinetic_energy(change):
    """A patch that changes the kinetic energy which a kick reports."""

    def wrap(original):
        def kick(*arguments):
            new, kinetic = original(*arguments)
            return new, change(kinetic)

        return kick

    return around(microcanonical, "kick", wrap)


def always_adapting(original):
    def prepare(self, results, step_size, key, adapting):
        del adapting
        return original(self, results, step_size, key, tf.constant(True))

    return prepare


def steps_that_follow_the_state(original):
    def prepare(self, results, *arguments):
        steps = tf.where(results.target_log_prob > -3.5, 1, 4)
        return original(self, results, *arguments)._replace(num_steps=steps)

    return prepare


def step_size_that_follows_the_state(original):
    def prepare(self, results, step_size, *arguments):
        outside = results.hmc.accepted_results.target_log_prob[:, None] < -3.5
        results = original(self, results, step_size, *arguments)
        inner = results.hmc.accepted_results._replace(
            step_size=tf.where(outside, step_size, 0.5 * step_size)
        )
        return results._replace(hmc=results.hmc._replace(accepted_results=inner))

    return prepare


MICROCANONICAL = {"A length frozen after warm-up": check_microcanonical_frozen}
CHEES = {
    "A length frozen after warm-up": check_chees_frozen,
    "A length that is learned": check_chees_length,
}

TRAJECTORY_BUGS = {
    "microcanonical without kinetic energy": Bug(
        "the ratio has only the densities",
        with_kinetic_energy(tf.zeros_like),
        case="microcanonical",
    ),
    "volume of one dimension too many": Bug(
        "kicks in three dimensions lose the volume of four",
        with_kinetic_energy(lambda kinetic: 1.5 * kinetic),
        case="microcanonical",
    ),
    "microcanonical without accept step": Bug(
        "every trajectory is accepted",
        without(microcanonical, "accepts", lambda ratio, seed, adjusted: ratio > -1e9),
        case="microcanonical",
    ),
    "number of steps that follows the state": Bug(
        "trajectories are longer where the density is low",
        around(Microcanonical, "prepare", steps_that_follow_the_state),
        case="microcanonical",
    ),
    "microcanonical length that learns after warm-up": Bug(
        "the trajectory length follows the draws that are kept",
        around(Microcanonical, "prepare", always_adapting),
        checks=MICROCANONICAL,
    ),
    "ChEES length that learns after warm-up": Bug(
        "the trajectory length follows the draws that are kept",
        around(ChEESHMC, "prepare", always_adapting),
        checks=CHEES,
    ),
    "ChEES criterion minimised": Bug(
        "the gradient of the criterion has the wrong sign",
        around(chees, "_criterion_gradient", lambda right: lambda *a: -right(*a)),
        checks=CHEES,
        seen_by="A length that is learned",
    ),
    "step size that follows the state": Bug(
        "steps are half as long where the density is high",
        around(ChEESHMC, "prepare", step_size_that_follows_the_state),
        case="chees",
    ),
}
