"""The program that the chain groups of a run share, with its plan, start check and completion of draws."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.compile import chain_groups, compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data, num_pieces
from tfbnn.engine.density.density_of import density_of
from tfbnn.engine.density.potential import Density
from tfbnn.engine.density.row_blocks import in_pieces
from tfbnn.engine.density.value_and_gradient import (
    ValueAndGradient,
    make_value_and_gradient,
    of_posterior,
)
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.sampling.block import make_block
from tfbnn.engine.starts.check import check_start
from tfbnn.run.config import GroupLayout, RunConfig
from tfbnn.run.plan import Plan, make_plan
from tfbnn.spec.density_spec import Sampled
from tfbnn.system.arrays import Array
from tfbnn.system.threads import num_cores

# With fewer parameters times rows than this, a transition is mostly overhead, and eight or more
# chains are faster in one program (benchmarks/results/small_network_speed.md). With fewer chains,
# one thread per chain is as fast, and keeps the draws independent of the number of chains.
_TINY, _MANY_CHAINS = 1000, 8

Completion = Callable[..., tuple[Array, dict[str, Array]]]

# Hidden units x rows of the draws completed at once, just enough milliseconds to hide the cost of a
# call, because the last tile of every block is padded. And the largest number of such draws.
_VALUES, _MOST_DRAWS = 250_000, 32

_turn = threading.Lock()


@dataclass(frozen=True)
class Program:
    """Compiled program of all chain groups of a run.

    Attributes:
        spec: Spec of the model or log density.
        settings: Kernel settings.
        data: Data tensors.
        seed: The user's seed.
        plan: Plan.
        block: Compiled block function.
        potential: Density in the coordinates that the kernel samples.
        value_and_gradient: NumPy function of coordinates [R, P].
        complete: Function from kept coordinates to theta, see `make_completion`.
    """

    spec: Sampled
    settings: Kernel
    data: Data
    seed: int
    plan: Plan
    block: Callable[..., Any]
    potential: Density
    value_and_gradient: ValueAndGradient
    complete: Completion

    @property
    def turn(self) -> AbstractContextManager[Any]:
        """Context in which a block runs; with rows in pieces only one chain group can hold it.

        Such a block uses all cores, and two of them must not run at once. Outside XLA, TensorFlow
        may fail if the same function runs twice at the same time: when it expects tensors of more
        than some 200 MB, its optimizer gives sums temporary variables that are identified only by
        the name of the node (tensorflow/tensorflow issues 23780 and 37740).
        """
        return _turn if in_pieces(self.data) else nullcontext()


def plan_chains(
    settings: Kernel,
    config: RunConfig,
    layout: GroupLayout | None = None,
    *,
    many_devices: bool = False,
) -> Plan:
    """Make the Plan of a run.

    Args:
        settings: Kernel settings with the chosen preconditioner.
        config: RunConfig.
        layout: GroupLayout of a resumed run; by default it follows from the settings and the
            device.
        many_devices: Whether several devices share the chains, so that one GPU does not get them
            all.
    """
    if layout is None:
        num_chains, num_rows = config.sampling.num_chains, config.num_rows
        tiny = 0 < num_rows * config.spec.num_parameters < _TINY
        together = settings.couples_chains or (tiny and num_chains >= _MANY_CHAINS)
        # The cost of a user's function is unknown: a cheap one is faster in groups, others use
        # every core.
        most = num_chains if num_rows else num_cores()
        groups = chain_groups(num_chains, apart=not together, many_devices=many_devices, most=most)
        return make_plan(settings, config, groups)
    return make_plan(settings, config, *layout)


def make_program(settings: Kernel, config: RunConfig, data: Data, plan: Plan) -> Program:
    """Make the Program of a run; nothing is compiled yet.

    Args:
        settings, config: As in `plan_chains`.
        data: Tensors of the training rows, not in pieces. Very many rows are cut into pieces here.
            XLA then compiles only the sums over pieces; the code around them has little to do.
        plan: Plan.
    """
    spec, sampling = config.spec, config.sampling
    potential = settings.potential(spec)
    data, jit_compile = rows_of_program(settings, spec, data, sampling.jit_compile)
    length = -(-plan.block_length // plan.stride) + 1
    return Program(
        spec=spec,
        settings=settings,
        data=data,
        seed=sampling.seed,
        plan=plan,
        block=make_block(spec, settings, length, jit_compile),
        potential=potential,
        value_and_gradient=make_value_and_gradient(potential, data, settings.temperatures),
        complete=make_completion(potential, data, sampling.seed),
    )


def rows_of_program(
    settings: Kernel, spec: Sampled, data: Data, jit_compile: bool
) -> tuple[Data, bool]:
    """Cut very many rows into pieces; return the rows, and whether XLA compiles the whole block.

    Args:
        settings: Kernel settings.
        spec: Spec of the model or log density.
        data: Tensors of the training rows, not in pieces.
        jit_compile: Whether XLA may compile.
    """
    num_rows = int(data.num_rows)
    gains = jit_compile and settings.gains_from_xla(spec, num_rows)
    data = data._replace(num_pieces=num_pieces(num_rows, gains))
    return data, gains and not in_pieces(data)


def check_starts(program: Program, theta: Array) -> Array:
    """Check the starts theta [C, P], and return their log densities [C].

    Raises:
        StartError: If a chain cannot move from its start.
    """
    temperatures = program.settings.temperatures
    start = program.potential.coordinates(theta, program.data)
    at_start = [
        program.value_and_gradient(np.repeat(start[group], len(temperatures), axis=0))
        for group in program.plan.groups
    ]
    log_prob, gradient = (
        of_posterior(np.concatenate(parts), temperatures) for parts in zip(*at_start)
    )
    check_start(program.potential, program.data, theta, log_prob, gradient)
    return log_prob


def make_completion(potential: Density, data: Data, seed: int) -> Completion:
    """Return the function that converts the kept coordinates of a block to draws.

    Args:
        potential: Density.
        data: Data.
        seed: The user's seed; the random numbers of a draw depend on its chain and its number.

    Returns:
        Function (coordinates [n, C, number of coordinates], statistics, chains, first) ->
        (theta [n, C, P], statistics), where `first` is the number of the first of the n kept draws.
        Further results of `Density.complete` are added to the statistics, a dict of arrays [n, C],
        and lp becomes the log density of theta.
    """
    if type(potential).complete is Density.complete:
        return lambda coordinates, statistics, chains, first: (coordinates, statistics)
    function = _compiled_completion(potential)
    # One shape for all calls, so that one program suffices.
    values = data.length * potential.spec.network.widest
    tile = min(max(1, _VALUES // values), _MOST_DRAWS)

    def complete(
        coordinates: Array, statistics: dict[str, Array], chains: list[int], first: int
    ) -> tuple[Array, dict[str, Array]]:
        count, num_chains = coordinates.shape[:2]
        flat = coordinates.reshape(count * num_chains, -1)
        normals: Array = np.empty((len(flat), potential.num_normals), flat.dtype)
        if potential.num_normals:
            for row, (index, chain) in enumerate(np.ndindex(count, num_chains)):
                generator = seeds.generator(seed, "readout", chains[chain], first + index)
                normals[row] = generator.standard_normal(potential.num_normals)
        parts = [
            function(tf.constant(flat[rows]), tf.constant(normals[rows]), data)
            for rows in _tiles(len(flat), tile)
        ]

        def joined(*tensors: Tensor) -> Array:
            values = np.concatenate(tensors)[: len(flat)]
            return values.reshape(count, num_chains, *values.shape[1:])

        theta, found, log_prob = tf.nest.map_structure(joined, *parts)
        return theta, {**statistics, **found, "lp": log_prob}

    return complete


@lru_cache(maxsize=32)
def _compiled_completion(potential: Density) -> Callable[..., Any]:
    """Compile the function (coordinates [M, ..], normals [M, ..], Data) -> (theta, found, log density)."""

    def complete(coordinates: Tensor, normals: Tensor, data: Data) -> Any:
        theta, found = potential.complete(coordinates, normals, data)
        return theta, found, density_of(potential.spec).log_prob(theta, data)

    # On a CPU, XLA takes up to 25 times as long to factorise float64 matrices.
    return compiled(complete, jit_compile=False)


def _tiles(count: int, size: int) -> list[Array]:
    """Split indices 0 .. count - 1 into parts of one size; the last is padded with the last index."""
    return [
        np.minimum(np.arange(start, start + size), count - 1) for start in range(0, count, size)
    ]
