"""Runs the chains of a fit: in memory, in a run folder, in worker processes."""

import time
from collections.abc import Sequence
from contextlib import ExitStack

from tfbnn.engine.density.potential import Data
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.running.run_lanes import run_lanes
from tfbnn.engine.running.workers.count import count_workers
from tfbnn.engine.running.workers.crew import run_in_workers
from tfbnn.engine.sampling.lane import Lane
from tfbnn.engine.sampling.program import Program, check_starts, make_program, plan_chains
from tfbnn.exceptions import RunFolderError
from tfbnn.run.counters import Clock, Counters
from tfbnn.run.definition import Beginning, RunDefinition, Starts
from tfbnn.run.progress import Notifier
from tfbnn.run.result import SamplingResult
from tfbnn.run.session import MemorySession, Session
from tfbnn.run.stores import Sink, Store, result_of
from tfbnn.system.arrays import Array


def run_chains(
    definition: RunDefinition,
    settings: Kernel,
    data: Data,
    starts: Starts,
    session: Session,
    notify: Notifier,
) -> SamplingResult:
    """Warms up and samples all chains.

    A chain that fails does not end the others: the result then has their draws and names it.

    Args:
        definition: RunDefinition.
        settings: Its kernel, with a definite preconditioner.
        data: Tensors of its training rows.
        starts: Where the chains start.
        session: Where draws go, and what there is of the run to go on from.
        notify: Notifier; when it was stopped already, nothing is sampled.

    Raises:
        StartError: When a chain cannot move from its start.
        RunFolderError, RunLockedError: When the folder is damaged or in use.
    """
    clock, spec, sampling = Clock(), definition.spec, definition.sampling
    with clock.measure("compile"):
        layout = session.found and session.found.layout
        plan = plan_chains(settings, spec, data.x.shape[-1], sampling, layout)
        program = make_program(settings, spec, data, sampling, plan)
        start_log_prob = check_starts(program, starts.theta)
    if notify.stopped:
        session = MemorySession()
    num_workers = count_workers(session, definition, settings, plan)
    store = session.begin(plan, Beginning(starts, start_log_prob, plan.layout, num_workers > 0))
    lanes = range(len(plan.groups))
    began, before = time.perf_counter(), store.seconds(lanes)
    if num_workers:
        ending = run_in_workers(plan, store, num_workers, notify)
        seconds = clock.seconds + store.seconds(lanes).elapsed(began, before)
    else:
        clock.add(before)
        with ExitStack() as stack:
            with clock.measure("startup"):
                opened = open_lanes(stack, program, store, lanes, starts.theta, clock)
            ending = run_lanes(opened, notify, clock, notify.stopped)
        seconds = clock.seconds
    return result_of(store, plan, start_log_prob, seconds, ending)


def open_lanes(
    stack: ExitStack,
    program: Program,
    store: Store,
    indices: Sequence[int],
    theta: Array,
    clock: Clock,
) -> list[Lane]:
    """Lanes where their last commits left them, or at their starts.

    Args:
        stack: ExitStack that gives the lanes back, of which each has one writer at a time.
        program: Their Program.
        store: Where their draws go.
        indices: Numbers of the lanes.
        theta: Starts of all chains [C, P].
        clock: Clock of the run.
    """
    lanes = []
    for index in indices:
        sink, group = stack.enter_context(store.sink(index, clock)), program.plan.groups[index]
        lanes.append(_open_lane(program, group, theta[group], sink))
    return lanes


def _open_lane(program: Program, group: list[int], theta: Array, sink: Sink) -> Lane:
    lane, checkpoint = Lane(program, group, theta, sink), sink.checkpoint
    if checkpoint is not None:
        lane.restore(checkpoint.arrays, Counters.from_json(checkpoint.counters))
        if lane.num_kept != checkpoint.num_draws:
            raise RunFolderError(
                f"The checkpoint of chains {group} contradicts itself: {checkpoint.num_draws} draws "
                f"are committed, {lane.num_kept} follow from its transitions."
            )
    return lane
