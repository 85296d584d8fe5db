"""The definition of a run, read back from its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tfbnn.data.coding import Coding
from tfbnn.data.transforms import Pipeline
from tfbnn.exceptions import RunFolderError
from tfbnn.posterior.provenance import Provenance
from tfbnn.run.definition import FitDefinition, InitialState, RunDefinition
from tfbnn.run.description import INITIAL_STATE, wanted_results
from tfbnn.run.options import Sampling
from tfbnn.run.until import Until
from tfbnn.spec.density_spec import DensitySpec
from tfbnn.spec.habits import without_former
from tfbnn.spec.keras_spec import spec_from_json
from tfbnn.spec.own_classes import OwnClassError
from tfbnn.spec.rows import Rows
from tfbnn.spec.settings_json import Pretraining, settings_from_json
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from tfbnn.storage import RunFolder


def read_definition(folder: RunFolder, custom: Sequence[Any] = ()) -> RunDefinition:
    """The definition of the run in a folder, of a model or a log density.

    The functions of the latter are not there: what a file names is not called.

    Args:
        folder: RunFolder.
        custom: Classes of the caller's own that a model may have, see `with_custom`.

    Raises:
        RunFolderError: When it is not one that the functions above can have written, or of a class
            that is not among those.
    """
    description = folder.description
    try:
        fixed = dict(description["fixed"])
        common = dict(
            kernel=fixed["kernel"],
            sampling=Sampling(
                **without_former(fixed["numbers"]),
                num_results=wanted_results(folder),
                # Earlier releases knew of none.
                until=Until.from_json(description.get("until")),
            ),
            environment=fixed["environment"],
            temperatures=tuple(description["temperatures"]),
            initial_state=_read_initial_state(description, folder.arrays),
        )
        if DensitySpec.describes(fixed["spec"]):
            return RunDefinition(spec=DensitySpec.from_json(fixed["spec"]), **common)
        spec = spec_from_json(fixed["spec"], custom)
        return FitDefinition(spec=spec, **common, **_read_fit(description, fixed, folder.arrays))
    except OwnClassError as error:
        raise RunFolderError(f"{folder.path!r}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"{folder.path!r} does not describe a run that this release knows "
            f"({type(error).__name__}: {error}). Start a new run in another folder."
        ) from error


def read_fit_definition(folder: RunFolder, custom: Sequence[Any] = ()) -> FitDefinition:
    """That of a run that has to be one of a model; arguments as of `read_definition`.

    Raises:
        RunFolderError: As `read_definition`, and for a log density.
    """
    definition = read_definition(folder, custom)
    if isinstance(definition, FitDefinition):
        return definition
    raise RunFolderError(
        f"{folder.path!r} holds draws of a log density, and no model. To go on with it, or to read "
        "what is there, call tfbnn.sample with the same log_prob, output= this folder, resume=True."
    )


def _read_fit(
    description: dict[str, Any], fixed: dict[str, Any], arrays: Mapping[str, Array]
) -> dict[str, Any]:
    """What a FitDefinition has besides what all have, and besides its spec."""
    pretraining = fixed["pretraining"]
    read_rows = partial(
        _read_rows,
        arrays=arrays,
        feature_names=description["feature_names"],
        classes=fixed["classes"],
        coding=_read_coding(fixed),
        # Runs of the first format do not say it: their models predict [N, K].
        vector_target=bool(description.get("vector_target", False)),
    )
    return {
        "rows": replace(read_rows("training"), transforms=_read_transforms(fixed)),
        "validation": read_rows("validation") if fixed["validation rows"] else None,
        "pretraining": pretraining
        and settings_from_json(pretraining, {"Pretraining": Pretraining}),
        "provenance": Provenance.from_json(dict(description["provenance"])),
        # Earlier releases ended no run so.
        "calibrate": bool(description.get("calibrate", False)),
        "effort": float(description.get("effort", 1.0)),
    }


def _read_rows(
    name: str,
    arrays: Mapping[str, Array],
    feature_names: Any,
    classes: Any,
    coding: Coding | None,
    vector_target: bool,
) -> Rows:
    return Rows(
        arrays[f"{name} x"],
        arrays[f"{name} y"],
        arrays.get(f"{name} noise"),
        feature_names and tuple(feature_names),
        classes and tuple(classes),
        vector_target,
        coding=coding,
        groups=arrays.get(f"{name} groups"),
    )


def _read_coding(fixed: dict[str, Any]) -> Coding | None:
    entries = fixed.get("coding")  # earlier releases knew of none
    return None if entries is None else Coding.from_json(entries)


def _read_transforms(fixed: dict[str, Any]) -> tuple[Pipeline, Pipeline] | None:
    entries = fixed.get("transforms")  # earlier releases handed none on
    if entries is None:
        return None
    x_pipeline, y_pipeline = map(Pipeline.from_json, entries)
    return x_pipeline, y_pipeline


def _read_initial_state(
    description: dict[str, Any], arrays: Mapping[str, Array]
) -> InitialState | None:
    text = description.get("initial_state")  # earlier releases knew of none
    return None if text is None else InitialState(arrays[INITIAL_STATE], str(text))
