"""Advances lanes of a run folder: what a worker process or a task on a cluster does."""

from contextlib import ExitStack

from tfbnn.data.prepared import TransformedRows
from tfbnn.engine.basis.environment import describe_environment
from tfbnn.engine.density.potential import make_data
from tfbnn.engine.kernels import kernel_from_json
from tfbnn.engine.running.driver import open_lanes
from tfbnn.engine.running.run_lanes import run_lanes
from tfbnn.engine.sampling.program import make_program
from tfbnn.run.definition import RunDefinition, check_environment
from tfbnn.run.session import read_starts, spent_seconds
from tfbnn.storage import RunFolder
from tfbnn.system.threads import single_threaded_blas


def advance_lane(path, index, *, commit_interval=30.0, notify=lambda event: False):
    """Advances one lane of a run to its end, or until `notify` asks to stop, and commits.

    Everything it needs is in the folder, so any process may call it, any number of times: a lane
    goes on from its last commit, and one that is finished is left as it is. The draws are those of
    `fit_posterior` in one process, bit by bit with the same number of threads per operation.

    Args:
        path: The run folder.
        index: Number of the lane.
        commit_interval: As in `fit_posterior`.
        notify: Called with an event dict after each block; true ends the call after it.

    Returns:
        Whether the lane is finished.

    Raises:
        RunLockedError: When another process is at work on this lane.
        RunFolderError: When the folder is damaged, or the run was begun with other versions or on
            another kind of device.
        ValueError: When the kernel is a callable, which only the process that has it can run.
        KeyboardInterrupt: After committing, on SIGINT or where a signal handler raises it.
        Exception: What made a block or a commit fail; the last commit is intact.
    """
    ended = advance_lanes(path, [index], commit_interval=commit_interval, notify=notify)
    for error in ended["failures"].values():
        raise error
    if ended["interrupted"]:
        raise KeyboardInterrupt
    return ended["finished"]


def advance_lanes(path, indices, *, commit_interval=30.0, notify=lambda event: False):
    """As `advance_lane`, several lanes, which take turns; one that fails does not end the others.

    Args:
        path, commit_interval, notify: As there.
        indices: Numbers of the lanes.

    Returns:
        Dict with interrupted and failures, as in SamplingResult, and finished: whether all lanes
        are at their ends.

    Raises:
        RunLockedError, RunFolderError, ValueError: As there.
        StartError: When a chain cannot move from its start.
    """
    folder = RunFolder.open(path)
    definition = RunDefinition.read(folder)
    check_environment(folder, definition, describe_environment())
    found = {index: folder.checkpoint(index) for index in indices}
    unfinished = [
        index
        for index, checkpoint in found.items()
        if not checkpoint or checkpoint.counters["transition"] < definition.num_transitions
    ]
    if not unfinished:
        return {"interrupted": False, "failures": {}, "finished": True}
    program = program_of(definition, **folder.description["plan"])
    theta, phases = read_starts(folder).theta, spent_seconds(found.values())
    with ExitStack() as stack, single_threaded_blas():
        lanes = open_lanes(stack, program, folder, unfinished, theta, commit_interval, phases)
        ended = run_lanes(program, lanes, notify, phases, {"compile": 0.0})
    return ended | {"finished": all(lane.leg is None for lane in lanes)}


def program_of(definition, **plan):
    """The Program of a RunDefinition; `plan` as the last arguments of `make_program`."""
    spec = definition.spec
    rows = TransformedRows.learn(spec, definition.rows, None).train
    settings, _ = kernel_from_json(definition.kernel).resolve(spec, len(definition.rows.x))
    return make_program(
        spec,
        settings,
        make_data(*rows, spec.dtype),
        **definition.numbers,
        num_results=definition.num_results,
        **plan,
    )
