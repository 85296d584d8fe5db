"""What the lanes of a run share: the compiled program, its plan, and the check of the starts."""

from dataclasses import dataclass

import numpy as np

from tfbnn.engine.basis.compile import chain_groups
from tfbnn.engine.basis.schedule import block_length, make_legs
from tfbnn.engine.density.rungs import of_posterior
from tfbnn.engine.sampling.block import make_block
from tfbnn.engine.sampling.networks_of_draws import make_completion
from tfbnn.engine.starts.check import check_start, make_value_and_gradient

# A transition of a network with fewer parameters times rows than this is overhead, which so many
# chains or more had better share in one program (benchmarks/results/small_network_speed.md). With
# fewer chains, a thread each is as fast, and keeps their draws independent of each other's number.
_TINY, _MANY_CHAINS = 1000, 8

_STATISTICS_DTYPES = {
    "lp": np.float64,
    "acceptance_rate": np.float32,
    "step_size": np.float32,
    "n_steps": np.int32,
    "diverging": bool,
    "energy": np.float64,
}


@dataclass(frozen=True)
class Program:
    """What all lanes of a run share.

    Attributes:
        spec: ModelSpec.
        settings: Kernel settings.
        data: Data tensors.
        seed: The user's seed.
        groups: Lists of chains, a lane each.
        legs: The legs of a chain.
        num_results: Draws to be kept per chain.
        stride: Transitions per kept draw.
        block_length: Transitions per block.
        statistics: Dict name -> (shape, dtype) of what is kept of every draw besides theta.
        block: The compiled function.
        potential: The density in the coordinates that the kernel samples.
        value_and_gradient: NumPy function of coordinates [R, P].
        complete: Function from kept coordinates to theta, see `tfbnn.engine.sampling.networks_of_draws`.
    """

    spec: object
    settings: object
    data: object
    seed: int
    groups: list
    legs: list
    num_results: int
    stride: int
    block_length: int
    statistics: dict
    block: object
    potential: object
    value_and_gradient: object
    complete: object

    def num_transitions(self, phase):
        """Transitions of a chain in a phase."""
        return sum(leg.length for leg in self.legs if leg.phase == phase)


def make_program(
    spec,
    settings,
    data,
    *,
    seed,
    num_chains,
    num_results,
    num_burnin_steps,
    num_steps_between_results,
    jit_compile,
    groups=None,
    length=None,
    many_devices=False,
):
    """The Program of a run; nothing is compiled yet.

    Args:
        spec: ModelSpec.
        settings: Kernel settings.
        data: Data tensors.
        seed: The user's seed.
        num_chains, num_results, num_burnin_steps, num_steps_between_results: As in `fit_posterior`.
        jit_compile: Whether XLA compiles the block.
        groups, length: Lanes and block length of a run that goes on; by default they follow from
            the settings and the device.
        many_devices: Whether there are several to share, so that a GPU is not to have all chains.
    """
    num_rows, stride = data.x.shape[-1], num_steps_between_results + 1
    if groups is None:
        tiny = num_rows * spec.layout.num_parameters < _TINY
        together = settings.couples_chains or (tiny and num_chains >= _MANY_CHAINS)
        groups = chain_groups(num_chains, apart=not together, many_devices=many_devices)
    if length is None:
        total = num_burnin_steps + num_results * stride
        length = block_length(spec, settings, num_rows, len(groups[0]), total)
    statistics = {name: ((), dtype) for name, dtype in _STATISTICS_DTYPES.items()}
    if len(settings.temperatures) > 1:
        statistics["rung_log_likelihood"] = ((len(settings.temperatures),), np.float64)
    potential = settings.potential(spec)
    statistics |= potential.found(data)
    jit_compile = jit_compile and settings.gains_from_xla(spec, num_rows)
    return Program(
        spec=spec,
        settings=settings,
        data=data,
        seed=seed,
        groups=groups,
        legs=make_legs(settings, num_burnin_steps, num_results, stride),
        num_results=num_results,
        stride=stride,
        block_length=length,
        statistics=statistics,
        block=make_block(spec, settings, -(-length // stride) + 1, jit_compile),
        potential=potential,
        value_and_gradient=make_value_and_gradient(
            potential, data, jit_compile, settings.temperatures
        ),
        complete=make_completion(potential, data, seed),
    )


def check_starts(program, theta):
    """The log densities [C] of starts theta [C, P].

    Raises:
        StartError: When a chain cannot move from its start.
    """
    temperatures = program.settings.temperatures
    start = program.potential.coordinates(theta, program.data)
    at_start = [
        program.value_and_gradient(np.repeat(start[group], len(temperatures), axis=0))
        for group in program.groups
    ]
    log_prob, gradient = (
        of_posterior(np.concatenate(parts), temperatures) for parts in zip(*at_start)
    )
    check_start(program.potential, program.data, theta, log_prob, gradient)
    return log_prob
