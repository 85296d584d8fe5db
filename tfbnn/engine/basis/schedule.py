"""The plan of a run: warm-up windows, mixing, sampling, and the length of compiled blocks."""

from dataclasses import dataclass

from tfbnn.engine.basis.adaptation import adaptation_windows

ADAPTING_SHARE = 0.8

# A block should take around a second, so that progress and stops stay responsive.
_FLOPS_PER_CALL = 4e10
_BLOCK_BYTES = 64e6
_LONGEST_BLOCK = 4096


@dataclass(frozen=True)
class Leg:
    """Transitions under constant rules.

    Attributes:
        phase: "warmup" or "sampling".
        length: Number of transitions.
        adapt_step: Whether the step size adapts.
        renew: Whether moments are collected and the preconditioner is renewed at the end.
    """

    phase: str
    length: int
    adapt_step: bool = False
    renew: bool = False


def make_legs(settings, num_burnin_steps, num_results, stride):
    """The legs of one chain: the first 80 % of warm-up adapt, the rest mix with all frozen."""
    num_adapting = round(ADAPTING_SHARE * num_burnin_steps)
    if not (settings.adapts or settings.preconditions):
        num_adapting = 0
    windows = adaptation_windows(num_adapting)
    if not settings.preconditions:
        windows = [(num_adapting, False)]
    legs = [Leg("warmup", length, settings.adapts, renew) for length, renew in windows]
    legs.append(Leg("warmup", num_burnin_steps - num_adapting))
    legs.append(Leg("sampling", num_results * stride))
    return [leg for leg in legs if leg.length]


def affordable_steps(flops_per_step):
    """How many steps of compiled work take about a second; a power of two, from settings alone."""
    # Even an empty step costs some microseconds.
    return _power_of_two(min(_FLOPS_PER_CALL / (flops_per_step + 2e5), _LONGEST_BLOCK))


def block_length(spec, settings, num_rows, num_chains, total):
    """Transitions per block, a power of two that depends on the settings alone.

    Args:
        spec: ModelSpec.
        settings: Kernel settings.
        num_rows: Training rows N.
        num_chains: Chains that advance together in the program, each with all its rungs.
        total: Transitions of the whole run, which no block needs to exceed.
    """
    parameters = spec.layout.num_parameters * num_chains * len(settings.temperatures)
    flops = _flops_per_transition(spec, settings, num_rows, num_chains)
    memory = _BLOCK_BYTES / (8.0 * parameters)
    return _power_of_two(min(affordable_steps(flops), memory, total))


def estimated_seconds(spec, settings, num_rows, num_transitions):
    """About how long so many transitions of a chain take on one core, from settings alone."""
    return num_transitions * _flops_per_transition(spec, settings, num_rows, 1) / _FLOPS_PER_CALL


def _flops_per_transition(spec, settings, num_rows, num_chains):
    # One product forward and two backward: 6 operations per weight and row.
    parameters = spec.layout.num_parameters * num_chains * len(settings.temperatures)
    return (6.0 * num_rows * parameters + 2e5) * settings.work(spec)


def _power_of_two(number):
    length = 1
    while 2 * length <= number:
        length *= 2
    return length
