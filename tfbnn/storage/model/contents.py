"""Conversion between an ensemble and the named arrays of a model file, with consistency checks.

One of the arrays is a JSON text with all metadata, that is, everything that is not an array.
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
from tfbnn.posterior.basins.basins import Basins
from tfbnn.posterior.calibration.calibration import Calibration, Misfit
from tfbnn.posterior.calibration.misfit_features import misfit_networks, num_features
from tfbnn.posterior.conditioned import GivenRows
from tfbnn.posterior.ensemble import Ensemble, Readouts
from tfbnn.posterior.provenance import Provenance
from tfbnn.posterior.record_kinds import TEXTS, check_entry
from tfbnn.spec.infinite_spec import MOST_ROWS, InfiniteSpec
from tfbnn.spec.keras_spec import spec_from_json
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.own_classes import OwnClassError
from tfbnn.spec.rows import MAX_REFERENCE_ROWS
from tfbnn.storage.format import schema
from tfbnn.storage.format.schema import parse_json, to_json
from tfbnn.system.arrays import Array


def encode_metadata(ensemble: Ensemble, created_at: str | None) -> Array:
    """Encode the metadata of an ensemble as an array of bytes.

    Args:
        ensemble: Ensemble.
        created_at: Creation time as text, or None to keep that of the provenance.
    """
    metadata = {name: getattr(ensemble, name) for name in schema.METADATA_KINDS}
    if created_at is not None:
        metadata["provenance"] = ensemble.provenance.stating(created_at=created_at)
    for name, value in metadata.items():
        if hasattr(value, "to_json"):
            metadata[name] = value.to_json()
    return np.frombuffer(to_json(metadata), np.uint8)


def decode_metadata(
    array: Array | h5py.Dataset, version: int, custom: Sequence[Any] = ()
) -> dict[str, Any]:
    """Decode the bytes of the metadata; names of classes and functions are looked up in tables.

    Args:
        array: The bytes, as an array or as a dataset of an open file.
        version: Version of the format. Entries that later versions added get the value that files
            of this version imply.
        custom: Custom classes that the model may use.

    Returns:
        Dict with the keys of the schema. The values are arguments of `Ensemble`, except those of
        calibration and basins, which stay JSON entries.

    Raises:
        ModelFileError, ValueError, TypeError, KeyError: For bytes that `encode_metadata` cannot
            have written.
    """
    schema.check_length(array.size)
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
        # Unknown entries must not be ignored silently.
        if parsed[name].to_json() != metadata[name]:
            raise ModelFileError(f"{name} in metadata has entries that are unknown or missing.")
    parsed["provenance"] = Provenance.from_json(metadata["provenance"])
    for name in ("feature_names", "classes"):
        parsed[name] = None if metadata[name] is None else tuple(metadata[name])
    parsed["coding"] = None if metadata["coding"] is None else Coding.from_json(metadata["coding"])
    return parsed


def check_metadata(ensemble: Ensemble) -> None:
    """Check that names, labels, records and transforms fit the model.

    Raises:
        ModelFileError, TypeError, ValueError: For an entry that does not; the message names it.
    """
    spec, names = ensemble.spec, ensemble.feature_names
    _require(
        names is None or [*map(type, names)] == [str] * spec.num_inputs,
        f"feature_names must be {spec.num_inputs} texts, found {names!r:.200}",
    )
    if ensemble.coding is not None:
        coded = ensemble.coding.input_names
        _require(
            names == coded,
            f"feature_names must be {coded!r:.200} by the coding of the columns, found {names!r:.200}",
        )
    _require(
        not ensemble.vector_target or spec.num_targets == 1,
        f"vector_target goes with one target, found true for {spec.num_targets}",
    )
    if spec.has_classes:
        check_classes(ensemble.classes or (), spec.num_classes)
        _require(ensemble.calibration is None, "calibration must be absent for classes")
    else:
        _require(
            ensemble.classes is None, "classes must be absent for a likelihood without classes"
        )
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
        _require(
            pipeline.names == expected, f"{name} must have the steps {list(expected)} of the spec"
        )
        widths = {len(column) for step in pipeline.steps for column in vars(step).values()}
        _require(widths <= {columns}, f"{name} must have {columns} columns, found {sorted(widths)}")


def check_can_be_written(ensemble: Ensemble) -> None:
    """Check before a fit that names, labels and settings can be written to a file.

    Space is reserved for the metadata that the fit will add.

    Args:
        ensemble: Ensemble; its arrays are not checked.

    Raises:
        ModelFileError, TypeError, ValueError: As in `decode_metadata` and `check_metadata`.
    """
    array = encode_metadata(ensemble, None)
    schema.check_length(array.size, reserved=schema.RESERVED_METADATA_BYTES)
    decode_metadata(array, schema.FORMAT_VERSION, ensemble.spec.own_classes)
    check_metadata(ensemble)


def to_arrays(ensemble: Ensemble, created_at: str | None = None) -> dict[str, Array]:
    """Convert an ensemble to the arrays of a model file: dict name -> array.

    Args:
        ensemble: Ensemble.
        created_at: Creation time as text, or None to keep that of the provenance.
    """
    calibration, basins = ensemble.calibration, ensemble.basins
    arrays: dict[str, Any] = {
        schema.METADATA: encode_metadata(ensemble, created_at),
        schema.THETA: ensemble.draws,
        schema.CHAIN_WEIGHTS: ensemble.chain_weights,
        schema.X_REFERENCE: ensemble.x_reference,
        schema.MODE: ensemble.mode,
        schema.ROW_DIGESTS: ensemble.row_digests if len(ensemble.row_digests) else None,
        schema.SCORES: calibration and calibration.scores,
        schema.RHAT_WITHIN: basins and basins.rhat_within,
    }
    for part, names in (
        (ensemble.training_inputs, schema.TRAINING_INPUTS),
        (ensemble.readouts, schema.READOUTS),
        (calibration and calibration.misfit, schema.MISFIT),
        (ensemble.given, schema.GIVEN),
    ):
        arrays |= {name: getattr(part, key, None) for key, name in names.items()}
    for key, dtype in schema.STATISTICS.items():
        arrays[f"{schema.SAMPLE_STATS}/{key}"] = ensemble.sample_stats[key].astype(dtype)
    # The reader of untrusted files expects the order of the schema.
    known = schema.DATASETS | schema.OPTIONAL_DATASETS
    return {name: arrays[name] for name in known if arrays[name] is not None}


def from_arrays(
    datasets: Mapping[str, Array | h5py.Dataset],
    version: int = schema.FORMAT_VERSION,
    custom: Sequence[Any] = (),
) -> Ensemble:
    """Convert the arrays of a model file to an ensemble.

    Args:
        datasets: Dict name -> NumPy array, or dataset of an open file. Datasets are read after
            their sizes have been checked against the model.
        version: Version of the file format.
        custom: Custom classes that the model may use, see `with_custom`.

    Raises:
        ModelFileError: When the arrays contradict each other or cannot belong to a fitted model.
        ValueError, TypeError, KeyError: For metadata that do not describe a model.
    """
    sizes = _common_sizes(datasets)
    metadata = decode_metadata(datasets[schema.METADATA], version, custom)
    _check_sizes(sizes, metadata["spec"])
    arrays: dict[str, Array] = {name: array[()] for name, array in datasets.items()}
    _check_numbers(arrays, metadata["spec"])
    statistics = {key: arrays[f"{schema.SAMPLE_STATS}/{key}"] for key in schema.STATISTICS}
    statistics["diverging"] = statistics["diverging"].astype(bool)
    for entry, name in (("calibration", schema.SCORES), ("basins", schema.RHAT_WITHIN)):
        _require(
            (metadata[entry] is None) == (name not in arrays),
            f"{name} and {entry} in metadata go together",
        )
    if metadata["basins"] is not None:
        of_basins = arrays[schema.RHAT_WITHIN], arrays[schema.CHAIN_WEIGHTS]
        metadata["basins"] = Basins.from_json(metadata["basins"], *of_basins)
    misfit = _parts(arrays, schema.MISFIT, *schema.MISFIT.values(), schema.SCORES)
    if metadata["calibration"] is not None:
        metadata["calibration"] = Calibration.from_json(
            metadata["calibration"], arrays[schema.SCORES], Misfit(**misfit) if misfit else None
        )
    readouts = _parts(arrays, schema.READOUTS, schema.READOUTS["mean"])
    given = _parts(arrays, schema.GIVEN, schema.GIVEN["x"], schema.GIVEN["y"])
    _require(
        bool(given) == isinstance(metadata["spec"], InfiniteSpec),
        f"{schema.GIVEN['x']} goes with infinite width",
    )
    ensemble = Ensemble(
        **metadata,
        draws=arrays[schema.THETA],
        sample_stats=statistics,
        chain_weights=arrays[schema.CHAIN_WEIGHTS],
        x_reference=arrays[schema.X_REFERENCE],
        training_inputs=TrainingInputs(
            **{
                key: one.astype(np.float64)
                for key, one in _parts(arrays, schema.TRAINING_INPUTS).items()
            }
        ),
        readouts=Readouts(**readouts) if readouts else None,
        mode=arrays.get(schema.MODE),
        given=GivenRows(**given) if given else None,
        row_digests=arrays.get(schema.ROW_DIGESTS, np.empty(0, np.uint32)),
    )
    _check_networks(ensemble)
    _check_training_inputs(ensemble.training_inputs)
    check_metadata(ensemble)
    return ensemble


def _parts(arrays: Mapping[str, Array], names: Mapping[str, str], *needed: str) -> dict[str, Array]:
    """Return the arrays in `names` that are present, dict key -> array.

    If there are any, the `needed` arrays must be present, too.
    """
    found = {key: arrays[name] for key, name in names.items() if name in arrays}
    if found:
        together = sorted({*(names[key] for key in found), *needed})
        _require(all(name in arrays for name in needed), f"{' and '.join(together)} go together")
    return found


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ModelFileError(f"{message}.")


def _check_networks(ensemble: Ensemble) -> None:
    """Refuse a mode that the draws do not allow, and a misfit with another number of networks."""
    is_normal = ensemble.provenance.not_sampled is not None and ensemble.num_chains == 1
    is_whole = ensemble.readouts is None and not ensemble.is_compressed
    _require(
        ensemble.mode is None or is_normal and is_whole,
        f"{schema.MODE} goes with the draws of one normal distribution, not sampled by a chain, whole and "
        "without readouts",
    )
    if ensemble.calibration is not None and ensemble.calibration.misfit is not None:
        found = len(ensemble.calibration.misfit.directions)
        expected = misfit_networks(ensemble).num_draws
        _require(
            found == expected,
            f"{schema.MISFIT['directions']} must be of {expected} networks, found {found}",
        )


def _common_sizes(arrays: Mapping[str, Array | h5py.Dataset]) -> dict[str, int]:
    """Return a dict dimension -> size; sizes must be positive and the same in all arrays."""
    sizes: dict[str, int] = {}
    present = set(schema.DATASETS) | set(arrays)
    for name, (_, dimensions) in (schema.DATASETS | schema.OPTIONAL_DATASETS).items():
        if name not in present:
            continue
        shape = arrays[name].shape
        wanted = [sizes.get(dimension, dimension) for dimension in dimensions]
        fits = len(shape) == len(dimensions) and 0 not in shape
        fits = fits and all(
            sizes.setdefault(dim, size) == size for dim, size in zip(dimensions, shape)
        )
        _require(fits, f"{name} must have the shape {wanted} without zeros, found {list(shape)}")
    return sizes


def _check_sizes(sizes: Mapping[str, int], spec: NetworkSpec) -> None:
    """Check the sizes of the dimensions against the model."""
    features = 0 if spec.readout is None else spec.readout.layer.kernel.shape[0] + 1
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
        found = sizes.get(dimension, allowed[0])
        _require(
            found in allowed,
            f"The layers of {spec.architecture_text} ask for {dimension} = {allowed[0]}, found arrays "
            f"with {found}",
        )
    _require(
        sizes.get("given", 0) <= MOST_ROWS,
        f"{schema.GIVEN['x']} must have at most {MOST_ROWS} rows, found {sizes.get('given')}",
    )
    # A diagnosis evaluates every network at every reference row.
    _require(
        sizes["row"] <= MAX_REFERENCE_ROWS,
        f"{schema.X_REFERENCE} must have at most {MAX_REFERENCE_ROWS} rows, found {sizes['row']}",
    )


def _check_numbers(arrays: Mapping[str, Array], spec: NetworkSpec) -> None:
    """Refuse dtypes and values that no fit can produce."""
    for name in (schema.THETA, *schema.READOUTS.values(), schema.MODE):
        if name in arrays:
            found = arrays[name].dtype
            _require(found == spec.dtype, f"{name} must be {spec.dtype}, found {found}")
    for name, values in arrays.items():
        if not name.startswith((schema.SAMPLE_STATS, schema.RHAT_WITHIN)):
            # Minimum and maximum reveal NaN and infinity, without a mask of the size of the array.
            is_finite = np.isfinite([values.min(), values.max()]).all()
            _require(bool(is_finite), f"{name} must be finite, found NaN or infinity")
    for name in (f"{schema.SAMPLE_STATS}/n_steps", schema.MISFIT["squares"]):
        _require(name not in arrays or arrays[name].min() >= 0, f"{name} must be >= 0")
    _require(
        arrays[f"{schema.SAMPLE_STATS}/diverging"].max() <= 1,
        "sample_stats/diverging must be 0 or 1",
    )
    weights = arrays[schema.CHAIN_WEIGHTS]
    _require(
        bool(weights.min() >= 0 and abs(weights.sum() - 1) <= 1e-6),
        f"chain_weights must be >= 0 and add up to 1, found {weights}",
    )


def _check_training_inputs(inputs: TrainingInputs) -> None:
    _require(bool(np.all(inputs.low <= inputs.high)), "the training inputs must have low <= high")
    matrix = inputs.covariance
    full = matrix.shape[0] == matrix.shape[1]
    is_sound = np.all((np.diagonal(matrix) if full else matrix) >= 0)
    _require(
        bool(is_sound and (not full or np.allclose(matrix, matrix.T))),
        "the covariance of the training inputs must be symmetric, >= 0",
    )
    usual, largest = inputs.distances
    _require(
        0 <= usual <= largest, "the distances of the training inputs must be >= 0 and ascending"
    )
