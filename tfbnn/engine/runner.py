"""Runs the chains of a fit, in memory or in a run folder."""

import time
from contextlib import ExitStack

import numpy as np

from tfbnn.engine.lane import Lane
from tfbnn.engine.program import check_starts, make_program
from tfbnn.engine.sinks import FolderSink, MemorySink
from tfbnn.engine.turns import run_lanes
from tfbnn.exceptions import RunFolderError
from tfbnn.recording import read_lanes
from tfbnn.sampling_result import PHASES, gather_result

__all__ = ["open_lane", "run_chains"]


def run_chains(
    spec,
    settings,
    data,
    theta,
    *,
    seed,
    num_results,
    num_burnin_steps,
    num_steps_between_results,
    jit_compile,
    notify,
    stopped,
    recording=None,
):
    """Warms up and samples all chains.

    A chain that fails does not end the others: the result then has their draws and names it.

    Args:
        spec: ModelSpec.
        settings: Kernel settings.
        data: Data tensors.
        theta: Starts [C, P].
        seed: The user's seed.
        num_results, num_burnin_steps, num_steps_between_results: As in `fit_posterior`.
        jit_compile: Whether XLA compiles the block.
        notify: Called with an event dict between blocks; true stops the run.
        stopped: Whether the run was stopped already, so that nothing is to be sampled.
        recording: `tfbnn.recording.Recording` of the run folder that draws go to and that the run
            goes on from, or None to keep draws in memory.

    Returns:
        SamplingResult.

    Raises:
        StartError: When a chain cannot move from its start.
        RunFolderError, RunLockedError: When the folder is damaged or in use.
    """
    began = time.perf_counter()
    program = make_program(
        spec,
        settings,
        data,
        seed=seed,
        num_chains=len(theta),
        num_results=num_results,
        num_burnin_steps=num_burnin_steps,
        num_steps_between_results=num_steps_between_results,
        jit_compile=jit_compile,
        **(recording.plan if recording else {}),
    )
    start, start_log_prob = check_starts(program, theta)
    others = {"start_log_prob": start_log_prob, "seconds": {}}
    others["seconds"]["compile"] = time.perf_counter() - began
    if recording is None or stopped:
        return _run_in_memory(program, theta, start, notify, stopped, others)
    recording.begin(program.groups, program.block_length, start_log_prob)
    return _run_in_folder(program, start, notify, recording, others)


def _run_in_memory(program, theta, start, notify, stopped, others):
    shape = len(theta), program.num_results
    draws = np.empty((*shape, theta.shape[1]), theta.dtype)
    statistics = {
        name: np.empty((*shape, *rest), dtype) for name, (rest, dtype) in program.statistics.items()
    }
    began = time.perf_counter()
    lanes = [
        Lane(program, group, start[group], MemorySink(group, draws, statistics))
        for group in program.groups
    ]
    others["seconds"]["startup"] = time.perf_counter() - began
    phases = dict.fromkeys(PHASES, 0.0)
    ended = {} if stopped else run_lanes(program, lanes, notify, phases, others["seconds"])
    others["seconds"] |= phases
    failed = ended.get("failures", {})
    lanes = [lane for lane in lanes if tuple(lane.chains) not in failed] or lanes
    chains = [chain for lane in lanes for chain in lane.chains]
    if len(chains) < len(theta):
        draws = draws[chains]
        statistics = {name: values[chains] for name, values in statistics.items()}
    num_kept = min(lane.num_kept for lane in lanes)
    statistics = {name: values[:, :num_kept] for name, values in statistics.items()}
    counters = [lane.counters() for lane in lanes]
    return gather_result(draws[:, :num_kept], statistics, counters, **others, **ended)


def _run_in_folder(program, start, notify, recording, others):
    phases = recording.spent_seconds()
    with ExitStack() as stack:
        began = time.perf_counter()
        lanes = []
        for index, group in enumerate(program.groups):
            writer = stack.enter_context(recording.folder.writer(index))
            sink = FolderSink(writer, recording.commit_interval, phases)
            lanes.append(open_lane(program, group, start[group], sink, writer.checkpoint))
        others["seconds"]["startup"] = time.perf_counter() - began
        ended = run_lanes(program, lanes, notify, phases, others["seconds"])
    others["seconds"] |= phases
    failed = ended.get("failures", {})
    indices = range(len(lanes))
    healthy = [index for index in indices if tuple(lanes[index].chains) not in failed] or indices
    counters = [lanes[index].counters() for index in healthy]
    draws, statistics, _ = read_lanes(recording.folder, healthy)
    return gather_result(draws, statistics, counters, **others, **ended)


def open_lane(program, group, start, sink, checkpoint):
    """The lane of some chains, where its checkpoint left it, or at the starts [C, P]."""
    lane = Lane(program, group, start, sink)
    if checkpoint is not None:
        lane.restore(checkpoint.arrays, checkpoint.counters)
        if lane.num_kept != checkpoint.num_draws:
            raise RunFolderError(
                f"The checkpoint of chains {group} contradicts itself: {checkpoint.num_draws} draws "
                f"are committed, {lane.num_kept} follow from its transitions."
            )
    return lane
