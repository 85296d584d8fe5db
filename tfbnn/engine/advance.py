"""Advances one lane of a run folder: what a worker process or a task on a cluster does."""

from tfbnn.engine.environment import describe_environment
from tfbnn.engine.kernels import kernel_from_json
from tfbnn.engine.potential import make_data
from tfbnn.engine.program import make_program
from tfbnn.engine.runner import open_lane
from tfbnn.engine.sinks import FolderSink
from tfbnn.engine.turns import run_lanes
from tfbnn.fitted import TransformedRows
from tfbnn.recording import check_environment, read_starts, spent_seconds
from tfbnn.run_definition import RunDefinition
from tfbnn.storage import RunFolder
from tfbnn.threads import single_threaded_blas

__all__ = ["advance_lane"]


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
    folder = RunFolder.open(path)
    definition = RunDefinition.read(folder)
    check_environment(folder, definition, describe_environment())
    with folder.writer(index) as writer, single_threaded_blas():
        checkpoint = writer.checkpoint
        if checkpoint and checkpoint.counters["transition"] == definition.num_transitions:
            return True
        program = _program(folder, definition)
        group, phases = program.groups[index], spent_seconds([checkpoint])
        sink = FolderSink(writer, commit_interval, phases)
        start = program.potential.coordinates(read_starts(folder).theta, program.data)
        lane = open_lane(program, group, start[group], sink, checkpoint)
        ended = run_lanes(program, [lane], notify, phases, {"compile": 0.0})
    for error in ended["failures"].values():
        raise error
    if ended["interrupted"]:
        raise KeyboardInterrupt
    return lane.leg is None


def _program(folder, definition):
    spec = definition.spec
    rows = TransformedRows.learn(spec, definition.rows, None).train
    settings, _ = kernel_from_json(definition.kernel).resolve(spec, len(definition.rows.x))
    return make_program(
        spec,
        settings,
        make_data(*rows, spec.dtype),
        **definition.numbers,
        num_results=definition.num_results,
        **folder.description["plan"],
    )
