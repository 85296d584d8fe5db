"""The model file: one HDF5 file with the sampled networks and everything needed to use them."""

import contextlib
import hashlib
import json
import os
import tempfile
from datetime import UTC, datetime

import h5py
import numpy as np

from tfbnn import __version__
from tfbnn.ensemble import Ensemble
from tfbnn.exceptions import ModelFileError
from tfbnn.labels import check_classes
from tfbnn.spec import ModelSpec
from tfbnn.storage import schema
from tfbnn.transforms import Pipeline

__all__ = ["read_model", "seal", "write_model"]


def write_model(ensemble, path):
    """Writes an ensemble to `path`, replacing what is there only once the new file is complete.

    Args:
        ensemble: Ensemble.
        path: File name; by custom it ends in .h5.

    Raises:
        FileNotFoundError: When the folder does not exist.
        OSError: When the file cannot be written.
    """
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"The folder of {path!r} does not exist. Create it first.")
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".tfbnn-", suffix=".h5.tmp")
    os.close(handle)
    try:
        with h5py.File(temporary, "w", libver=("v110", "v110")) as file:
            _write(file, ensemble)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def read_model(path):
    """Reads the ensemble that `write_model` wrote.

    Raises:
        FileNotFoundError: When there is no such file.
        ModelFileError: When the file is not a tfbnn model, is damaged or contradicts itself.
    """
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"There is no model file {path!r}.")
    if not os.path.isfile(path):
        raise ModelFileError(f"{path!r} is not a file. Pass the .h5 file that save() wrote.")
    try:
        with h5py.File(path, "r") as file:
            return _read(file)
    except ModelFileError as error:
        raise ModelFileError(f"{path!r}: {error}") from error
    except (OSError, LookupError, TypeError, ValueError, RuntimeError, MemoryError) as error:
        raise ModelFileError(
            f"{path!r} is not a readable tfbnn model file ({type(error).__name__}: {error}). "
            "Check that it was copied completely, or save it again."
        ) from error


def _write(file, ensemble):
    metadata = {
        "spec": ensemble.spec.to_json(),
        "x_pipeline": ensemble.x_pipeline.to_json(),
        "y_pipeline": ensemble.y_pipeline.to_json(),
        "feature_names": None if ensemble.feature_names is None else list(ensemble.feature_names),
        "row_noise": ensemble.row_noise,
        "classes": None if ensemble.classes is None else list(ensemble.classes),
        "provenance": ensemble.provenance,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    file.attrs["format"] = schema.FORMAT
    file.attrs["format_version"] = schema.FORMAT_VERSION
    file.attrs["inference_library"] = "tfbnn"
    file.attrs["inference_library_version"] = __version__
    # JSON can exceed the 64 KiB that HDF5 allows an attribute, so it is a dataset of bytes.
    text = json.dumps(metadata, allow_nan=False, default=_plain).encode()
    file.create_dataset(schema.METADATA, data=np.frombuffer(text, np.uint8))
    file.create_dataset(schema.THETA, data=ensemble.draws)
    file.create_dataset(schema.CHAIN_WEIGHTS, data=ensemble.chain_weights)
    file.create_dataset(schema.X_REFERENCE, data=ensemble.x_reference)
    for name, dtype in schema.STATISTICS.items():
        values = ensemble.sample_stats[name].astype(dtype)
        file.create_dataset(f"{schema.SAMPLE_STATS}/{name}", data=values)
    file.attrs["sha256"] = _digest(_read_all(file))


def _read(file):
    if file.attrs.get("format") != schema.FORMAT:
        raise ModelFileError("this HDF5 file is not a tfbnn model.")
    version = int(file.attrs["format_version"])
    if version != schema.FORMAT_VERSION:
        raise ModelFileError(
            f"this release reads format version {schema.FORMAT_VERSION}, the file has {version}. "
            "Load it with the release that wrote it."
        )
    arrays = _read_all(file)
    if file.attrs["sha256"] != _digest(arrays):
        raise ModelFileError("its content does not match its hash: it was damaged or edited.")
    metadata = json.loads(arrays[schema.METADATA].tobytes())
    spec = ModelSpec.from_json(metadata["spec"])
    names, classes = metadata["feature_names"], metadata.get("classes")
    ensemble = Ensemble(
        spec=spec,
        x_pipeline=Pipeline.from_json(metadata["x_pipeline"]),
        y_pipeline=Pipeline.from_json(metadata["y_pipeline"]),
        draws=arrays[schema.THETA],
        sample_stats={name: _statistic(arrays, name) for name in schema.STATISTICS},
        chain_weights=arrays[schema.CHAIN_WEIGHTS],
        x_reference=arrays[schema.X_REFERENCE],
        feature_names=None if names is None else _names(names, "feature_names"),
        row_noise=bool(metadata["row_noise"]),
        classes=None if classes is None else _names(classes, "classes"),
        provenance=dict(metadata["provenance"], created_at=metadata["created_at"]),
    )
    _check(ensemble)
    return ensemble


def _statistic(arrays, name):
    values = arrays[f"{schema.SAMPLE_STATS}/{name}"]
    return values.astype(bool) if name == "diverging" else values


def _names(names, what):
    if not isinstance(names, list):
        raise ModelFileError(f"{what} must be a list, found {names!r:.100}.")
    return tuple(names)


def _values(file, name):
    """The array under a name of the schema, if it lies in this file, whole, with a known dtype."""
    node = file
    for part in name.split("/"):
        if not isinstance(node, h5py.Group) or part not in node:
            raise ModelFileError(f"{name} is missing.")
        if not isinstance(node.get(part, getlink=True), h5py.HardLink):
            raise ModelFileError(f"{name} is a link to somewhere else.")
        node = node[part]
    if not isinstance(node, h5py.Dataset) or node.external or node.is_virtual:
        raise ModelFileError(f"{name} must be a plain dataset of this file.")
    if node.dtype.str not in schema.DTYPES:
        raise ModelFileError(
            f"{name} must have a dtype out of {schema.DTYPES}, found {node.dtype}."
        )
    if node.id.get_storage_size() != node.size * node.dtype.itemsize:
        raise ModelFileError(f"{name} declares {node.shape} values, but does not hold them.")
    return node[()]


def _read_all(file):
    """All datasets of the schema, each read once: dict name -> array."""
    statistics = [f"{schema.SAMPLE_STATS}/{name}" for name in schema.STATISTICS]
    names = (schema.METADATA, schema.THETA, schema.CHAIN_WEIGHTS, schema.X_REFERENCE, *statistics)
    return {name: _values(file, name) for name in names}


def _digest(arrays):
    """SHA-256 over names, dtypes, shapes and values of all datasets of the schema."""
    digest = hashlib.sha256()
    for name, values in arrays.items():
        digest.update(f"{name} {values.dtype.str} {values.shape} ".encode() + values.tobytes())
    return digest.hexdigest()


def seal(path):
    """Recomputes the hash of a model file after a deliberate edit.

    Args:
        path: The model file.

    Raises:
        ModelFileError: When a dataset is missing or not of a kind that `load` accepts.
    """
    with h5py.File(os.fspath(path), "r+") as file:
        try:
            file.attrs["sha256"] = _digest(_read_all(file))
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)!r}: {error}") from error


