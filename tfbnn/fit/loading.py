"""`tfbnn.load` and `tfbnn.resume`: read models from files and run folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tfbnn.data.validation import check_flag, check_integer
from tfbnn.exceptions import ModelFileError
from tfbnn.fit.model import BayesianMLP, SampledNetwork
from tfbnn.spec.habits import explains_keywords
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.network_spec import NetworkSpec, check_custom
from tfbnn.system.atomic import StrPath

# The modules that fit are imported where they are used: loading and predicting needs none of them.
if TYPE_CHECKING:
    from tfbnn.run.report import Run
    from tfbnn.run.until import Until


def load(
    path: StrPath,
    *,
    untrusted: bool = False,
    max_bytes: int = 2 * 2**30,
    custom: Sequence[type] = (),
) -> SampledNetwork:
    """Load a fitted model from a file that `save` wrote, or from a run folder; needs no TensorFlow.

    Only the file of a `BayesianModel` needs Keras, unless the model was a plain stack of Dense layers;
    such a file is that of a `BayesianMLP`.

    From a run folder (`output` of `fit_posterior`) the model has the draws that all chains have committed
    so far. The run may continue meanwhile. Its error bars are those of these draws, not calibrated. If
    the fit calibrates them, a file saved after the fit has calibrated error bars, and so has the model
    that `tfbnn.resume` returns.

    Every check that Python can make is made in both cases: a file holds numbers and names out of known
    tables, never code or the names of other files.

    Args:
        path: The model file, or the run folder.
        untrusted: True for files that strangers may have written. A separate process then parses the
            file, so that one crafted to exploit the HDF5 library itself cannot harm this process. This
            costs about 0.3 s. Default False; the command line uses True. Not for run folders.
        max_bytes: Largest size of the file, and of its arrays in memory; default 2 GiB.
        custom: User-defined classes that the model may have: subclasses of `priors.CustomPrior` and
            `likelihoods.CustomNoise`, or layers of a Keras model. Files name classes and hold no code.
            Classes that are not needed do no harm. Not allowed with `untrusted`, because a stranger's
            file would then choose the settings of your code; such a file gets no layer classes that
            were passed earlier either.

    Returns:
        BayesianMLP, or BayesianModel.

    Raises:
        FileNotFoundError: When there is no such file.
        ImportError: For a Keras model when Keras is not installed.
        ModelFileError: When the file is damaged or not a model, or has a class that is not in `custom`.
        RunFolderError: When the folder is not a run, or has such a class.
        TypeError, ValueError: For `custom` with other objects, or classes with names of built-in ones.
        NotFittedError: When the run has no draws yet.
        ChildProcessError: With `untrusted`, when no process can be started.
    """
    from tfbnn.storage import read_model

    check_flag("untrusted", untrusted)
    max_bytes = check_integer("max_bytes", max_bytes, minimum=1)
    given, custom = custom, check_custom(custom)
    if untrusted and given:
        raise ValueError(
            "custom must be left out with untrusted=True, received "
            f"custom={[cls.__name__ for cls in given]}. For a file that you trust use untrusted=False."
        )
    if os.path.isdir(path):
        if untrusted:
            raise ValueError(
                f"untrusted=True is for model files, received the run folder {os.fspath(path)!r}. "
                "For your own run use untrusted=False; ask others for the file that save() writes."
            )
        from tfbnn.fit.assemble import load_run

        ensemble, rows = load_run(path, custom)
        model = _class_of(ensemble.spec).from_ensemble(ensemble)
        model._training_rows = rows
        return model
    ensemble = read_model(path, untrusted=untrusted, max_bytes=max_bytes, custom=custom)
    try:
        return _class_of(ensemble.spec).from_ensemble(ensemble)
    except ValueError as error:
        raise ModelFileError(f"{os.fspath(path)!r}: {error}") from error


def _class_of(spec: NetworkSpec) -> type[SampledNetwork]:
    """Return the class of models with this spec."""
    if not isinstance(spec, KerasSpec):
        return BayesianMLP
    from tfbnn.fit.keras_model import BayesianModel

    return BayesianModel


@explains_keywords
def resume(
    folder: StrPath,
    *,
    num_results: int | None = None,
    until: Until | str | None = "auto",
    max_seconds: float | None = None,
    commit_interval: float = 30.0,
    verbose: int | str = "auto",
    callbacks: Sequence[Any] = (),
    custom: Sequence[type] = (),
) -> tuple[SampledNetwork, Run]:
    """Continue the run in a folder, which holds everything needed. A finished run is left unchanged.

    Args:
        folder: The `output` of `fit_posterior`.
        num_results: Draws to keep per chain, if the run is to have more than it was begun with.
        until: Stopping rule, as for a fit. "auto" (default): the rule that the run was begun
            with, unless num_results is given.
        max_seconds: Limit on the wall-clock seconds from this call to the end, as for a fit. Default
            None: the limit that the run was begun with, if any, counted from now, unless num_results was
            given since.
        commit_interval, verbose, callbacks: As in `fit_posterior`.
        custom: User-defined classes that the model may have, as in `load`.

    Returns:
        (BayesianMLP or BayesianModel, Run), as after the fit. The draws have the bits of an
        uninterrupted run.

    Raises:
        RunFolderError, RunLockedError, ChainError, KeyboardInterrupt: As `fit_posterior`.
        ValueError: When the kernel is a callable; use `fit_posterior(resume=True)` for it.

    Example:
        model, run = tfbnn.resume("run/")
    """
    model, go_on = prepare_resume(
        folder,
        num_results=num_results,
        until=until,
        max_seconds=max_seconds,
        commit_interval=commit_interval,
        verbose=verbose,
        callbacks=callbacks,
        custom=check_custom(custom),
    )
    return model, go_on()


def prepare_resume(folder: StrPath, **options: Any) -> tuple[SampledNetwork, Callable[[], Run]]:
    """Return (model, function that continues its run and returns the Run); see `resume`.

    The model has draws after the function was called, even if the call was interrupted.
    """
    from tfbnn.fit.assemble import read_run

    config, arguments = read_run(folder, **options)
    model = _class_of(config.spec).from_spec(config.spec)
    return model, partial(model.fit_rows, config.spec, config.rows, config.validation, arguments)
