"""Runs the chains of a fit, in memory or in a run folder."""

import time
from contextlib import ExitStack

import numpy as np

from tfbnn.engine.running.run_lanes import run_lanes
from tfbnn.engine.running.sinks import FolderSink, MemorySink
from tfbnn.engine.running.workers.count import count_workers
from tfbnn.engine.running.workers.crew import run_in_workers
from tfbnn.engine.sampling.lane import Lane
from tfbnn.engine.sampling.program import check_starts, make_program
from tfbnn.exceptions import RunFolderError
from tfbnn.run.progress import nothing_counted
from tfbnn.run.result import PHASES, gather_result
from tfbnn.run.session import read_lanes


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
    num_workers="auto",
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
        recording: `tfbnn.run.session.Recording` of the run folder that draws go to and that the run
            goes on from, or None to keep draws in memory.
        num_workers: As in `fit_posterior`; processes need a recording.

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
    start_log_prob = check_starts(program, theta)
    others = {"start_log_prob": start_log_prob, "seconds": {}}
    others["seconds"]["compile"] = time.perf_counter() - began
    if recording is None or stopped:
        return _run_in_memory(program, theta, notify, stopped, others)
    num_workers = count_workers(num_workers, program, recording)
    recording.begin(program.groups, program.block_length, num_workers > 0, start_log_prob)
    if num_workers:
        return _run_in_workers(program, notify, recording, num_workers, others)
    return _run_in_folder(program, theta, notify, recording, others)


def _run_in_memory(program, theta, notify, stopped, others):
    shape = len(theta), program.num_results
    draws = np.empty((*shape, theta.shape[1]), theta.dtype)
    statistics = {
        name: np.empty((*shape, *rest), dtype) for name, (rest, dtype) in program.statistics.items()
    }
    began = time.perf_counter()
    lanes = [
        Lane(program, group, theta[group], MemorySink(group, draws, statistics))
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


def _run_in_folder(program, theta, notify, recording, others):
    folder, phases = recording.folder, recording.spent_seconds()
    began = time.perf_counter()
    with ExitStack() as stack:
        indices = range(len(program.groups))
        lanes = open_lanes(
            stack, program, folder, indices, theta, recording.commit_interval, phases
        )
        others["seconds"]["startup"] = time.perf_counter() - began
        ended = run_lanes(program, lanes, notify, phases, others["seconds"])
    others["seconds"] |= phases
    return committed_result(program, folder, others, ended)


def _run_in_workers(program, notify, recording, num_workers, others):
    folder, earlier = recording.folder, recording.spent_seconds()
    began = time.perf_counter()
    ended = run_in_workers(program, folder, num_workers, recording.commit_interval, notify)
    phases = recording.spent_seconds()
    sampling = sum(phases.values()) - sum(earlier.values())
    # What the workers need to import and to compile, one beside the other.
    others["seconds"]["startup"] = max(time.perf_counter() - began - sampling, 0.0)
    others["seconds"] |= phases
    return committed_result(program, folder, others, ended)


def committed_result(program, folder, others, ended):
    """SamplingResult of what the lanes have committed, without those that failed."""
    indices, failed = range(len(program.groups)), ended["failures"]
    healthy = [index for index in indices if tuple(program.groups[index]) not in failed] or indices
    draws, statistics, counters = read_lanes(folder, healthy)
    counters = [
        found or nothing_counted(program.groups[index]) for index, found in zip(healthy, counters)
    ]
    return gather_result(draws, statistics, counters, **others, **ended)


def open_lanes(stack, program, folder, indices, theta, commit_interval, phases):
    """Lanes of a run folder, each with its lease, where their checkpoints left them.

    Args:
        stack: ExitStack that gives the leases back.
        program: Their Program.
        folder: RunFolder.
        indices: Numbers of the lanes.
        theta: Starts of all chains [C, P].
        commit_interval: As in `fit_posterior`.
        phases: Dict phase -> seconds spent, which every commit takes down.
    """
    lanes = []
    for index in indices:
        writer, group = stack.enter_context(folder.writer(index)), program.groups[index]
        sink = FolderSink(writer, commit_interval, phases)
        lanes.append(_open_lane(program, group, theta[group], sink, writer.checkpoint))
    return lanes


def _open_lane(program, group, theta, sink, checkpoint):
    """The lane of some chains, where its checkpoint left it, or at the starts theta [C, P]."""
    lane = Lane(program, group, theta, sink)
    if checkpoint is not None:
        lane.restore(checkpoint.arrays, checkpoint.counters)
        if lane.num_kept != checkpoint.num_draws:
            raise RunFolderError(
                f"The checkpoint of chains {group} contradicts itself: {checkpoint.num_draws} draws "
                f"are committed, {lane.num_kept} follow from its transitions."
            )
    return lane
