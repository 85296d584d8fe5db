"""The model file: one HDF5 file with the sampled networks and everything needed to use them."""

import contextlib
import json
import os
import tempfile
from datetime import UTC, datetime

import h5py
import numpy as np

from tfbnn import __version__
from tfbnn.ensemble import Ensemble
from tfbnn.exceptions import ModelFileError
from tfbnn.spec import ModelSpec
from tfbnn.storage import schema
from tfbnn.transforms import Pipeline

__all__ = ["read_model", "write_model"]


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
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
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
        "provenance": ensemble.provenance,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    file.attrs["format"] = schema.FORMAT
    file.attrs["format_version"] = schema.FORMAT_VERSION
    file.attrs["inference_library"] = "tfbnn"
    file.attrs["inference_library_version"] = __version__
    # JSON can exceed the 64 KiB that HDF5 allows an attribute, so it is a dataset of bytes.
    text = json.dumps(metadata, allow_nan=False).encode()
    file.create_dataset(schema.METADATA, data=np.frombuffer(text, np.uint8))
    file.create_dataset(schema.THETA, data=ensemble.draws)
    file.create_dataset(schema.CHAIN_WEIGHTS, data=ensemble.chain_weights)
    file.create_dataset(schema.X_REFERENCE, data=ensemble.x_reference)
    for name, dtype in schema.STATISTICS.items():
        values = ensemble.sample_stats[name].astype(dtype)
        file.create_dataset(f"{schema.SAMPLE_STATS}/{name}", data=values)


def _read(file):
    if file.attrs.get("format") != schema.FORMAT:
        raise ModelFileError("this HDF5 file is not a tfbnn model.")
    version = int(file.attrs["format_version"])
    if version != schema.FORMAT_VERSION:
        raise ModelFileError(
            f"this release reads format version {schema.FORMAT_VERSION}, the file has {version}. "
            "Load it with the release that wrote it."
        )
    metadata = json.loads(file[schema.METADATA][()].tobytes())
    spec = ModelSpec.from_json(metadata["spec"])
    names = metadata["feature_names"]
    ensemble = Ensemble(
        spec=spec,
        x_pipeline=Pipeline.from_json(metadata["x_pipeline"]),
        y_pipeline=Pipeline.from_json(metadata["y_pipeline"]),
        draws=file[schema.THETA][()],
        sample_stats={name: _statistic(file, name) for name in schema.STATISTICS},
        chain_weights=file[schema.CHAIN_WEIGHTS][()],
        x_reference=file[schema.X_REFERENCE][()],
        feature_names=None if names is None else tuple(names),
        row_noise=bool(metadata["row_noise"]),
        provenance=dict(metadata["provenance"], created_at=metadata["created_at"]),
    )
    _check(ensemble)
    return ensemble


def _statistic(file, name):
    values = file[f"{schema.SAMPLE_STATS}/{name}"][()]
    return values.astype(bool) if name == "diverging" else values


def _check(ensemble):
    spec, draws = ensemble.spec, ensemble.draws
    if draws.ndim != 3 or draws.shape[2] != spec.layout.num_parameters:
        raise ModelFileError(
            f"theta must have shape [chain, draw, {spec.layout.num_parameters}], found "
            f"{list(draws.shape)}."
        )
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
    if weights.shape != draws.shape[:1] or np.any(weights < 0) or abs(weights.sum() - 1) > 1e-6:
        raise ModelFileError("chain_weights must be one per chain, non-negative, and add up to 1.")
    if ensemble.x_reference.ndim != 2 or ensemble.x_reference.shape[1] != spec.num_inputs:
        raise ModelFileError(
            f"x_reference must have {spec.num_inputs} columns, found shape "
            f"{list(ensemble.x_reference.shape)}."
        )
    for name, pipeline, columns in (
        ("x_pipeline", ensemble.x_pipeline, spec.num_inputs),
        ("y_pipeline", ensemble.y_pipeline, spec.num_targets),
    ):
        widths = {len(step.mean) for step in pipeline.steps if hasattr(step, "mean")}
        if widths - {columns}:
            raise ModelFileError(f"{name} must have {columns} columns, found {sorted(widths)}.")


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
