"""Between an ensemble and the named arrays of a model file, with the checks that they agree.

One of the arrays is JSON: everything that is not an array.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import h5py
import numpy as np

from tfbnn.data.coding import Coding
from tfbnn.data.labels import check_classes
from tfbnn.data.training_inputs import TrainingInputs
from tfbnn.data.transforms import Pipeline
from tfbnn.diagnostics.fit_check import rows_check_from_json
from tfbnn.diagnostics.verdict import Chains, Predictions
from tfbnn.exceptions import ModelFileError
from tfbnn.posterior.basins.record import Basins
from tfbnn.posterior.calibration.misfit_features import misfit_networks, num_features
from tfbnn.posterior.calibration.record import Calibration, Misfit
from tfbnn.posterior.ensemble import Ensemble, Readouts
from tfbnn.posterior.provenance import Provenance
from tfbnn.posterior.record_kinds import TEXTS, check_entry
from tfbnn.spec.keras_spec import spec_from_json
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.own_classes import OwnClassError, own_classes_in
from tfbnn.spec.rows import MAX_REFERENCE_ROWS
from tfbnn.storage.format import schema
from tfbnn.storage.format.schema import parse_json, to_json
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
    if names is not None and [*map(type, names)] != [str] * spec.num_inputs:
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


def to_arrays(ensemble: Ensemble, created_at: str | None = None) -> dict[str, Array]:
    """The arrays of a model file that hold an ensemble: dict name -> array.

    Args:
        ensemble: Ensemble.
        created_at: Time as text, for the metadata.
    """
    arrays = {
        schema.METADATA: encode_metadata(ensemble, created_at),
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
    if ensemble.mode is not None:
        arrays[schema.MODE] = ensemble.mode
    if len(ensemble.row_digests):
        arrays[schema.ROW_DIGESTS] = ensemble.row_digests
    if ensemble.calibration is not None:
        arrays[schema.SCORES] = ensemble.calibration.scores
        for key, name in schema.MISFIT.items():
            if ensemble.calibration.misfit is not None:
                arrays[name] = getattr(ensemble.calibration.misfit, key)
    if ensemble.basins is not None:
        arrays[schema.RHAT_WITHIN] = ensemble.basins.rhat_within
    # In the order of the schema, in which whoever reads foreign files expects them.
    known = schema.DATASETS | schema.OPTIONAL_DATASETS
    return {name: arrays[name] for name in known if name in arrays}


def from_arrays(
    datasets: Mapping[str, Array | h5py.Dataset],
    version: int = schema.FORMAT_VERSION,
    custom: Sequence[Any] = (),
) -> Ensemble:
    """The ensemble that the arrays of a model file hold.

    Args:
        datasets: Dict name -> NumPy array, or dataset of an open file. Datasets are read once
            their sizes are known to be those of the model.
        version: Of the format of the file.
        custom: Classes of the caller's own that the model may have, see `with_custom`.

    Raises:
        ModelFileError: When they contradict each other or cannot be of a fitted model.
        ValueError, TypeError, KeyError: For metadata that describe no model.
    """
    for added, names in schema.ADDED_DATASETS.items():
        for name in names:
            if added > version and name in datasets:
                raise ModelFileError(f"{name} belongs to format {added}, found it in {version}.")
    sizes = _common_sizes(datasets)
    metadata = decode_metadata(datasets[schema.METADATA], version, custom)
    _check_sizes(sizes, metadata["spec"])
    arrays: dict[str, Array] = {name: array[()] for name, array in datasets.items()}
    statistics = {key: arrays[f"{schema.SAMPLE_STATS}/{key}"] for key in schema.STATISTICS}
    _check_statistics(statistics)
    statistics["diverging"] = statistics["diverging"].astype(bool)
    places = schema.TRAINING_INPUTS.items()
    metadata["calibration"] = _calibration(metadata["calibration"], arrays)
    metadata["basins"] = _basins(metadata["basins"], arrays)
    ensemble = Ensemble(
        **metadata,
        draws=arrays[schema.THETA],
        sample_stats=statistics,
        chain_weights=arrays[schema.CHAIN_WEIGHTS],
        x_reference=arrays[schema.X_REFERENCE],
        training_inputs=TrainingInputs(**{key: arrays[name] for key, name in places}),
        readouts=_readouts(arrays),
        mode=arrays.get(schema.MODE),
        row_digests=arrays.get(schema.ROW_DIGESTS, np.empty(0, np.uint32)),
    )
    _check_mode(ensemble)
    _check_networks(ensemble)
    _check_arrays(ensemble, arrays)
    check_metadata(ensemble)
    return ensemble


def _readouts(arrays: Mapping[str, Array]) -> Readouts | None:
    mean, factor = (arrays.get(schema.READOUTS[key]) for key in ("mean", "factor"))
    if mean is not None:
        return Readouts(mean, factor)
    if factor is not None:
        raise ModelFileError(f"{schema.READOUTS['factor']} needs {schema.READOUTS['mean']}.")
    return None


def _calibration(entries: dict[str, Any] | None, arrays: Mapping[str, Array]) -> Calibration | None:
    scores = arrays.get(schema.SCORES)
    if entries is None and scores is None and not set(schema.MISFIT.values()) & set(arrays):
        return None
    if entries is None or scores is None:
        raise ModelFileError(f"{schema.SCORES} and calibration in metadata go together.")
    if not np.isfinite([scores.min(), scores.max()]).all():
        raise ModelFileError(f"{schema.SCORES} must be finite, found NaN or infinity.")
    return Calibration.from_json(entries, scores, _misfit(arrays))


def _misfit(arrays: Mapping[str, Array]) -> Misfit | None:
    found = {key: arrays[name] for key, name in schema.MISFIT.items() if name in arrays}
    if not found:
        return None
    if len(found) < len(schema.MISFIT):
        raise ModelFileError(f"{' and '.join(schema.MISFIT.values())} go together.")
    for key, values in found.items():
        if not np.isfinite([values.min(), values.max()]).all():
            raise ModelFileError(f"{schema.MISFIT[key]} must be finite, found NaN or infinity.")
    if found["squares"].min() < 0:
        raise ModelFileError(f"{schema.MISFIT['squares']} must be >= 0, found negative numbers.")
    return Misfit(**found)


def _basins(entries: dict[str, Any] | None, arrays: Mapping[str, Array]) -> Basins | None:
    rhat_within = arrays.get(schema.RHAT_WITHIN)
    if entries is None and rhat_within is None:
        return None
    if entries is None or rhat_within is None:
        raise ModelFileError(f"{schema.RHAT_WITHIN} and basins in metadata go together.")
    return Basins.from_json(entries, rhat_within, arrays[schema.CHAIN_WEIGHTS])


def _check_mode(ensemble: Ensemble) -> None:
    """Refuses a mode beside what only networks have, or without a word that they are none."""
    if ensemble.mode is None:
        return
    is_normal = ensemble.provenance.not_sampled is not None and ensemble.num_chains == 1
    if not is_normal or ensemble.readouts is not None or ensemble.is_compressed:
        raise ModelFileError(
            f"{schema.MODE} goes with the draws of one normal distribution, not sampled by a chain, "
            "whole and without readouts."
        )


def _check_networks(ensemble: Ensemble) -> None:
    """Refuses a misfit of other networks than those of the model."""
    misfit = None if ensemble.calibration is None else ensemble.calibration.misfit
    if misfit is None:
        return
    expected = misfit_networks(ensemble).num_draws
    if len(misfit.directions) != expected:
        raise ModelFileError(
            f"{schema.MISFIT['directions']} must be of {expected} networks, found "
            f"{len(misfit.directions)}."
        )


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


def _check_sizes(sizes: Mapping[str, int], spec: NetworkSpec) -> None:
    """Refuses sizes of dimensions that do not belong to the model."""
    features = 0 if spec.readout is None else spec.readout.slot.num_inputs + 1
    outputs = spec.num_outputs
    expected = {
        "param": (spec.layout.num_parameters,),
        "input": (spec.num_inputs,),
        "column": (spec.num_inputs, 1),
        "level": (2,),
        "readout": (features * outputs,),
        "group": (outputs, 1),
        "triangle": (features * (features + 1) // 2,),
        "target": (spec.num_targets,),
        "predicted": (spec.num_predicted,),
        "feature": (num_features(spec),),
    }
    for dimension, allowed in expected.items():
        if sizes.get(dimension, allowed[0]) not in allowed:
            raise ModelFileError(
                f"The layers of {spec.architecture_text} ask for {dimension} = {allowed[0]}, found "
                f"arrays with {sizes[dimension]}."
            )
    # A diagnosis takes every network at every one of them.
    if sizes["row"] > MAX_REFERENCE_ROWS:
        raise ModelFileError(
            f"{schema.X_REFERENCE} must have at most {MAX_REFERENCE_ROWS} rows, found "
            f"{sizes['row']}."
        )


def _check_arrays(ensemble: Ensemble, arrays: Mapping[str, Array]) -> None:
    of_draws = [
        name for name in (schema.THETA, *schema.READOUTS.values(), schema.MODE) if name in arrays
    ]
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
