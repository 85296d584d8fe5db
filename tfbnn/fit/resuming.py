"""Going on with a run by its folder alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tfbnn.run.definition import FitDefinition
from tfbnn.run.description import read_fit_definition
from tfbnn.run.options import FitOptions
from tfbnn.run.until import Until
from tfbnn.system.paths import StrPath


def read_run(
    folder: StrPath,
    *,
    num_results: int | None = None,
    until: Until | str | None = "auto",
    max_seconds: float | None = None,
    custom: Sequence[Any] = (),
    **options: Any,
) -> tuple[FitDefinition, FitOptions]:
    """What the folder of a run says of it, as the arguments of a fit that goes on with it.

    Args:
        folder: The run folder.
        num_results, until, max_seconds, custom: As in `tfbnn.resume`.
        options: Fields of FitOptions that decide no draw: commit_interval, verbose, callbacks.
    """
    from tfbnn.engine.kernels import kernel_from_json
    from tfbnn.storage import RunFolder

    definition = read_fit_definition(RunFolder.open(folder), custom)
    begun = definition.sampling
    if until == "auto" and num_results is None:
        until = begun.until
    if num_results is None and (until is None) == (begun.until is None):
        num_results = begun.num_results
    if max_seconds is not None:
        begun_until = until if isinstance(until, Until) else Until()
        until = replace(begun_until, max_seconds=max_seconds)
    return definition, FitOptions(
        kernel=kernel_from_json(definition.kernel),
        pretraining=definition.pretraining,
        calibrate=definition.calibrate,
        effort=definition.effort,
        initial_state=definition.initial_state,
        likelihood_power=definition.spec.likelihood_power,
        output=folder,
        resume=True,
        column_names=definition.provenance.column_names,
        num_results="auto" if num_results is None else num_results,
        until=until,
        **begun.numbers,
        **options,
    )
