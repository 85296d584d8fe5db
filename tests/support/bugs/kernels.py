"""Bugs of single kernels, held against every check of their case."""

import tensorflow as tf
import tensorflow_probability as tfp

from tests.support.bugs.bug import Bug, altered, around, without
from tests.support.kernels.tree_checks import check_randomness, check_tree
from tfbnn.engine.kernels import nuts, underdamped
from tfbnn.engine.kernels.mala import LangevinProposal
from tfbnn.engine.kernels.metropolis import Proposal
from tfbnn.engine.kernels.nuts import NoUTurnKernel
from tfbnn.engine.kernels.pcn import CrankNicolsonProposal
from tfbnn.engine.kernels.pcnl import LangevinCrankNicolsonProposal
from tfbnn.engine.kernels.random_walk import RandomWalkProposal
from tfbnn.engine.kernels.truncated_mala import TruncatedProposal
from tfbnn.engine.kernels.underdamped import UnderdampedKernel

__all__ = ["HARMLESS", "KERNEL_BUGS"]

CACHE = "A cached density and gradient"
TRAJECTORY = "A trajectory and energy error"
# TFP's modules, found from the package because their own names are hidden by its functions.
HMC = tfp.python.mcmc.hmc
LEAPFROG = tfp.python.mcmc.internal.leapfrog_integrator


def momentum_not_reversed(before, after):
    del before
    sign = tf.where(after.is_accepted, 1.0, -1.0)[:, None]
    return after._replace(momentum=tf.cast(sign, tf.float64) * after.momentum)


def density_of_rejected_proposal(before, after):
    del before
    stale = after.accepted_results._replace(target_log_prob=after.proposed_results.target_log_prob)
    return after._replace(accepted_results=stale)


def no_kinetic_energy(momentums, *_, **__):
    return tf.zeros_like(tf.reduce_sum(momentums[0], axis=-1))


def nothing_rejected(momentums, *_, **__):
    return tf.fill(momentums[0].shape[:1], tf.constant(1e9, momentums[0].dtype))


def no_correction(self, here, there, step_size):
    return tf.zeros_like(tf.reduce_sum(here.z, axis=-1))


def accept_all(self, here, there, step_size):
    return tf.fill(here.z.shape[:1], tf.constant(1e9, here.z.dtype))


def lopsided(self, here, step_size, seed):
    noise = tf.random.stateless_normal(here.z.shape, seed, dtype=here.z.dtype)
    return here.z + step_size * (noise + 0.2)


def spread_without_root(self, here, step_size, seed):
    noise = tf.random.stateless_normal(here.z.shape, seed, dtype=here.z.dtype)
    return self.mean(here, step_size) + step_size * noise


def clipped(self, here, step_size, seed):
    free = LangevinProposal.draw(self, here, step_size, seed)
    return tf.clip_by_value(free, self.low, self.high)


def refreshed_too_little(momentum, persistence, seed):
    noise = tf.random.stateless_normal(momentum.shape, seed, dtype=momentum.dtype)
    return persistence * momentum + (1.0 - persistence) * noise


def first_kick_times(factor):
    """A patch of TFP's leapfrog, which uses the gradient at the start for its first kick only."""

    def wrap(original):
        def process_args(*arguments):
            *others, gradients = original(*arguments)
            return [*others, [factor * gradient for gradient in gradients]]

        return process_args

    return around(LEAPFROG, "process_args", wrap)


def full_first_kick(original):
    def leapfrog(self, z, momentum, before):
        kick = 0.5 * before.step_size * before.gradient
        return original(self, z, momentum + kick, before)

    return leapfrog


def exaggerated_ratio(original):
    """A tenth more difference of densities in Metropolis-Hastings ratios, and nowhere else."""

    def safe_sum(terms, *arguments, **options):
        if options.get("name") == "compute_log_accept_ratio":
            new, old, *correction = terms
            terms = [1.1 * new, 1.1 * old, *correction]
        return original(terms, *arguments, **options)

    return safe_sum


