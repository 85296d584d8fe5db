"""Between an ensemble and the named arrays of a model file, with the checks that they agree.

One of the arrays is JSON, with everything that is not an array.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import h5py
import numpy as np

from tfbnn.data.labels import check_classes
from tfbnn.data.training_inputs import TrainingInputs
from tfbnn.data.transforms import Pipeline
from tfbnn.diagnostics.fit_check import rows_check_from_json
from tfbnn.exceptions import ModelFileError
from tfbnn.posterior.collapsed import Readouts
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.provenance import Provenance
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.storage.format import schema
from tfbnn.storage.format.json_text import parse_json, to_json
from tfbnn.system.arrays import Array


def to_arrays(ensemble: Ensemble, created_at: str | None = None) -> dict[str, Array]:
    """The arrays of a model file that hold an ensemble: dict name -> array.

    Args:
        ensemble: Ensemble.
        created_at: Time as text, for the metadata.
    """
    arrays = {
        schema.METADATA: _encode_metadata(ensemble, created_at),
        schema.THETA: ensemble.draws,
        schema.CHAIN_WEIGHTS: ensemble.chain_weights,
        schema.X_REFERENCE: ensemble.x_reference,
    }
    for key, name in schema.TRAINING_INPUTS.items():
        arrays[name] = getattr(ensemble.training_inputs, key)
    for key, dtype in schema.STATISTICS.items():
        arrays[f"{schema.SAMPLE_STATS}/{key}"] = ensemble.sample_stats[key].astype(dtype)
    for key, name in schema.READOUTS.items():
        if getattr(ensemble.readouts, key, None) is not None:
            arrays[name] = getattr(ensemble.readouts, key)
    return arrays


def from_arrays(datasets: Mapping[str, Array | h5py.Dataset]) -> Ensemble:
    """The ensemble that the arrays of a model file hold.

    Args:
        datasets: Dict name -> NumPy array, or dataset of an open file. Datasets are read once
            their sizes are known to be those of the model.

    Raises:
        ModelFileError: When they contradict each other or cannot be of a fitted model.
        ValueError, TypeError, KeyError: For metadata that describe no model.
    """
    sizes = _common_sizes(datasets)
    metadata = _decode_metadata(datasets[schema.METADATA], sizes["param"])
    _check_sizes(sizes, metadata["spec"])
    arrays: dict[str, Array] = {name: array[()] for name, array in datasets.items()}
    statistics = {key: arrays[f"{schema.SAMPLE_STATS}/{key}"] for key in schema.STATISTICS}
    _check_statistics(statistics)
    statistics["diverging"] = statistics["diverging"].astype(bool)
    places = schema.TRAINING_INPUTS.items()
    ensemble = Ensemble(
        **metadata,
        draws=arrays[schema.THETA],
        sample_stats=statistics,
        chain_weights=arrays[schema.CHAIN_WEIGHTS],
        x_reference=arrays[schema.X_REFERENCE],
        training_inputs=TrainingInputs(**{key: arrays[name] for key, name in places}),
        readouts=_readouts(arrays),
    )
    _check_arrays(ensemble, arrays)
    _check_metadata(ensemble)
    return ensemble


def _encode_metadata(ensemble: Ensemble, created_at: str | None) -> Array:
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


def _decode_metadata(array: Array | h5py.Dataset, num_parameters: int) -> dict[str, Any]:
    """Parses the bytes of the metadata; names of classes and functions are looked up in tables.

    Args:
        array: The bytes, as array or as dataset of an open file.
        num_parameters: P; metadata of large networks may be longer.

    Returns:
        Dict with the keys of the schema: arguments of `Ensemble`.

    Raises:
        ModelFileError, ValueError, TypeError, KeyError: For anything `_encode_metadata` cannot have
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


def _readouts(arrays: Mapping[str, Array]) -> Readouts | None:
    mean, factor = (arrays.get(schema.READOUTS[key]) for key in ("mean", "factor"))
    if mean is not None:
        return Readouts(mean, factor)
    if factor is not None:
        raise ModelFileError(f"{schema.READOUTS['factor']} needs {schema.READOUTS['mean']}.")
    return None


def _common_sizes(arrays: Mapping[str, Array | h5py.Dataset]) -> dict[str, int]:
    """Dict dimension -> size, the same in all arrays, at least one."""
    sizes: dict[str, int] = {}
    present = set(schema.DATASETS) | set(arrays)
    for name, (_, dimensions) in (schema.DATASETS | schema.OPTIONAL_DATASETS).items():
        if name not in present:
            continue
        shape = arrays[name].shape
        wanted = [sizes.get(dimension, dimension) for dimension in dimensions]
        if len(shape) != len(dimensions) or 0 in shape:
            raise ModelFileError(
                f"{name} must have the shape {wanted} without zeros, found {list(shape)}."
            )
        for dimension, size in zip(dimensions, shape):
            if sizes.setdefault(dimension, size) != size:
                raise ModelFileError(f"{name} must have the shape {wanted}, found {list(shape)}.")
    return sizes


