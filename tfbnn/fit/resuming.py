"""Going on with a run by its folder alone."""

from tfbnn.run.definition import RunDefinition
from tfbnn.run.options import FitOptions


def read_run(folder, *, num_results=None, **options):
    """What the folder of a run says of it, as the arguments of a fit that goes on with it.

    Args:
        folder: The run folder.
        num_results: Draws kept per chain, if there are to be more than the run was begun with.
        options: Fields of FitOptions that decide no draw: commit_interval, num_workers, verbose,
            callbacks.

    Returns:
        (RunDefinition, FitOptions).
    """
    from tfbnn.engine.kernels import kernel_from_json
    from tfbnn.storage import RunFolder

    definition = RunDefinition.read(RunFolder.open(folder))
    return definition, FitOptions(
        kernel=kernel_from_json(definition.kernel),
        num_results=definition.num_results if num_results is None else num_results,
        pretraining=definition.pretraining,
        output=folder,
        resume=True,
        column_names=definition.provenance.column_names,
        **definition.numbers,
        **options,
    )
