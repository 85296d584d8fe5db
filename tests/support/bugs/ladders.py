"""Bugs of power posteriors: of the swaps, of what they leave behind, of what is tempered."""

import numpy as np
import tensorflow as tf

from tests.support.bugs.bug import Bug
from tests.support.kernels.ladder_checks import (
    check_cache,
    check_tempering,
    law_p_value,
    sweep_p_value,
)
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.kernels import power_posterior
from tfbnn.engine.kernels.power_posterior import LadderKernel

__all__ = ["LADDER_BUGS"]


def wrong_sign(patch):
    right = power_posterior.swap_log_ratio
    patch.setattr(power_posterior, "swap_log_ratio", lambda *arguments: -right(*arguments))


def partner_by_likelihood(patch):
    """Partners of a higher likelihood are offered more often."""
    right = power_posterior.sweep

    def sweep(log_likelihood, temperatures, seed):
        cumulative = tf.cumsum(tf.nn.softmax(0.5 * log_likelihood, axis=-1), axis=-1)

        def partners(uniform):
            passed = uniform[:, :, None] >= cumulative[None, :, :-1]
            return tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)

        patch.setattr(power_posterior, "draw_partners", partners)
        return right(log_likelihood, temperatures, seed)

    patch.setattr(power_posterior, "sweep", sweep)


def ratio_of_normalisers(patch):
    """The factor that belongs to rungs drawn at random, in a sweep."""
    right = power_posterior.swap_log_ratio

    def with_factor(held, temperatures, rung, partner):
        law = tf.constant(
            np.log(power_posterior.partner_law(held.shape[1]) + np.eye(held.shape[1]))
        )
        there = tf.gather(tf.gather(law, rung), partner)
        back = tf.gather(tf.gather(law, partner), rung, axis=1)
        return right(held, temperatures, rung, partner) + back - there

    patch.setattr(power_posterior, "swap_log_ratio", with_factor)


def stale(name):
    """A part of the results that after the swaps still belongs to the states before them."""

    def patch(monkeypatch):
        right = LadderKernel.one_step

        def one_step(self, state, results, seed=None):
            z, after = right(self, state, results, seed=seed)
            with monkeypatch.context() as still:
                still.setattr(power_posterior, "sweep", lambda ll, *_: stay(ll))
                _, before = right(self, state, results, seed=seed)
            return z, after._replace(**{name: getattr(before, name)})

        monkeypatch.setattr(LadderKernel, "one_step", one_step)

    return patch


def stay(log_likelihood):
    """The outcome of a sweep that exchanges nothing."""
    num_chains, num_rungs = log_likelihood.shape
    return tf.tile(tf.range(num_rungs)[None], [num_chains, 1])


def prior_tempered_too(patch):
    right = Potential.value_and_gradient

    def value_and_gradient(self, theta, data, likelihood_weight=1.0):
        value, gradient = right(self, theta, data)
        weight = tf.cast(likelihood_weight, gradient.dtype)
        return likelihood_weight * value, weight[..., None] * gradient

    patch.setattr(Potential, "value_and_gradient", value_and_gradient)


def check_cache_after_swaps():
    check_cache("mala")


CHECKS = {
    "B sweep": sweep_p_value,
    "B rungs": lambda: law_p_value()[0],
    "A cache after swaps": check_cache_after_swaps,
    "A tempering": check_tempering,
}

LADDER_BUGS = {
    "swap with the wrong sign": Bug(
        "the inverse of the acceptance ratio", wrong_sign, checks=CHECKS
    ),
    "partner drawn from the likelihoods": Bug(
        "partners of a higher likelihood are offered more often, without a correction",
        partner_by_likelihood,
        checks=CHECKS,
    ),
    "ratio of the normalisers in a sweep": Bug(
        "the correction for rungs drawn at random, although all rungs take turns",
        ratio_of_normalisers,
        checks=CHECKS,
    ),
    "density of another rung": Bug(
        "after a swap the inner kernel keeps the density at the temperature before",
        stale("inner"),
        checks=CHECKS,
        seen_by="A cache after swaps",
    ),
    "log likelihood of another rung": Bug(
        "after a swap the log likelihoods stay with the rungs",
        stale("log_likelihood"),
        checks=CHECKS,
        seen_by="A cache after swaps",
    ),
    "prior tempered too": Bug(
        "t (log prior + log likelihood) instead of log prior + t log likelihood",
        prior_tempered_too,
        checks=CHECKS,
        seen_by="A tempering",
    ),
}
