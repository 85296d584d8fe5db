"""Advances lanes of a run folder: what a worker process or a task on a cluster does."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from tfbnn.engine.basis.environment import describe_environment
from tfbnn.engine.density.data import make_data, no_rows
from tfbnn.engine.kernels import kernel_from_json
from tfbnn.engine.running.driver import open_lanes
from tfbnn.engine.running.run_lanes import run_lanes
from tfbnn.engine.running.same_density import refuse_other_values
from tfbnn.engine.sampling.program import Program, check_starts, make_program, plan_chains
from tfbnn.run.counters import Clock
from tfbnn.run.course import Course, Straight
from tfbnn.run.crew import Notify
from tfbnn.run.definition import FitDefinition, Layout, RunDefinition
from tfbnn.run.description import check_environment, read_beginning
from tfbnn.run.reading import read_definition
from tfbnn.run.result import Ending
from tfbnn.run.stores import FolderStore, committed_counters
from tfbnn.spec.density_spec import DensitySpec
from tfbnn.spec.own_classes import imported, without_layers
from tfbnn.spec.rows import TransformedRows
from tfbnn.storage import RunFolder
from tfbnn.system.threads import single_threaded_blas


def advance_lane(
    path: str,
    index: int,
    *,
    commit_interval: float = 30.0,
    notify: Notify = lambda event: False,
    num_results: int | None = None,
) -> bool:
    """Advances one lane of a run to its end, or until `notify` asks to stop, and commits.

    Everything it needs is in the folder, so any process may call it, any number of times: a lane
    goes on from its last commit, and one that is finished is left as it is. The draws are those of
    `fit_posterior` in one process, bit by bit with the same number of threads per operation.

    Args:
        path: The run folder.
        index: Number of the lane.
        commit_interval: As in `fit_posterior`.
        notify: Called with an Event about once a second; true ends the call.
        num_results: Draws per chain to go on to, by default as many as the run may have.

    Returns:
        Whether the lane has come so far.

    Raises:
        RunLockedError: When another process is at work on this lane.
        RunFolderError: When the folder is damaged, or the run was begun with other versions or on
            another kind of device.
        ValueError: When the kernel is a callable, which only the process that has it can run.
        KeyboardInterrupt: After committing, on SIGINT or where a signal handler raises it.
        Exception: What made a block or a commit fail; the last commit is intact.
    """
    course = None if num_results is None else Straight(num_results)
    ending, finished = advance_lanes(
        path, [index], commit_interval=commit_interval, notify=notify, course=course
    )
    for error in ending.failures.values():
        raise error
    if ending.interrupted:
        raise KeyboardInterrupt
    return finished


def advance_lanes(
    path: str,
    indices: Sequence[int],
    *,
    commit_interval: float,
    notify: Notify,
    course: Course | None = None,
    own_names: Sequence[str] = (),
) -> tuple[Ending, bool]:
    """As `advance_lane`, several lanes, which take turns; one that fails does not end the others.

    Args:
        path, commit_interval, notify: As there.
        indices: Numbers of the lanes.
        course: How far they go, by default as far as the run may.
        own_names: Names of the functions of a log density, or of a user's own classes in a model, of
            priors, noise and layers, "module:name" each, to be imported: what the folder names counts
            for nothing without the word of the caller.

    Returns:
        (How that ended, whether all of them are where they were to go).

    Raises:
        RunLockedError, RunFolderError, ValueError: As there.
        StartError: When a chain cannot move from its start.
    """
    folder = RunFolder.open(path)
    store, own = FolderStore(folder, commit_interval), tuple(map(imported, own_names))
    definition = read_definition(folder, without_layers(own))
    if isinstance(definition.spec, DensitySpec):
        definition = replace(definition, spec=definition.spec.bringing(own_names, own))
    check_environment(folder, definition, describe_environment())
    unfinished = [
        index
        for index, lane in zip(indices, committed_counters(folder, indices))
        if lane.transition < definition.sampling.num_transitions
    ]
    if not unfinished:
        return Ending(), True
    beginning, clock = read_beginning(folder), Clock(store.seconds(indices))
    program = program_of(definition, beginning.layout)
    if own_names:
        now = check_starts(program, beginning.starts.theta)
        refuse_other_values(definition.spec, now, beginning.start_log_prob, "the starts")
    with ExitStack() as stack, single_threaded_blas():
        lanes = open_lanes(stack, program, store, unfinished, beginning.starts.theta, clock)
        ending = run_lanes(lanes, notify, clock, course)
    return ending, all(lane.leg is None for lane in lanes)


def program_of(
    definition: RunDefinition, layout: Layout | None = None, *, many_devices: bool = False
) -> Program:
    """The Program of a RunDefinition; `layout` and `many_devices` as in `plan_chains`."""
    settings = kernel_from_json(definition.kernel)
    settings, _ = settings.resolve(definition.spec, definition.num_rows)
    plan = plan_chains(settings, definition, layout, many_devices=many_devices)
    data = no_rows(definition.spec.dtype)
    if isinstance(definition, FitDefinition):
        rows = TransformedRows.learn(definition.spec, definition.rows, None).train
        data = make_data(*rows, definition.spec.dtype)
    return make_program(settings, definition, data, plan)