def undone_half_the_time(original):
    def one_step(self, state, results, seed=None):
        new, _ = original(self, state, results, seed=seed)
        coin = tf.random.stateless_uniform(state.shape[:1], tf.random.split(seed, 2)[1])
        new = tf.where(coin[:, None] < 0.5, new, state)
        return new, self.bootstrap_results(new)

    return one_step


def no_turn_within(original):
    def close_spans(new, own, longest, draw, levels):
        going, draw = original(new, own, longest, draw, levels)
        return tf.where(longest > 0, new.going, going), draw

    return close_spans


def one_number_for_all_levels(original):
    """The levels of a doubling and of its own join share a number."""

    def draw_randomness(*arguments):
        random = original(*arguments)
        return random._replace(levels=tf.broadcast_to(random.levels[:1], random.levels.shape))

    return draw_randomness


def levels_in_pairs(original):
    def draw_randomness(*arguments):
        random = original(*arguments)
        levels = tf.repeat(random.levels[::2], 2, axis=0)
        return random._replace(levels=levels[: random.levels.shape[0]])

    return draw_randomness


def one_coin_for_all_doublings(original):
    def draw_randomness(*arguments):
        random = original(*arguments)
        coin = random.directions[:1]
        return random._replace(directions=tf.broadcast_to(coin, random.directions.shape))

    return draw_randomness


def second_half_twice(original):
    def either(takes, new, old):
        draw = original(takes, new, old)
        weights = draw.numbers + new.numbers * [[0.0], [0.0], [1.0]]
        return draw._replace(numbers=weights)

    return either


def always_to_the_right(original):
    def draw_randomness(*arguments):
        random = original(*arguments)
        return random._replace(directions=tf.ones_like(random.directions))

    return draw_randomness


TREE = {"A tree by recursion": check_tree}
RANDOMNESS = {"A numbers that decide": check_randomness}

