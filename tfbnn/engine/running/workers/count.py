"""How many processes advance the chains of a run."""

import warnings

from tfbnn.engine.basis.compile import has_gpu
from tfbnn.engine.basis.schedule import estimated_seconds
from tfbnn.engine.kernels.from_callable import CallableKernel
from tfbnn.run.result import PHASES
from tfbnn.system.threads import num_cores

# A worker takes about ten seconds to import and to compile.
_LONG_SECONDS = 600.0


def check_workers(num_workers, settings):
    """Refuses processes for a kernel that only this one has.

    Raises:
        ValueError: In that case.
    """
    if num_workers != "auto" and num_workers > 1 and isinstance(settings, CallableKernel):
        raise ValueError(
            "A kernel given as a callable runs in this process only, received "
            f"num_workers={num_workers}. Leave num_workers='auto', or use a kernel from "
            "tfbnn.kernels."
        )


def count_workers(num_workers, program, recording):
    """The number of worker processes; 0 says that all chains stay in this process.

    Args:
        num_workers: As in `fit_posterior`, where the rule for "auto" is stated.
        program: The Program of the run.
        recording: Its Recording.
    """
    num_lanes, begun = len(program.groups), recording.begun_in_workers
    if num_workers == "auto":
        if begun is None:
            begun = num_lanes > 1 and num_cores() > 1 and _is_long(program)
        # Processes would share the GPU's memory.
        return min(1 if has_gpu() else num_cores(), num_lanes) if begun else 0
    if num_workers > 1 and num_lanes == 1:
        warnings.warn(
            f"num_workers={num_workers} was asked for, but all chains advance in one program: on "
            "a GPU, with a kernel whose chains learn from each other, and with eight or more "
            "chains of a tiny network. They stay in this process.",
            UserWarning,
            stacklevel=2,
        )
    num_workers = min(num_workers, num_lanes)
    if num_workers == 1:
        num_workers = 0
    if begun is not None and begun != bool(num_workers):
        warnings.warn(
            f"The run was begun {'in worker processes' if begun else 'in one process'} and goes on "
            f"{'in one process' if begun else 'in worker processes'}, with another number of "
            "threads per operation: its draws may differ in the last bits from those of a run "
            "that nothing interrupted. With num_workers='auto' it goes on as it was begun.",
            UserWarning,
            stacklevel=2,
        )
    return num_workers


def _is_long(program):
    if isinstance(program.settings, CallableKernel):
        return False
    total = sum(map(program.num_transitions, PHASES))
    seconds = estimated_seconds(program.spec, program.settings, program.data.x.shape[-1], total)
    return seconds * len(program.groups) / num_cores() > _LONG_SECONDS
