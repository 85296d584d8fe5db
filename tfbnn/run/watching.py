"""What the folder of a run tells those who only look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfbnn.run.counters import Seconds
from tfbnn.run.description import read_beginning, read_definition
from tfbnn.run.events import SamplingEvent, current_phase
from tfbnn.run.plan import Leg, Plan
from tfbnn.run.stores import committed_counters

if TYPE_CHECKING:
    from tfbnn.storage import RunFolder


def committed_event(folder: RunFolder) -> SamplingEvent:
    """How far a run is by its last commits, as its own process would tell it.

    Raises:
        RunFolderError: When the folder is damaged.
    """
    sampling, layout = read_definition(folder).sampling, read_beginning(folder).layout
    lanes = committed_counters(folder, range(folder.num_lanes))
    # The legs of warm-up belong to the kernel; here only its length matters.
    legs = [
        Leg("warmup", sampling.num_burnin_steps),
        Leg("sampling", sampling.num_results * sampling.stride),
    ]
    is_open = sampling.until is not None
    plan = Plan(*layout, legs, sampling.num_results, sampling.stride, is_open)
    phase = current_phase(lanes, plan)
    return SamplingEvent.of(phase, lanes, plan, Seconds.committed(lanes).phases[phase])
