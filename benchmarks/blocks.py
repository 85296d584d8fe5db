"""The compiled block of a run by itself, for scripts that time it apart from everything else."""

import time

import numpy as np

from tfbnn.engine.density.potential import make_data
from tfbnn.engine.running.run_lanes import compile_block
from tfbnn.engine.running.sinks import MemorySink
from tfbnn.engine.sampling.lane import Lane
from tfbnn.engine.sampling.program import make_program

__all__ = ["make_lane"]


def make_lane(
    spec, kernel, x, y, theta, block_length, num_blocks, *, num_burnin_steps=0, seed=0, sink=None
):
    """A lane that is about to sample, or to warm up.

    Args:
        spec: ModelSpec without transforms.
        kernel: Kernel settings; with a given step size where there is no warm-up.
        x, y: Training rows [N, D], [N, K].
        theta: Starts [C, P] of the chains that share the program.
        block_length: Transitions, all of them kept, that `lane.advance` makes.
        num_blocks: How often it will be called after the warm-up, at most.
        num_burnin_steps: Transitions of warm-up.
        seed: Of the chains.
        sink: Where draws go, see `tfbnn.engine.running.sinks`; by default into memory and out of sight.

    Returns:
        (Lane, seconds of compilation).
    """
    data, total = make_data(x, y, None, spec.dtype), block_length * num_blocks
    program = make_program(
        spec,
        kernel,
        data,
        seed=seed,
        num_chains=len(theta),
        num_results=total,
        num_burnin_steps=num_burnin_steps,
        num_steps_between_results=0,
        jit_compile=True,
        groups=[list(range(len(theta)))],
        length=block_length,
    )
    if sink is None:
        draws = np.empty((len(theta), total, theta.shape[1]), theta.dtype)
        statistics = {
            name: np.empty((len(theta), total, *shape))
            for name, (shape, _) in program.statistics.items()
        }
        sink = MemorySink(program.groups[0], draws, statistics)
    lane = Lane(program, program.groups[0], theta, sink)
    began = time.perf_counter()
    compile_block(program, lane)
    return lane, time.perf_counter() - began
