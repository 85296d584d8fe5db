"""Bugs of the density and of the engine, which every kernel would suffer from."""

import numpy as np
import tensorflow as tf

from tests.support import engine_checks
from tests.support.bugs.bug import Bug, around, without
from tests.support.kernels.cases import HIERARCHICAL
from tests.support.kernels.invariance import joint_p
from tfbnn.engine.basis import seeds
from tfbnn.engine.density import potential
from tfbnn.engine.density.data import Data
from tfbnn.engine.sampling import chain_group
from tfbnn.run import plan

__all__ = ["ENGINE_BUGS"]


def scale_log_prior_with(jacobians):
    """A patch of the density of log(s) that counts |ds / d log s| once more, or once less."""

    def wrap(original):
        def scale_log_prior(prior, log_scale):
            jacobian = tf.reduce_sum(tf.cast(log_scale, tf.float64), axis=-1)
            return original(prior, log_scale) + jacobians * jacobian

        return scale_log_prior

    return around(potential, "scale_log_prior", wrap)


def variance_for_deviation(original):
    def weight_log_prior(prior, weights, scale=None):
        return original(prior, weights, (prior.scale if scale is None else scale) ** 2)

    return weight_log_prior


def repeated_keys(original):
    def keys(seed, stream, chain, start, count):
        return original(seed, stream, chain, 0, 5)[np.arange(start, start + count) % 5]

    return keys


def keys_of_the_first_chain(original):
    def start(self, *arguments):
        original(self, *arguments)
        self.key_chain = 0

    return start


def late_draws(original):
    def control(**values):
        late = 1 if values["stride"] > 1 else 0
        return original(**values | {"first": values["first"] + late})

    return control


def adapting_stages(original):
    def make_stages(settings, *arguments):
        return [
            plan.Stage(stage.phase, stage.length, settings.adapts, stage.renew)
            for stage in original(settings, *arguments)
        ]

    return make_stages


def all_rows_of_the_last_block(original):
    def block(self, index, length):
        return original(self, index, length)._replace(first=tf.constant(0))

    return block


def without_the_last_row(original):
    def block(self, index, length):
        rows = original(self, index, length)
        return rows._replace(last=rows.last - tf.cast(rows.last < length, tf.int32))

    return block


def check_densities():
    """A1 where weights have prior scales that are learned, and fixed ones other than 1."""
    for name in ("hierarchical", "mixed_priors"):
        engine_checks.check_density(name)


KEYS = {"engine: keys are distinct": engine_checks.check_keys_are_distinct}
CHAINS = {
    "engine: chains differ from one start": engine_checks.check_chains_have_numbers_of_their_own
}
FROZEN = {
    "engine: step size stands still": engine_checks.check_step_size_stands_still_while_sampling
}
REPLAY = {"engine: thinned run replayed": engine_checks.check_thinning_keeps_every_third_transition}


def check_blocks():
    for name in ("gaussian_learned", "categorical"):
        engine_checks.check_blocks(name)
        with engine_checks.small_blocks():
            engine_checks.check_density(name, num_rows=70, num_networks=1)


BLOCKS = {"A blocks against all rows": check_blocks}
DENSITY = {"A density against NumPy": check_densities}
HIERARCHY = {"B hierarchical": lambda: joint_p(HIERARCHICAL)[0]}

ENGINE_BUGS = {
    "a row twice": Bug(
        "the last block counts rows of the one before it again",
        around(Data, "block", all_rows_of_the_last_block),
        checks=BLOCKS,
    ),
    "a row dropped": Bug(
        "a block that is not full ends one row early",
        around(Data, "block", without_the_last_row),
        checks=BLOCKS,
    ),
    "padding that counts": Bug(
        "padding rows of an array are summed, too",
        without(Data, "counts", property(lambda self: tf.ones([self.length], tf.bool))),
        checks=BLOCKS | DENSITY,
    ),
    "random numbers re-used": Bug(
        "the keys of transitions repeat after five",
        around(seeds, "keys", repeated_keys),
        case="hmc",
        checks=KEYS,
    ),
    "random numbers shared by chains": Bug(
        "all chains have the keys of the first",
        around(chain_group.ChainGroup, "__init__", keys_of_the_first_chain),
        checks=CHAINS,
    ),
    "Jacobian of a scale dropped": Bug(
        "the density of s is used as that of log(s)",
        scale_log_prior_with(-1.0),
        checks=HIERARCHY | DENSITY,
    ),
    "Jacobian of a scale doubled": Bug(
        "the density of log(s) has the factor s twice",
        scale_log_prior_with(1.0),
        checks=HIERARCHY | DENSITY,
    ),
    "prior variance for standard deviation": Bug(
        "weights have the prior N(0, scale^4)",
        around(potential, "weight_log_prior", variance_for_deviation),
        seen_by="B joint",
        case="hmc",
        checks=DENSITY,
    ),
    "adaptation left on after warm-up": Bug(
        "the step size follows the acceptance while draws are kept",
        around(plan, "make_stages", adapting_stages),
        checks=FROZEN,
    ),
    "thinning off by one": Bug(
        "the last but one of every s transitions is kept",
        around(chain_group, "BlockControl", late_draws),
        checks=REPLAY,
    ),
}