def _check_sizes(sizes: Mapping[str, int], spec: ModelSpec) -> None:
    """Refuses sizes of dimensions that do not belong to the model."""
    features, outputs = spec.layer_sizes[-2] + 1, spec.layer_sizes[-1]
    expected = {
        "param": (spec.layout.num_parameters,),
        "input": (spec.num_inputs,),
        "column": (spec.num_inputs, 1),
        "level": (2,),
        "readout": (features * outputs,),
        "group": (outputs, 1),
        "triangle": (features * (features + 1) // 2,),
    }
    for dimension, allowed in expected.items():
        if sizes.get(dimension, allowed[0]) not in allowed:
            raise ModelFileError(
                f"layer_sizes {list(spec.layer_sizes)} ask for {dimension} = {allowed[0]}, found "
                f"arrays with {sizes[dimension]}."
            )


def _check_arrays(ensemble: Ensemble, arrays: Mapping[str, Array]) -> None:
    of_draws = [name for name in (schema.THETA, *schema.OPTIONAL_DATASETS) if name in arrays]
    for name in of_draws:
        if arrays[name].dtype != ensemble.spec.dtype:
            raise ModelFileError(
                f"{name} must be {ensemble.spec.dtype}, found {arrays[name].dtype}."
            )
    for name in (*of_draws, schema.X_REFERENCE, *schema.TRAINING_INPUTS.values()):
        # NaN and infinity show in the extremes, which need no mask of the size of the array.
        if not np.isfinite([arrays[name].min(), arrays[name].max()]).all():
            raise ModelFileError(f"{name} must be finite, found NaN or infinity.")
    weights = ensemble.chain_weights
    if not (np.all(weights >= 0) and abs(weights.sum() - 1) <= 1e-6):
        raise ModelFileError(f"chain_weights must be >= 0 and add up to 1, found {weights}.")
    inputs = ensemble.training_inputs
    if np.any(inputs.low > inputs.high):
        raise ModelFileError("the range of the training inputs must have low <= high.")
    matrix = inputs.covariance
    full = matrix.shape[0] == matrix.shape[1]
    variances = np.diagonal(matrix) if full else matrix
    if np.any(variances < 0) or (full and not np.allclose(matrix, matrix.T)):
        raise ModelFileError("the covariance of the training inputs must be symmetric, >= 0.")
    usual, largest = inputs.distances
    if not 0 <= usual <= largest:
        raise ModelFileError("the distances of the training inputs must be >= 0 and ascending.")


def _check_statistics(statistics: Mapping[str, Array]) -> None:
    if statistics["diverging"].max() > 1:
        raise ModelFileError("sample_stats/diverging must hold 0 and 1, found larger numbers.")
    if statistics["n_steps"].min() < 0:
        raise ModelFileError("sample_stats/n_steps must hold counts, found negative numbers.")


def _check_metadata(ensemble: Ensemble) -> None:
    spec, names = ensemble.spec, ensemble.feature_names
    if names is not None and not _is_texts(names, spec.num_inputs):
        raise ModelFileError(
            f"feature_names must be {spec.num_inputs} texts, found {names!r:.200}."
        )
    if spec.has_classes:
        check_classes(ensemble.classes or (), spec.num_classes)
    elif ensemble.classes is not None:
        raise ModelFileError("classes must be absent for a likelihood without classes.")
    for name in schema.COUNTS:
        if type(getattr(ensemble.provenance, name)) not in (int, type(None)):
            raise ModelFileError(f"{name} in provenance must be an integer.")
    texts = {name: getattr(ensemble.provenance, name) for name in schema.TEXT_LISTS}
    if ensemble.diagnostics is not None:
        texts["warnings"] = ensemble.diagnostics.get("warnings")
        rows_check_from_json(ensemble.diagnostics.get("training_rows"))
    for name, entries in texts.items():
        if entries is not None and not (isinstance(entries, list) and _is_texts(entries)):
            raise ModelFileError(f"{name} must be a list of texts, found {entries!r:.99}.")
    for name, pipeline, columns, expected in (
        ("x_pipeline", ensemble.x_pipeline, spec.num_inputs, spec.x_transform),
        ("y_pipeline", ensemble.y_pipeline, spec.num_targets, spec.y_transform),
    ):
        if tuple(step.name for step in pipeline.steps) != expected:
            raise ModelFileError(f"{name} must have the steps {list(expected)} of the spec.")
        widths = {len(column) for step in pipeline.steps for column in vars(step).values()}
        if widths - {columns}:
            raise ModelFileError(f"{name} must have {columns} columns, found {sorted(widths)}.")


def _is_texts(values: Sequence[Any], count: int | None = None) -> bool:
    return (count is None or len(values) == count) and all(isinstance(v, str) for v in values)
