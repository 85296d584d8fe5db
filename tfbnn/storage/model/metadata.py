"""The JSON of a model file: everything that is not an array."""

from typing import Any

import h5py
import numpy as np

from tfbnn.data.transforms import Pipeline
from tfbnn.exceptions import ModelFileError
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.provenance import Provenance
from tfbnn.spec.model_spec import ModelSpec
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
    for name in ("spec", "x_pipeline", "y_pipeline", "provenance"):
        metadata[name] = metadata[name].to_json()
    return np.frombuffer(to_json(metadata), np.uint8)


def decode_metadata(array: Array | h5py.Dataset, num_parameters: int) -> dict[str, Any]:
    """Parses the bytes of the metadata; names of classes and functions are looked up in tables.

    Args:
        array: The bytes, as array or as dataset of an open file.
        num_parameters: P; metadata of large networks may be longer.

    Returns:
        Dict with the keys of the schema: arguments of `Ensemble`.

    Raises:
        ModelFileError, ValueError, TypeError, KeyError: For anything `encode_metadata` cannot have
            written.
    """
    limit = schema.BYTES_PER_PARAMETER * num_parameters
    limit = min(max(limit, schema.MIN_METADATA_BYTES), schema.MAX_METADATA_BYTES)
    if array.size > limit:
        raise ModelFileError(f"metadata must have at most {limit} bytes, found {array.size}.")
    metadata = parse_json(array[()].tobytes())
    if not isinstance(metadata, dict) or sorted(metadata) != sorted(schema.METADATA_KINDS):
        keys = tuple(schema.METADATA_KINDS)
        raise ModelFileError(f"metadata must be an object with the keys {keys}.")
    for name, kinds in schema.METADATA_KINDS.items():
        if not isinstance(metadata[name], kinds):
            raise ModelFileError(f"{name} in metadata has the wrong type: {metadata[name]!r:.100}.")
    parsed = dict(metadata)
    for name, kind in (("spec", ModelSpec), ("x_pipeline", Pipeline), ("y_pipeline", Pipeline)):
        parsed[name] = kind.from_json(metadata[name])
        # Entries that the model does not know must not pass unseen.
        if parsed[name].to_json() != metadata[name]:
            raise ModelFileError(f"{name} in metadata has entries that are unknown or missing.")
    parsed["provenance"] = Provenance.from_json(metadata["provenance"])
    for name in ("feature_names", "classes"):
        parsed[name] = None if metadata[name] is None else tuple(metadata[name])
    return parsed
