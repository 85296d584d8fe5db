"""The program that chain groups of a run share: its plan, the check of starts, the networks of draws."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from tfbnn.diagnostics.sample_stats import STATISTICS
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
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array
from tfbnn.system.threads import num_cores

# A transition of a network with fewer parameters times rows than this is overhead, which so many
# chains or more had better share in one program (benchmarks/results/small_network_speed.md). With
# fewer chains, a thread each is as fast, and keeps their draws independent of each other's number.
_TINY, _MANY_CHAINS = 1000, 8

Completion = Callable[..., tuple[Array, dict[str, Array]]]

# Hidden units x rows of the draws completed at once: as few milliseconds as hide the cost of a call,
# because the last tile of every block is filled up. And their largest number.
_VALUES, _MOST_DRAWS = 250_000, 32

_turn = threading.Lock()


@dataclass(frozen=True)
class Program:
    """The compiled program of all chain groups of a run.

    Attributes:
        spec: What is sampled.
        settings: Kernel settings.
        data: Data tensors.
        seed: The user's seed.
        plan: Plan.
        dtypes: Dict name -> dtype of what is kept of every draw besides theta.
        block: The compiled function.
        potential: The density in the coordinates that the kernel samples.
        value_and_gradient: NumPy function of coordinates [R, P].
        complete: Function from kept coordinates to theta, see `make_completion`.
    """

    spec: Sampled
    settings: Kernel
    data: Data
    seed: int
    plan: Plan
    dtypes: dict[str, Any]
    block: Callable[..., Any]
    potential: Density
    value_and_gradient: ValueAndGradient
    complete: Completion

    @property
    def turn(self) -> AbstractContextManager[Any]:
        """Context of a running block: where rows are in pieces, for all cores, no other group has it.

        None may. Outside XLA TensorFlow may fail where one function runs twice at once: when it
        expects tensors of more than some 200 MB its optimizer gives sums temporary variables, which
        go by the name of the node alone (tensorflow/tensorflow issues 23780 and 37740).
        """
        return _turn if in_pieces(self.data) else nullcontext()


def plan_chains(
    settings: Kernel,
    config: RunConfig,
    layout: GroupLayout | None = None,
    *,
    many_devices: bool = False,
) -> Plan:
    """Return the Plan of a run.

    Args:
        settings: Its kernel, with a definite preconditioner.
        config: RunConfig.
        layout: That of a run that goes on; by default it follows from the settings and the device.
        many_devices: Whether there are several to share, so that a GPU is not to have all chains.
    """
    if layout is None:
        num_chains, num_rows = config.sampling.num_chains, config.num_rows
        tiny = 0 < num_rows * config.spec.num_parameters < _TINY
        together = settings.couples_chains or (tiny and num_chains >= _MANY_CHAINS)
        # What a plain function costs is not known: a cheap one wants company, others every core.
        most = num_chains if num_rows else num_cores()
        groups = chain_groups(num_chains, apart=not together, many_devices=many_devices, most=most)
        return make_plan(settings, config, groups)
    return make_plan(settings, config, *layout)


def make_program(settings: Kernel, config: RunConfig, data: Data, plan: Plan) -> Program:
    """Return the Program of a run; nothing is compiled yet.

    Args:
        settings, config: As in `plan_chains`.
        data: Tensors of the training rows, not in pieces yet. Very many are cut into pieces, which XLA
            compiles then, and not what is around them, which has little to do.
        plan: Plan.
    """
    spec, sampling = config.spec, config.sampling
    dtypes: dict[str, Any] = {name: kind.dtype for name, kind in STATISTICS.items()}
    if len(settings.temperatures) > 1:
        dtypes["rung_log_likelihood"] = np.float64
    potential = settings.potential(spec)
    dtypes |= dict.fromkeys(potential.found, spec.dtype)
    data, jit_compile = rows_of_program(settings, spec, data, sampling.jit_compile)
    length = -(-plan.block_length // plan.stride) + 1
    return Program(
        spec=spec,
        settings=settings,
        data=data,
        seed=sampling.seed,
        plan=plan,
        dtypes=dtypes,
        block=make_block(spec, settings, length, jit_compile),
        potential=potential,
        value_and_gradient=make_value_and_gradient(potential, data, settings.temperatures),
        complete=make_completion(potential, data, sampling.seed),
    )


def rows_of_program(
    settings: Kernel, spec: Sampled, data: Data, jit_compile: bool
) -> tuple[Data, bool]:
    """Return (the rows of a program, in pieces where they are very many; whether XLA compiles what is around).

    Args:
        settings: Kernel settings.
        spec: What is sampled.
        data: Tensors of the training rows, not in pieces yet.
        jit_compile: Whether XLA may compile.
    """
    num_rows = int(data.num_rows)
    gains = jit_compile and settings.gains_from_xla(spec, num_rows)
    data = data._replace(num_pieces=num_pieces(num_rows, gains))
    return data, gains and not in_pieces(data)


def check_starts(program: Program, theta: Array) -> Array:
    """Return the log densities [C] of starts theta [C, P].

    Raises:
        StartError: When a chain cannot move from its start.
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
    """Return the function that completes what a block kept.

    Args:
        potential: Density.
        data: Data.
        seed: The user's seed; a draw's random numbers belong to its chain and its number.

    Returns:
        Function (coordinates [n, C, number of coordinates], statistics, chains, first) ->
        (theta [n, C, P], statistics), where `first` numbers the first of the n kept draws. The
        statistics, a dict of arrays [n, C], gain what the potential has `found`, and lp becomes the
        log density of theta.
    """
    if type(potential).complete is Density.complete:
        return lambda coordinates, statistics, chains, first: (coordinates, statistics)
    function = _compiled_completion(potential)
    # One shape for all calls, so that one program does.
    values = data.length * potential.spec.widest
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
    """Compiled (coordinates [M, ..], normals [M, ..], Data) -> (theta, found, log density)."""

    def complete(coordinates: Tensor, normals: Tensor, data: Data) -> Any:
        theta, found = potential.complete(coordinates, normals, data)
        spec = cast(NetworkSpec, potential.spec)
        return theta, found, density_of(spec).log_prob(theta, data)

    # Factorisations of float64 matrices take XLA up to 25 times as long on a CPU.
    return compiled(complete, jit_compile=False)


def _tiles(count: int, size: int) -> list[Array]:
    """Return indices 0 .. count - 1 in parts of one size, the last one filled up with the last index."""
    return [
        np.minimum(np.arange(start, start + size), count - 1) for start in range(0, count, size)
    ]
