"""Writes HDF5 files that say what they are, with a seal, at once or not at all.

The file is made in memory. A full disk then meets plain writes: where the HDF5 library itself runs
out of space, it cannot close its file, and may end the process. It costs memory of the size of the
file for the time of the write.
"""

import io

import h5py
import numpy as np

from tfbnn.storage.format import schema
from tfbnn.storage.format.sealing import seal_of
from tfbnn.system.atomic import write_file
from tfbnn.system.version import __version__


def write_sealed(path, kind, fill):
    """Writes a file, replacing what is there only once the new one is complete.

    Args:
        path: File name.
        kind: FileKind of the file.
        fill: Function of the open h5py.File that writes the datasets.

    Returns:
        The SHA-256 of the file without its seal, 32 bytes.

    Raises:
        FileNotFoundError: When the folder does not exist.
        OSError: When the file cannot be written.
    """
    image = io.BytesIO()
    with h5py.File(image, "w", libver=("v110", "v110")) as file:
        values = (kind.format, kind.version, "tfbnn", __version__)
        for name, value in zip(schema.ATTRIBUTES, values):
            # Texts of fixed length: others lie on a heap, which is one more thing to go wrong.
            file.attrs[name] = np.bytes_(value) if isinstance(value, str) else value
        fill(file)
    seal = seal_of(image.getbuffer())
    write_file(path, image.getbuffer(), seal)
    return seal[-schema.DIGEST_BYTES :]
