"""How many processes advance the chains of a run."""

import warnings

from tfbnn.engine.basis.compile import has_gpu
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.from_callable import CallableKernel
from tfbnn.run.definition import RunDefinition
from tfbnn.run.plan import Plan, estimated_seconds
from tfbnn.run.session import Session
from tfbnn.system.threads import num_cores

# A worker takes about ten seconds to import and to compile.
_LONG_SECONDS = 600.0


def check_workers(num_workers: int | str, settings: Kernel) -> None:
    """Refuses processes for a kernel that only this one has.

    Raises:
        ValueError: In that case.
    """
    if num_workers not in ("auto", 1) and isinstance(settings, CallableKernel):
        raise ValueError(
            "A kernel given as a callable runs in this process only, received "
            f"num_workers={num_workers}. Leave num_workers='auto', or use a kernel from "
            "tfbnn.kernels."
        )


def count_workers(session: Session, definition: RunDefinition, settings: Kernel, plan: Plan) -> int:
    """The number of worker processes; 0 says that all chains stay in this process.

    Args:
        session: Session with what was asked for, see `fit_posterior` where the rule for "auto" is
            stated, and with what there is of the run.
        definition, settings, plan: RunDefinition, kernel settings and Plan of the run.
    """
    asked, num_lanes = session.num_workers, len(plan.groups)
    begun = session.found and session.found.in_workers
    if isinstance(asked, str):
        if begun is None:
            begun = num_lanes > 1 and num_cores() > 1 and _is_long(definition, settings, plan)
        # Processes would share the GPU's memory.
        return min(1 if has_gpu() else num_cores(), num_lanes) if begun else 0
    if asked > 1 and num_lanes == 1:
        warnings.warn(
            f"num_workers={asked} was asked for, but all chains advance in one program: on "
            "a GPU, with a kernel whose chains learn from each other, and with eight or more "
            "chains of a tiny network. They stay in this process.",
            UserWarning,
            stacklevel=2,
        )
    num_workers = min(asked, num_lanes)
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


def _is_long(definition: RunDefinition, settings: Kernel, plan: Plan) -> bool:
    if isinstance(settings, CallableKernel):
        return False
    seconds = estimated_seconds(definition.spec, settings, len(definition.rows.x), plan.end)
    return seconds * len(plan.groups) / num_cores() > _LONG_SECONDS
