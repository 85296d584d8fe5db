"""What tasks on a cluster do: they make a run folder, and advance its lanes."""

from contextlib import ExitStack

from tfbnn.engine.basis.seeds import describe_environment
from tfbnn.engine.density.data import make_data, no_rows
from tfbnn.engine.kernels import kernel_from_json
from tfbnn.engine.running.driver import open_lanes, starts_of
from tfbnn.engine.running.run_lanes import run_lanes
from tfbnn.engine.sampling.program import Program, check_starts, make_program, plan_chains
from tfbnn.run.counters import Clock
from tfbnn.run.course import Course
from tfbnn.run.crew import Notify
from tfbnn.run.definition import Beginning, FitDefinition, Layout, RunDefinition
from tfbnn.run.description import (
    check_environment,
    make_run,
    read_beginning,
    read_definition,
    read_fit_definition,
)
from tfbnn.run.progress import Notifier
from tfbnn.run.stores import FolderStore, committed_counters
from tfbnn.spec.rows import TransformedRows
from tfbnn.storage import RunFolder
from tfbnn.system.threads import single_threaded_blas


def prepare_run(staging: RunFolder, path: str, notify: Notifier) -> None:
    """Makes the run folder of a run that tasks on several devices will advance.

    Args:
        staging: RunFolder that holds the definition of the run.
        path: The folder to be made.
        notify: Notifier; when it asks to stop, no folder is made.

    Raises:
        StartError: When a chain cannot move from its start.
        RunLockedError: When another process is about to make it.
        RunFolderError: When the definition was made with other versions or for another device.
    """
    definition = read_fit_definition(staging)
    check_environment(staging, definition, describe_environment())
    transformed = TransformedRows.learn(definition.spec, definition.rows, definition.validation)
    data = make_data(*transformed.train, definition.spec.dtype)
    with single_threaded_blas(), RunFolder.reserved(path) as make:
        starts = starts_of(definition, transformed, data, notify)
        if not (notify.stopped or starts.interrupted):
            program = program_of(definition, many_devices=True)
            log_prob = check_starts(program, starts.theta)
            make_run(make, definition, Beginning(starts, log_prob, program.plan.layout, True))


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
    folder = RunFolder.open(path)
    store, definition = FolderStore(folder, commit_interval), read_definition(folder)
    check_environment(folder, definition, describe_environment())
    (counters,) = committed_counters(folder, [index])
    if counters.transition >= definition.sampling.num_transitions:
        return True
    beginning, clock = read_beginning(folder), Clock(store.seconds([index]))
    program = program_of(definition, beginning.layout)
    course = None if num_results is None else Course(num_results)
    with ExitStack() as stack, single_threaded_blas():
        (lane,) = open_lanes(stack, program, store, [index], beginning.starts.theta, clock)
        ending = run_lanes([lane], notify, clock, course)
    for error in ending.failures.values():
        raise error
    if ending.interrupted:
        raise KeyboardInterrupt
    return lane.leg is None


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
