"""The compiled block of a run by itself, for scripts that time it apart from everything else."""

import time

import numpy as np
import tensorflow as tf

from tfbnn.engine.block import STATISTICS, BlockControl, make_block
from tfbnn.engine.completion import make_completion
from tfbnn.engine.lane import Lane
from tfbnn.engine.potential import make_data
from tfbnn.engine.runner import Program
from tfbnn.engine.schedule import make_legs
from tfbnn.engine.start import make_value_and_gradient

__all__ = ["make_lane"]


def make_lane(spec, kernel, x, y, theta, block_length, num_blocks):
    """A lane that is about to sample.

    Args:
        spec: ModelSpec without transforms.
        kernel: Kernel settings with a given step size.
        x, y: Training rows [N, D], [N, K].
        theta: Starts [C, P] of the chains that share the program.
        block_length: Transitions, all of them kept, that `lane.advance` makes.
        num_blocks: How often it will be called, at most.

    Returns:
        (Lane, seconds of compilation).
    """
    data, total = make_data(x, y, None, spec.dtype), block_length * num_blocks
    potential = kernel.potential(spec)
    program = Program(
        spec=spec,
        settings=kernel,
        data=data,
        seed=0,
        legs=make_legs(kernel, 0, total, 1),
        stride=1,
        block_length=block_length,
        block=make_block(spec, kernel, block_length + 1, True),
        potential=potential,
        value_and_gradient=make_value_and_gradient(potential, data, True),
        complete=make_completion(potential, data, seed=0),
    )
    draws = np.empty((len(theta), total, theta.shape[1]), theta.dtype)
    statistics = {name: np.empty((len(theta), total)) for name in STATISTICS}
    lane = Lane(program, range(len(theta)), theta, draws, statistics)
    began = time.perf_counter()
    control = BlockControl(*map(tf.constant, (0, 0, 1, False, False)))
    program.block(data, lane.state, tf.zeros([block_length, 2], tf.int32), control)
    return lane, time.perf_counter() - began
