"""What callbacks and the progress line are told after a block, by what the lanes have counted."""

import numpy as np

from tfbnn.sampling_result import PHASES

__all__ = ["current_phase", "make_event", "nothing_counted"]

# A chain that has accepted nothing for so many transitions is named in the events of the run.
_STANDING_STILL = 20


def make_event(phase, lanes, program, seconds):
    """The event of a run after a block, JSON-able but for NaN.

    Args:
        phase: The phase that the block belongs to.
        lanes: The counters (`tfbnn.engine.lane.Lane.counters`) of the lanes to report on.
        program: Their Program.
        seconds: Spent in the phase so far.
    """
    total = program.num_transitions(phase)
    done = float(np.mean([lane["transitions"][phase] for lane in lanes]))
    return {
        "phase": phase,
        "transition": int(done),
        "num_transitions": total,
        "num_chains": sum(len(lane["chains"]) for lane in lanes),
        "num_kept": min(lane["transitions"]["sampling"] for lane in lanes) // program.stride,
        "seconds": seconds,
        "eta_seconds": seconds * (total - done) / done if done else float("nan"),
        "acceptance_rate": _known(np.mean, lanes, "recent_acceptance"),
        "step_size": _known(np.median, lanes, "step_size"),
        "num_divergent": sum(sum(lane["num_divergent"]) for lane in lanes),
        "num_gradients": sum(sum(lane["num_gradients"][phase]) for lane in lanes),
        "standing_still": [
            chain
            for lane in lanes
            for chain, refused in zip(lane["chains"], lane["num_refused"])
            if refused >= _STANDING_STILL
        ],
        "lanes": lanes,
    }


def current_phase(lanes, program):
    """The first phase that some lane, by its counters, has not finished; the last at the end."""
    for phase in PHASES:
        end = program.num_transitions(phase)
        if any(lane["transitions"][phase] < end for lane in lanes):
            return phase
    return PHASES[-1]


def nothing_counted(chains):
    """The counters of a lane that has made no transition."""
    zeros, unknown = [0] * len(chains), [None] * len(chains)
    return {
        "chains": list(chains),
        "transition": 0,
        "transitions": dict.fromkeys(PHASES, 0),
        "acceptance_sum": dict.fromkeys(PHASES, zeros),
        "num_gradients": dict.fromkeys(PHASES, zeros),
        "num_divergent": zeros,
        "num_refused": zeros,
        "recent_acceptance": unknown,
        "step_size": unknown,
    }


def _known(average, lanes, name):
    values = [value for lane in lanes for value in lane[name] if value is not None]
    return float(average(values)) if values else float("nan")
