"""Runs the chains of a fit: in memory, in a run folder, in worker processes."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from tfbnn.engine.basis.compile import has_gpu
from tfbnn.engine.density.data import Data
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.from_callable import CallableKernel
from tfbnn.engine.running.run_lanes import run_lanes
from tfbnn.engine.running.same_density import refuse_other_values
from tfbnn.engine.running.workers.crew import run_in_workers
from tfbnn.engine.sampling.lane import Lane
from tfbnn.engine.sampling.program import Program, check_starts, make_program, plan_chains
from tfbnn.engine.starts.find import log_prob_of
from tfbnn.exceptions import RunFolderError
from tfbnn.run.cost import estimated_seconds
from tfbnn.run.counters import Clock, Counters
from tfbnn.run.course import Course, Goal, Judged, Straight, Timed
from tfbnn.run.definition import Beginning, RunDefinition, Starts
from tfbnn.run.progress import Notifier
from tfbnn.run.result import SamplingResult, nothing_sampled
from tfbnn.run.session import Session
from tfbnn.run.stores import FolderStore, Sink, Store, result_of
from tfbnn.spec.density_spec import Sampled
from tfbnn.system.arrays import Array
from tfbnn.system.aside import awaited
from tfbnn.system.threads import num_cores
from tfbnn.system.warn import warn

# A worker takes about ten seconds to import and to compile.
_LONG_SECONDS = 600.0


def run_chains(
    definition: RunDefinition,
    settings: Kernel,
    data: Data,
    starts: Starts,
    session: Session,
    notify: Notifier,
    goal: Goal | None = None,
) -> SamplingResult:
    """Warms up and samples all chains.

    A chain that fails does not end the others: the result then has their draws and names it.

    Args:
        definition: RunDefinition.
        settings: Its kernel, with a definite preconditioner.
        data: Tensors of its training rows, if it has any.
        starts: Where the chains start.
        session: Where draws go, and what there is of the run to go on from.
        notify: Notifier; when it was stopped already, or the search for starts was interrupted,
            nothing is sampled and no run begun; what there is of one already is returned.
        goal: When the run is over, by default with its last draw.

    Raises:
        StartError: When a chain cannot move from its start.
        RunFolderError, RunLockedError: When the folder is damaged or in use.
    """
    if starts.interrupted or notify.stopped:
        # Networks to predict with need no compiled program.
        log_prob = log_prob_of(definition.spec, data, starts.theta)
        found = session.committed_result(fewest=1)
        return found or nothing_sampled(log_prob, starts.interrupted)
    clock = Clock()
    notify.announce("compile")
    with clock.measure("compile"):
        layout = session.found and session.found.layout
        plan = plan_chains(settings, definition, layout)
        program = make_program(settings, definition, data, plan)
        start_log_prob = awaited(check_starts, program, starts.theta)
        if session.found is not None and definition.spec.own_names:
            then = session.found.start_log_prob
            refuse_other_values(definition.spec, start_log_prob, then, "the starts")
    num_workers = count_workers(session, definition, program)
    store = session.begin(plan, Beginning(starts, start_log_prob, plan.layout, num_workers > 0))
    lanes = range(len(plan.groups))
    began, before = time.perf_counter(), store.seconds(lanes)
    course: Course = Straight(plan.num_results) if goal is None else Judged(goal, store)
    if notify.deadline.is_finite and not num_workers:
        course = Timed(course, notify.deadline)
    if num_workers and isinstance(store, FolderStore):
        waits = None if goal is None else course
        own_names = definition.spec.own_names
        ending = run_in_workers(plan, store, num_workers, notify, waits, own_names)
        seconds = clock.seconds + store.seconds(lanes).elapsed(began, before)
    else:
        clock.add(before)
        with ExitStack() as stack:
            with clock.measure("startup"):
                opened = open_lanes(stack, program, store, lanes, starts.theta, clock)
            ending = run_lanes(opened, notify, clock, course)
        seconds = clock.seconds
    if course.ended is not None:
        ending = replace(ending, ended=course.ended)
        if not ending.failures:  # else whoever resumes goes on with the chains that failed
            session.ended = course.ended
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
        lanes.append(awaited(_open_lane, program, group, theta[group], sink))
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


def check_workers(num_workers: int | str, spec: Sampled, settings: Kernel) -> None:
    """Refuses processes for a kernel, or for functions and classes, that only this one has.

    Raises:
        ValueError: In that case.
    """
    if num_workers in ("auto", 1):
        return
    if spec.import_obstacle is not None:
        raise ValueError(
            f"num_workers={num_workers} needs functions and classes that other processes can import, "
            f"received one they cannot: {spec.import_obstacle}. Define it in a module of its own, "
            "or use num_workers=1."
        )
    if isinstance(settings, CallableKernel):
        raise ValueError(
            "A kernel given as a callable runs in this process only, received "
            f"num_workers={num_workers}. Leave num_workers='auto', or use a kernel from "
            "tfbnn.kernels."
        )


def count_workers(session: Session, definition: RunDefinition, program: Program) -> int:
    """The number of worker processes; 0 says that all chains stay in this process.

    Args:
        session: Session with what was asked for, see `fit_posterior` where the rule for "auto" is
            stated, and with what there is of the run.
        definition, program: RunDefinition and Program of the run.
    """
    asked, num_lanes = session.num_workers, len(program.plan.groups)
    begun = session.found and session.found.in_workers
    if isinstance(asked, str) and definition.spec.import_obstacle is not None:
        asked = 1  # of a run that was begun in workers, the warning below says so
    if isinstance(asked, str):
        if begun is None:
            is_limited = definition.sampling.is_limited
            is_long = not is_limited and _is_long(definition, program)
            begun = num_lanes > 1 and num_cores() > 1 and is_long
        # Several would share the GPU's memory, or each keep all cores.
        alone = has_gpu() or program.keeps_all_cores
        return min(1 if alone else num_cores(), num_lanes) if begun else 0
    if asked > 1 and num_lanes == 1:
        warn(
            f"num_workers={asked} was asked for, but all chains advance in one program: on "
            "a GPU, with a kernel whose chains learn from each other, and with eight or more "
            "chains of a tiny network. They stay in this process.",
        )
    num_workers = min(asked, num_lanes)
    if num_workers == 1:
        num_workers = 0
    if begun is not None and begun != bool(num_workers):
        warn(
            f"The run was begun {'in worker processes' if begun else 'in one process'} and goes on "
            f"{'in one process' if begun else 'in worker processes'}, with another number of "
            "threads per operation: its draws may differ in the last bits from those of a run "
            "that nothing interrupted. With num_workers='auto' it goes on as it was begun.",
        )
    return num_workers


def _is_long(definition: RunDefinition, program: Program) -> bool:
    settings, plan = program.settings, program.plan
    if isinstance(settings, CallableKernel):
        return False
    seconds = estimated_seconds(definition.spec, settings, definition.num_rows, plan.end)
    return seconds * len(plan.groups) / num_cores() > _LONG_SECONDS
