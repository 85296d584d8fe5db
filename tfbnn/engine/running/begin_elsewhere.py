"""Begins a run: finds where its chains start, and makes the run folder."""

from tfbnn.data.prepared import TransformedRows
from tfbnn.engine.basis.environment import describe_environment
from tfbnn.engine.density.potential import make_data
from tfbnn.engine.running.advance import program_of
from tfbnn.engine.sampling.program import check_starts
from tfbnn.engine.starts.find import find_starts
from tfbnn.run.definition import RunDefinition, check_environment
from tfbnn.run.session import Recording, Starts
from tfbnn.system.threads import single_threaded_blas


def prepare_run(staging, path, notify):
    """Makes the run folder of a run that tasks on several devices will advance.

    Args:
        staging: RunFolder that holds the definition of the run.
        path: The folder to be made.
        notify: `tfbnn.run.progress.Notifier`; when it asks to stop, no folder is made.

    Raises:
        StartError: When a chain cannot move from its start.
        RunLockedError: When another process is about to make it.
        RunFolderError: When the definition was made with other versions or for another device.
    """
    definition = RunDefinition.read(staging)
    check_environment(staging, definition, describe_environment())
    transformed = TransformedRows.learn(definition.spec, definition.rows, definition.validation)
    data = make_data(*transformed.train, definition.spec.dtype)
    recording = Recording(path, definition, commit_interval=None)
    with single_threaded_blas(), recording.reserved():
        recording.starts = starts_of(definition, transformed, data, notify)
        if notify.stopped:
            return
        program = program_of(definition, many_devices=True)
        start_log_prob = check_starts(program, recording.starts.theta)
        recording.begin(program.groups, program.block_length, True, start_log_prob)


def starts_of(definition, transformed, data, notify):
    """The Starts of a run.

    Args:
        definition: RunDefinition.
        transformed: TransformedRows.
        data: Tensors of the training rows.
        notify: As in `prepare_run`.
    """
    spec, numbers, held_out = definition.spec, definition.numbers, transformed.held_out
    found = find_starts(
        spec,
        data,
        None if held_out is None else make_data(*held_out, spec.dtype),
        definition.pretraining,
        seed=numbers["seed"],
        num_chains=numbers["num_chains"],
        jit_compile=numbers["jit_compile"],
        notify=notify,
    )
    return Starts(*found)