def _plain(value):
    """NumPy numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a model file")


def _check(ensemble):
    spec, draws = ensemble.spec, ensemble.draws
    if draws.ndim != 3 or draws.shape[2] != spec.layout.num_parameters:
        raise ModelFileError(
            f"theta must have shape [chain, draw, {spec.layout.num_parameters}], found "
            f"{list(draws.shape)}."
        )
    if 0 in draws.shape:
        raise ModelFileError(f"theta holds no draws, found shape {list(draws.shape)}.")
    if draws.dtype != spec.dtype:
        raise ModelFileError(f"theta must be {spec.dtype}, found {draws.dtype}.")
    if not np.isfinite(draws).all():
        raise ModelFileError("theta holds values that are not finite.")
    for name, values in ensemble.sample_stats.items():
        if values.shape != draws.shape[:2]:
            raise ModelFileError(
                f"sample_stats/{name} must have shape {list(draws.shape[:2])}, found "
                f"{list(values.shape)}."
            )
    weights = ensemble.chain_weights
    sound = weights.shape == draws.shape[:1] and np.all(weights >= 0)
    if not (sound and abs(weights.sum() - 1) <= 1e-6):
        raise ModelFileError("chain_weights must be one per chain, non-negative, and add up to 1.")
    x_reference = ensemble.x_reference
    if x_reference.ndim != 2 or x_reference.shape[1] != spec.num_inputs or not len(x_reference):
        raise ModelFileError(
            f"x_reference must have {spec.num_inputs} columns, found shape "
            f"{list(x_reference.shape)}."
        )
    if not np.isfinite(x_reference).all():
        raise ModelFileError("x_reference holds values that are not finite.")
    names = ensemble.feature_names
    if names is not None and (
        len(names) != spec.num_inputs or not all(isinstance(name, str) for name in names)
    ):
        raise ModelFileError(f"feature_names must be {spec.num_inputs} names, found {names!r}.")
    if spec.has_classes:
        check_classes(ensemble.classes or (), spec.num_classes)
    elif ensemble.classes is not None:
        raise ModelFileError("classes must be absent for a likelihood without classes.")
    for name in schema.COUNTS:
        if type(ensemble.provenance.get(name)) not in (int, type(None)):
            raise ModelFileError(f"{name} in provenance must be an integer.")
    for name, pipeline, columns, expected in (
        ("x_pipeline", ensemble.x_pipeline, spec.num_inputs, spec.x_transform),
        ("y_pipeline", ensemble.y_pipeline, spec.num_targets, spec.y_transform),
    ):
        if tuple(step.name for step in pipeline.steps) != expected:
            raise ModelFileError(f"{name} must have the steps {list(expected)} of the spec.")
        widths = {len(step.mean) for step in pipeline.steps if hasattr(step, "mean")}
        if widths - {columns}:
            raise ModelFileError(f"{name} must have {columns} columns, found {sorted(widths)}.")


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
