"""What sampling hands back: the draws and the numbers of a run."""

from dataclasses import dataclass, field

import numpy as np

from tfbnn.posterior.collapsed import Readouts, pop_readouts

PHASES = ("warmup", "sampling")


@dataclass(frozen=True)
class SamplingResult:
    """The draws and the numbers of a run, all NumPy.

    Attributes:
        draws: [C, S, P]; S is smaller than asked for when the run was stopped, C when chains
            failed.
        sample_stats: Dict name -> [C, S].
        acceptance_rate: Mean acceptance per chain over the sampling phase [C].
        num_divergent: Divergent transitions per chain in the sampling phase [C].
        num_gradients: Dict phase -> gradients per chain [C].
        step_size: Step size per chain [C].
        start_log_prob: Log density at the starts of all chains.
        seconds: Dict with compile, warmup, sampling.
        interrupted: Whether a KeyboardInterrupt ended the run.
        failures: Dict tuple of chains -> the exception that ended them.
        notes: Lines on what happened to worker processes.
        rung_log_likelihood: Log likelihood at every rung [C, S, m], or None where there is one.
        readouts: Readouts where the readout was collapsed, or None.
    """

    draws: np.ndarray
    sample_stats: dict
    acceptance_rate: np.ndarray
    num_divergent: np.ndarray
    num_gradients: dict
    step_size: np.ndarray
    start_log_prob: np.ndarray
    seconds: dict
    interrupted: bool = False
    failures: dict = field(default_factory=dict)
    rung_log_likelihood: np.ndarray | None = None
    readouts: Readouts | None = None
    notes: tuple = ()


def gather_result(draws, statistics, counters, **others):
    """SamplingResult of several lanes.

    Args:
        draws: [C, S, P].
        statistics: Dict name -> [C, S, ...].
        counters: Those of each lane (`tfbnn.engine.sampling.lane.Lane.counters`), in the order of `draws`.
        others: start_log_prob, seconds, interrupted, failures, notes of the SamplingResult.
    """

    def per_chain(name, *place):
        return np.concatenate([_entry(lane[name], place) for lane in counters])

    statistics = dict(statistics)
    sampled = np.concatenate(
        [[max(lane["transitions"]["sampling"], 1)] * len(lane["chains"]) for lane in counters]
    )
    return SamplingResult(
        draws=draws,
        rung_log_likelihood=statistics.pop("rung_log_likelihood", None),
        readouts=pop_readouts(statistics),
        sample_stats=statistics,
        acceptance_rate=per_chain("acceptance_sum", "sampling") / sampled,
        num_divergent=per_chain("num_divergent").astype(int),
        num_gradients={phase: per_chain("num_gradients", phase).astype(int) for phase in PHASES},
        step_size=per_chain("step_size"),
        **others,
    )


def _entry(values, place):
    for key in place:
        values = values[key]
    # None stands for NaN, which JSON does not have.
    return np.array(values, dtype=float)
