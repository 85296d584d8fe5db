"""The compiled block of a run by itself, for scripts that time it apart from everything else."""

import time

from tfbnn.engine.density.data import make_data
from tfbnn.engine.running.thread_executor import compile_block
from tfbnn.engine.sampling.chain_group import ChainGroup
from tfbnn.engine.sampling.program import make_program
from tfbnn.posterior.provenance import Provenance
from tfbnn.run.config import Beginning, FitConfig, Starts
from tfbnn.run.counters import Clock
from tfbnn.run.options import Sampling
from tfbnn.run.plan import make_plan
from tfbnn.run.stores import MemoryStore
from tfbnn.spec.rows import Rows

__all__ = ["make_group"]


def make_group(
    spec,
    kernel,
    x,
    y,
    theta,
    block_length,
    num_blocks,
    *,
    num_burnin_steps=0,
    seed=0,
    sink=None,
    jit_compile=True,
    stride=1,
):
    """A chain group that is about to sample, or to warm up.

    Args:
        spec: ModelSpec without transforms.
        kernel: Kernel settings; with a given step size where there is no warm-up.
        x, y: Training rows [N, D], [N, K].
        theta: Starts [C, P] of the chains that share the program.
        block_length: Transitions that `group.advance` makes, a multiple of `stride`.
        num_blocks: How often it will be called after the warm-up, at most.
        num_burnin_steps: Transitions of warm-up.
        seed: Of the chains.
        sink: Where draws go, see `tfbnn.run.stores`; by default into memory and out of sight.
        jit_compile: Whether XLA compiles it.
        stride: Transitions per draw that is kept.

    Returns:
        (ChainGroup, seconds of compilation).
    """
    data, total = make_data(x, y, None, spec.dtype), block_length * num_blocks // stride
    sampling = Sampling(
        seed=seed,
        num_chains=len(theta),
        num_results=total,
        num_burnin_steps=num_burnin_steps,
        num_steps_between_results=stride - 1,
        jit_compile=jit_compile,
    )
    chains = list(range(len(theta)))
    rows = Rows(x, y, None, None)
    config = FitConfig(
        spec=spec,
        rows=rows,
        validation=None,
        kernel={},
        pretraining=None,
        sampling=sampling,
        environment={},
        temperatures=kernel.temperatures,
        provenance=Provenance(),
    )
    plan = make_plan(kernel, config, [chains], block_length)
    program = make_program(kernel, config, data, plan)
    store, starts = MemoryStore(), Starts(theta, "given")
    store.begin(plan, Beginning(starts, theta[:, 0], plan.layout))
    with store.sink(0, Clock()) as memory:
        group = ChainGroup(program, chains, theta, memory if sink is None else sink)
    began = time.perf_counter()
    compile_block(group)
    return group, time.perf_counter() - began
