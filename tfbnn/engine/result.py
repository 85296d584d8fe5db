"""What sampling hands back to the ground floor."""

from dataclasses import dataclass

import numpy as np

from tfbnn.engine.lane import PHASES
from tfbnn.readouts import Readouts

__all__ = ["SamplingResult", "gather_result"]


@dataclass(frozen=True)
class SamplingResult:
    """The draws and the numbers of a run, all NumPy.

    Attributes:
        draws: [C, S, P]; S is smaller than asked for when the run was stopped.
        sample_stats: Dict name -> [C, S].
        acceptance_rate: Mean acceptance per chain over the sampling phase [C].
        num_divergent: Divergent transitions per chain in the sampling phase [C].
        num_gradients: Dict phase -> gradients per chain [C].
        step_size: Step size per chain [C].
        start_log_prob: Log density at the starts [C].
        seconds: Dict with compile, warmup, sampling.
        interrupted: Whether a KeyboardInterrupt ended the run.
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
    interrupted: bool
    rung_log_likelihood: np.ndarray | None = None
    readouts: Readouts | None = None


def gather_result(lanes, draws, statistics, start_log_prob, seconds, interrupted):
    """SamplingResult of all lanes, cut to the draws that every chain has.

    Args:
        lanes: The lanes, in the order of their chains.
        draws, statistics: The arrays that the lanes wrote to.
        start_log_prob, seconds, interrupted: As in SamplingResult.
    """
    num_kept = min(lane.num_kept for lane in lanes)

    def per_chain(values):
        return np.concatenate([np.atleast_1d(value) for value in values])

    kept = {name: array[:, :num_kept] for name, array in statistics.items()}
    rung_log_likelihood = kept.pop("rung_log_likelihood", None)
    mean, factor = kept.pop("readout_mean", None), kept.pop("readout_factor", None)
    sampled = [max(lane.phase_transitions["sampling"], 1) for lane in lanes]
    return SamplingResult(
        draws=draws[:, :num_kept],
        sample_stats=kept,
        acceptance_rate=per_chain(
            lane.acceptance_sum["sampling"] / count for lane, count in zip(lanes, sampled)
        ),
        num_divergent=per_chain(lane.num_divergent for lane in lanes),
        num_gradients={
            phase: per_chain(lane.num_gradients[phase] for lane in lanes) for phase in PHASES
        },
        step_size=per_chain(lane.step_size for lane in lanes),
        start_log_prob=start_log_prob,
        seconds=seconds,
        interrupted=interrupted,
        rung_log_likelihood=rung_log_likelihood,
        readouts=None if mean is None else Readouts(mean, factor),
    )
