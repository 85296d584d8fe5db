"""Going on with a run by its folder alone."""

from functools import partial

from tfbnn.fit_options import FitOptions
from tfbnn.model import BayesianMLP
from tfbnn.run_definition import RunDefinition
from tfbnn.storage.schema import TEXT_LISTS

__all__ = ["prepare_resume", "resume"]


def resume(
    folder,
    *,
    num_results=None,
    commit_interval=30.0,
    num_workers="auto",
    verbose="auto",
    callbacks=(),
):
    """Goes on with the run in a folder, which has all that is needed; finished runs are left.

    Args:
        folder: The `output` of `fit_posterior`.
        num_results: Draws kept per chain, if there are to be more than the run was begun with.
        commit_interval, num_workers, verbose, callbacks: As in `fit_posterior`.

    Returns:
        (BayesianMLP, Run), as after the fit. The draws have the bits of a run that nothing
        interrupted.

    Raises:
        RunFolderError, RunLockedError, ChainError, KeyboardInterrupt: As `fit_posterior`.
        ValueError: When the kernel is a callable, which `fit_posterior(resume=True)` takes.

    Example:
        model, run = tfbnn.resume("run/")
    """
    model, go_on = prepare_resume(
        folder,
        num_results=num_results,
        commit_interval=commit_interval,
        num_workers=num_workers,
        verbose=verbose,
        callbacks=callbacks,
    )
    return model, go_on()


def prepare_resume(folder, *, num_results=None, verbose="auto", callbacks=(), **pace):
    """(Model, function that goes on with its run and returns the Run); see `resume`.

    `pace` are commit_interval and num_workers, where they are not to have their defaults.
    The model has draws after the function, also where that was interrupted.
    """
    from tfbnn.engine.kernels import kernel_from_json
    from tfbnn.storage import RunFolder

    opened = RunFolder.open(folder)
    definition = RunDefinition.read(opened)
    model = BayesianMLP.from_spec(definition.spec)
    arguments = FitOptions(
        kernel=kernel_from_json(definition.kernel),
        num_results=definition.num_results if num_results is None else num_results,
        pretraining=definition.pretraining,
        output=folder,
        resume=True,
        column_names={
            name: definition.provenance[name]
            for name in TEXT_LISTS
            if name in definition.provenance
        },
        verbose=verbose,
        callbacks=callbacks,
        **pace,
        **definition.numbers,
    )
    return model, partial(model.fit_rows, definition.rows, definition.validation, arguments)
