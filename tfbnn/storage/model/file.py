"""Model file: one sealed HDF5 file with the sampled networks and everything needed to use them.

A file is checked in three steps: size and seal, in plain Python; every object of the HDF5 file,
before its content is read; and the content, which must agree with the model that it describes.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tfbnn.exceptions import ModelFileError
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.storage.format import schema
from tfbnn.storage.format.allow_list import opened_datasets
from tfbnn.storage.format.sealing import check_seal, write_sealed
from tfbnn.storage.model.contents import from_arrays, to_arrays
from tfbnn.storage.model.untrusted import read_foreign
from tfbnn.system.atomic import StrPath

_ENDINGS_OF_OTHERS = (".keras", ".onnx", ".pkl", ".joblib", ".pt", ".npz")


def write_model(ensemble: Ensemble, path: StrPath) -> None:
    """Write an ensemble to `path`; an existing file is replaced once the new one is complete.

    Args:
        ensemble: Ensemble.
        path: File name; by custom it ends in .h5.

    Raises:
        FileNotFoundError: When the folder does not exist.
        ValueError: For a name with the ending of another format.
        ModelFileError: For an ensemble that contradicts itself, so that it could not be loaded.
        OSError: When the file cannot be written.
    """
    if os.fspath(path).lower().endswith(_ENDINGS_OF_OTHERS):
        raise ValueError(
            f"Model files end in .h5, received {os.fspath(path)!r}. to_onnx, to_savedmodel and to_keras "
            "write for other programs."
        )
    arrays = to_arrays(ensemble, datetime.now(UTC).isoformat(timespec="seconds"))
    described = schema.DATASETS | schema.OPTIONAL_DATASETS
    odd = [name for name, array in arrays.items() if array.dtype.str not in described[name][0]]
    try:
        if odd:
            raise TypeError(f"{odd[0]} must not be {arrays[odd[0]].dtype}")
        from_arrays(arrays, custom=ensemble.spec.own_classes)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"The model was not saved, as its file could not be loaded again: {error}"
        ) from error
    write_sealed(path, schema.MODEL, arrays)


def read_model(
    path: StrPath,
    *,
    untrusted: bool = False,
    max_bytes: int = schema.MAX_BYTES,
    custom: Sequence[Any] = (),
) -> Ensemble:
    """Read an ensemble from a file written by `write_model`.

    Args:
        path: Path of the file.
        untrusted: Whether strangers may have written the file. It is then read in a separate
            process, so that a fault of the HDF5 library cannot harm this one. Costs about 0.3 s.
        max_bytes: Maximum size of the file, and of all its arrays; default 2 GiB.
        custom: Custom classes that the model may use; not allowed with `untrusted`.

    Raises:
        FileNotFoundError: When there is no such file.
        ModelFileError: When the file is not a tfbnn model, is damaged or contradicts itself.
    """
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"There is no model file {path!r}.")
    if not os.path.isfile(path):
        raise ModelFileError(f"{path!r} is not a file. Pass the .h5 file that save() wrote.")
    with open(path, "rb") as file:
        try:
            size = os.fstat(file.fileno()).st_size
            if size > max_bytes:
                raise ModelFileError(
                    f"it has {size} bytes, expected at most {max_bytes}. Pass a larger max_bytes "
                    "(--trusted in the command line) if you know where the file comes from."
                )
            check_seal(file)
            if untrusted:
                ensemble = from_arrays(read_foreign(file, max_bytes))
                if ensemble.spec.own_names:  # the record in a file may be wrong
                    raise ModelFileError(
                        f"it uses custom classes, {', '.join(ensemble.spec.own_names)}, which untrusted=True "
                        "does not allow. Load a file that you trust with untrusted=False."
                    )
                return ensemble
            with opened_datasets(file, max_bytes) as (version, datasets):
                return from_arrays(datasets, version, custom)
        except ModelFileError as error:
            raise ModelFileError(f"{path!r}: {error}") from error
        except ChildProcessError:
            raise
        except Exception as error:
            # Any exception from a damaged or crafted file is a fault of the file.
            raise ModelFileError(
                f"{path!r} is not a readable tfbnn model file ({type(error).__name__}: {error}). "
                "Check that it was copied completely, or save it again."
            ) from error