KERNEL_BUGS = {
    "random walk with a drift": Bug(
        "proposals are shifted by 0.2 step sizes",
        without(RandomWalkProposal, "draw", lopsided),
        case="random walk",
    ),
    "pCN that counts the prior": Bug(
        "the ratio has whole densities, although proposals leave N(0, I) invariant",
        without(CrankNicolsonProposal, "log_ratio", no_correction),
        case="pcn",
    ),
    "pCNL with the ratio of pCN": Bug(
        "the ratio lacks the gradients that proposals follow",
        without(LangevinCrankNicolsonProposal, "log_ratio", CrankNicolsonProposal.log_ratio),
        case="pcnl",
    ),
    "MALA without accept step": Bug(
        "every proposal is accepted",
        without(LangevinProposal, "log_ratio", accept_all),
        case="mala",
    ),
    "MALA without proposal ratio": Bug(
        "the ratio has only the densities",
        without(LangevinProposal, "log_ratio", no_correction),
        case="mala",
    ),
    "MALA with the proposal ratio upside down": Bug(
        "q(new | old) / q(old | new) instead of its inverse",
        around(LangevinProposal, "log_ratio", lambda right: lambda *a: -right(*a)),
        case="mala",
    ),
    "MALA with variance h^2": Bug(
        "the noise of a proposal has standard deviation h instead of sqrt(h)",
        without(LangevinProposal, "draw", spread_without_root),
        case="mala",
    ),
    "gradient of the start": Bug(
        "after an acceptance the drift is that of the old point",
        altered(Proposal, lambda before, after: after._replace(gradient=before.gradient)),
        case="mala",
        seen_by=CACHE,
    ),
    "truncation without its mass": Bug(
        "the ratio of plain MALA for truncated proposals",
        without(TruncatedProposal, "log_ratio", LangevinProposal.log_ratio),
        case="truncated mala",
    ),
    "truncation with the mass upside down": Bug(
        "Z(new) / Z(old) instead of its inverse",
        around(TruncatedProposal, "_log_mass", lambda right: lambda *a: -right(*a)),
        case="truncated mala",
    ),
    "proposals clipped to the box": Bug(
        "a proposal outside the box is moved to its boundary",
        without(TruncatedProposal, "draw", clipped),
        case="truncated mala",
    ),
    "momentum not reversed by a rejection": Bug(
        "a rejected chain goes on in its direction",
        altered(UnderdampedKernel, momentum_not_reversed),
        case="underdamped",
    ),
    "underdamped without accept step": Bug(
        "every step is accepted",
        without(underdamped, "accepts", lambda ratio, seed, adjusted: ratio > -1e9),
        case="underdamped",
    ),
    "refreshment that loses energy": Bug(
        "a p + (1 - a) eps instead of a p + sqrt(1 - a^2) eps",
        without(underdamped, "partly_refreshed", refreshed_too_little),
        case="underdamped",
    ),
    "underdamped with a full first kick": Bug(
        "the first half step of the momentum is a whole one",
        around(UnderdampedKernel, "_leapfrog", full_first_kick),
        case="underdamped",
    ),
    "HMC without kinetic energy": Bug(
        "the ratio has only the densities",
        without(HMC, "_compute_log_acceptance_correction", no_kinetic_energy),
        case="hmc",
    ),
    "HMC without accept step": Bug(
        "every trajectory is accepted",
        without(HMC, "_compute_log_acceptance_correction", nothing_rejected),
        case="hmc",
    ),
    "HMC with a full first kick": Bug(
        "the first half step of the momentum is a whole one",
        first_kick_times(2.0),
        case="hmc",
        seen_by=TRAJECTORY,
    ),
    "asymmetric gradient": Bug(
        "the gradient is 5 % too large in the first kick only",
        first_kick_times(1.05),
        case="hmc",
        seen_by=TRAJECTORY,
    ),
    "density of a rejected proposal": Bug(
        "after a rejection the cached density is that of the proposal",
        altered(tfp.mcmc.MetropolisHastings, density_of_rejected_proposal),
        case="hmc",
        seen_by=CACHE,
    ),
    "error of 10 % in the ratio": Bug(
        "differences of log densities count 1.1 times in the ratio, not in the gradient",
        around(tfp.python.mcmc.internal.util, "safe_sum", exaggerated_ratio),
        case="hmc",
        seen_by=TRAJECTORY,
    ),
    "NUTS without kinetic energy": Bug(
        "points of a trajectory are weighted by their densities only",
        without(nuts, "_energy", lambda point, value: -tf.cast(value, tf.float64)),
        case="nuts",
    ),
    "NUTS that sees no turn within a doubling": Bug(
        "only whole trajectories are checked for a U-turn",
        around(nuts, "close_spans", no_turn_within),
        case="nuts",
        checks=TREE,
    ),
    "NUTS with one number for all levels": Bug(
        "which half to draw from is decided by the same number on every level",
        around(nuts, "draw_randomness", one_number_for_all_levels),
        case="nuts",
        checks=RANDOMNESS,
    ),
    "NUTS with levels in pairs": Bug(
        "every second level uses the random number of the level before",
        around(nuts, "draw_randomness", levels_in_pairs),
        case="nuts",
        checks=RANDOMNESS,
    ),
    "NUTS with one coin for all doublings": Bug(
        "a trajectory only grows to one side, which is random",
        around(nuts, "draw_randomness", one_coin_for_all_doublings),
        case="nuts",
        checks=RANDOMNESS,
    ),
    "NUTS that counts leaves twice": Bug(
        "the weight of a second half enters twice",
        around(nuts, "_either", second_half_twice),
        case="nuts",
        checks=TREE,
    ),
    "NUTS that knows one direction": Bug(
        "every doubling goes along the momentum",
        around(nuts, "draw_randomness", always_to_the_right),
        case="nuts",
        checks=RANDOMNESS,
    ),
    "NUTS with the gradient of the start": Bug(
        "the next trajectory begins with the force at the old point",
        altered(NoUTurnKernel, lambda before, after: after._replace(gradient=before.gradient)),
        case="nuts",
        seen_by=CACHE,
    ),
}

# Kernels that do less than they could, and leave the target as invariant as before.
HARMLESS = {
    "MALA that accepts half as often": Bug(
        "half of the accepted moves are taken back",
        around(tfp.mcmc.MetropolisHastings, "one_step", undone_half_the_time),
        case="mala",
    ),
    "NUTS that accepts half as often": Bug(
        "half of the transitions are taken back",
        around(NoUTurnKernel, "one_step", undone_half_the_time),
        case="nuts",
    ),
}
