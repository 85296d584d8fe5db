"""Begins a run: finds where its chains start, and makes the run folder."""

from tfbnn.engine.basis.environment import describe_environment
from tfbnn.engine.density.data import Data, make_data
from tfbnn.engine.running.advance import program_of
from tfbnn.engine.sampling.program import check_starts
from tfbnn.engine.starts.find import find_starts
from tfbnn.run.definition import Beginning, FitDefinition, Starts
from tfbnn.run.description import check_environment, make_run, read_fit_definition
from tfbnn.run.progress import Notifier
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


def starts_of(
    definition: FitDefinition,
    transformed: TransformedRows,
    data: Data,
    notify: Notifier,
) -> Starts:
    """The Starts of a run: those that were given or that a search finds.

    Args:
        definition: FitDefinition.
        transformed: TransformedRows.
        data: Tensors of the training rows.
        notify: As in `prepare_run`.
    """
    pretraining, sampling = definition.pretraining, definition.sampling
    if definition.initial_state is not None:
        return Starts(*definition.initial_state)
    with notify.within(notify.deadline.for_search()):
        return find_starts(definition.spec, transformed, data, pretraining, sampling, notify)
