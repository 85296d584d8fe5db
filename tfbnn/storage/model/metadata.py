"""The JSON of a model file: everything that is not an array."""

from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from tfbnn.data.coding import Coding
from tfbnn.data.labels import check_classes
from tfbnn.data.transforms import Pipeline
from tfbnn.diagnostics.fit_check import rows_check_from_json
from tfbnn.diagnostics.verdict import Chains, Predictions
from tfbnn.exceptions import ModelFileError
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.provenance import Provenance
from tfbnn.posterior.record_kinds import TEXTS, check_entry
from tfbnn.spec.keras_spec import spec_from_json
from tfbnn.spec.own_classes import OwnClassError, own_classes_in
from tfbnn.storage.format import schema
from tfbnn.storage.format.json_text import parse_json, to_json
from tfbnn.system.arrays import Array


def encode_metadata(ensemble: Ensemble, created_at: str | None) -> Array:
    """The metadata of an ensemble as an array of bytes.

    Args:
        ensemble: Ensemble.
        created_at: Time as text, or None to keep what the provenance says.
    """
    provenance = ensemble.provenance
    if created_at is not None:
        provenance = provenance.stating(created_at=created_at)
    metadata = {name: getattr(ensemble, name) for name in schema.METADATA_KINDS}
    metadata["provenance"] = provenance
    for name, value in metadata.items():
        if hasattr(value, "to_json"):
            metadata[name] = value.to_json()
    return np.frombuffer(to_json(metadata), np.uint8)


def decode_metadata(
    array: Array | h5py.Dataset, version: int, custom: Sequence[Any] = ()
) -> dict[str, Any]:
    """Parses the bytes of the metadata; names of classes and functions are looked up in tables.

    Args:
        array: The bytes, as array or as dataset of an open file.
        version: Of the format; what later ones added has the meaning it had without.
        custom: Classes of the caller's own that the model may have.

    Returns:
        Dict with the keys of the schema: arguments of `Ensemble`, but those of calibration and basins
        their entries.

    Raises:
        ModelFileError, ValueError, TypeError, KeyError: For anything `encode_metadata` cannot have
            written.
    """
    _check_length(array, schema.MAX_METADATA_BYTES)
    metadata = parse_json(array[()].tobytes())
    later = [entries for added, entries in schema.ADDED_METADATA.items() if added > version]
    added = {name: meaning for entries in later for name, meaning in entries.items()}
    keys = [name for name in schema.METADATA_KINDS if name not in added]
    if not isinstance(metadata, dict) or sorted(metadata) != sorted(keys):
        raise ModelFileError(f"metadata must be an object with the keys {tuple(keys)}.")
    metadata |= added
    for name, kinds in schema.METADATA_KINDS.items():
        if not isinstance(metadata[name], kinds):
            raise ModelFileError(f"{name} in metadata has the wrong type: {metadata[name]!r:.100}.")
    parsed = dict(metadata)
    try:
        parsed["spec"] = spec_from_json(metadata["spec"], custom)
    except OwnClassError as error:
        raise ModelFileError(f"{error}.") from error
    for name in ("x_pipeline", "y_pipeline"):
        parsed[name] = Pipeline.from_json(metadata[name])
    for name in ("spec", "x_pipeline", "y_pipeline"):
        # Entries that the model does not know must not pass unseen.
        if parsed[name].to_json() != metadata[name]:
            raise ModelFileError(f"{name} in metadata has entries that are unknown or missing.")
    parsed["provenance"] = Provenance.from_json(metadata["provenance"])
    for name in ("feature_names", "classes"):
        parsed[name] = None if metadata[name] is None else tuple(metadata[name])
    parsed["coding"] = None if metadata["coding"] is None else Coding.from_json(metadata["coding"])
    return parsed


def check_metadata(ensemble: Ensemble) -> None:
    """Refuses names, labels, records and transforms that do not belong to the model.

    Raises:
        ModelFileError, TypeError, ValueError: Names what does not.
    """
    spec, names = ensemble.spec, ensemble.feature_names
    if names is not None and not _is_texts(names, spec.num_inputs):
        raise ModelFileError(
            f"feature_names must be {spec.num_inputs} texts, found {names!r:.200}."
        )
    if ensemble.coding is not None and names != ensemble.coding.input_names:
        raise ModelFileError(
            f"feature_names must be {ensemble.coding.input_names!r:.200} by the coding of the columns, "
            f"found {names!r:.200}."
        )
    if ensemble.vector_target and spec.num_targets != 1:
        raise ModelFileError(
            f"vector_target goes with one target, found true for {spec.num_targets}."
        )
    if spec.has_classes:
        check_classes(ensemble.classes or (), spec.num_classes)
    elif ensemble.classes is not None:
        raise ModelFileError("classes must be absent for a likelihood without classes.")
    if spec.has_classes and ensemble.calibration is not None:
        raise ModelFileError("calibration must be absent for a likelihood with classes.")
    if ensemble.diagnostics is not None:
        said = ensemble.diagnostics.get("warnings")
        if said is not None:
            check_entry("warnings", said, TEXTS)
        rows_check_from_json(ensemble.diagnostics.get("training_rows"))
        Chains.from_json(ensemble.diagnostics.get("chains"))
        Predictions.from_json(ensemble.diagnostics.get("predictions"))
    for name, pipeline, columns, expected in (
        ("x_pipeline", ensemble.x_pipeline, spec.num_inputs, spec.x_transform),
        ("y_pipeline", ensemble.y_pipeline, spec.num_targets, spec.y_transform),
    ):
        if tuple(step.name for step in pipeline.steps) != expected:
            raise ModelFileError(f"{name} must have the steps {list(expected)} of the spec.")
        widths = {len(column) for step in pipeline.steps for column in vars(step).values()}
        if widths - {columns}:
            raise ModelFileError(f"{name} must have {columns} columns, found {sorted(widths)}.")


def check_can_be_written(ensemble: Ensemble) -> None:
    """Refuses names, labels and settings that no file could hold, whatever is drawn and said later.

    Args:
        ensemble: Ensemble, whose arrays are not looked at.

    Raises:
        ModelFileError, TypeError, ValueError: As `decode_metadata` and `check_metadata`.
    """
    array = encode_metadata(ensemble, None)
    _check_length(array, schema.MAX_METADATA_BYTES - schema.RESERVED_METADATA_BYTES)
    decode_metadata(array, schema.FORMAT_VERSION, own_classes_in(ensemble.spec))
    check_metadata(ensemble)


def _check_length(array: Array | h5py.Dataset, limit: int) -> None:
    if array.size > limit:
        raise ModelFileError(f"metadata must have at most {limit} bytes, found {array.size}.")


def _is_texts(values: Sequence[Any], count: int | None = None) -> bool:
    return (count is None or len(values) == count) and all(isinstance(v, str) for v in values)
