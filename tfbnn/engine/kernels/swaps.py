"""Swaps between the rungs of a ladder of power posteriors.

One sweep goes through the rungs i in order. Each is offered an exchange of states with a partner j,
drawn with probability proportional to exp(-|i - j| / 2), j != i, and accepted with probability
min(1, exp((t_i - t_j) (ll_j - ll_i))), t the powers and ll the log likelihoods of the states held.
The prior cancels. The choice of the pair does not depend on the states and every exchange is its
own inverse, so each offer leaves the product of the power posteriors invariant by itself.

Papamarkou et al. multiply the acceptance by the ratio of the normalisers of the two partner laws.
That is right where i is drawn uniformly too, as the pair can then be met from either end. In a sweep
the same i would make the way back, with the same probability, so there is no such factor here.

References:
    Friel and Pettitt 2008, J. R. Stat. Soc. B 70, 589. Papamarkou et al. 2019, arXiv:1910.06539,
    section 4.2, for the partner law and its decay of 1/2.
"""

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.system.arrays import Array

_DECAY = 0.5


def partner_law(num_rungs: int) -> Array:
    """Probabilities [m, m] that rung i (row) is offered rung j."""
    distance = np.abs(np.subtract.outer(np.arange(num_rungs), np.arange(num_rungs)))
    weights = np.where(distance > 0, np.exp(-_DECAY * distance), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def sweep(log_likelihood: Tensor, temperatures: tuple[float, ...], seed: Tensor) -> Tensor:
    """Offers every rung one exchange.

    Args:
        log_likelihood: Of the states that the rungs hold, float64 [C, m].
        temperatures: Powers of the likelihood [m].
        seed: Stateless seed.

    Returns:
        int32 [C, m]: the rung whose state each rung holds afterwards.
    """
    num_chains, num_rungs = log_likelihood.shape
    uniform = tf.random.stateless_uniform([2, num_rungs, num_chains], seed, dtype=tf.float64)
    temperatures = tf.constant(temperatures, tf.float64)
    partners = draw_partners(uniform[0])

    def offer(rung: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        held = tf.gather(log_likelihood, order, batch_dims=1)
        ratio = swap_log_ratio(held, temperatures, rung, partners[rung])
        # A likelihood that is not finite gives NaN at worst, which accepts nothing.
        accepted = tf.math.log(uniform[1, rung]) < ratio
        return rung + 1, exchange(order, rung, tf.where(accepted, partners[rung], rung))

    start = (tf.constant(0), tf.tile(tf.range(num_rungs)[None], [num_chains, 1]))
    return tf.while_loop(lambda rung, _: rung < num_rungs, offer, start)[1]


def draw_partners(uniform: Tensor) -> Tensor:
    """The partner that each rung is offered: uniform numbers [m, C] -> int32 [m, C]."""
    cumulative = np.cumsum(partner_law(uniform.shape[0]), axis=1)
    # Exactly 1 at the end; a rung has no share of its own interval, so it never meets itself.
    cumulative /= cumulative[:, -1:]
    passed = uniform[:, :, None] >= tf.constant(cumulative[:, None, :])
    return tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)


def swap_log_ratio(held: Tensor, temperatures: Tensor, rung: Tensor, partner: Tensor) -> Tensor:
    """Log acceptance ratio [C] of an exchange.

    Args:
        held: Log likelihoods of the states that the rungs hold [C, m].
        temperatures: Powers of the likelihood [m].
        rung: The rung i.
        partner: The rung j of every chain [C].
    """
    others = tf.gather(held, partner[:, None], batch_dims=1)[:, 0]
    gain = others - tf.gather(held, rung, axis=1)
    return (tf.gather(temperatures, rung) - tf.gather(temperatures, partner)) * gain


def exchange(order: Tensor, rung: Tensor, partner: Tensor) -> Tensor:
    """`order` [C, m] with the entries of the rung and of the partner [C] exchanged."""
    columns = tf.range(order.shape[1])
    own = tf.gather(order, [rung], axis=1)
    others = tf.gather(order, partner[:, None], batch_dims=1)
    return tf.where(columns == rung, others, tf.where(columns == partner[:, None], own, order))
