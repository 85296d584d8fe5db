"""The attributes of the root of a tfbnn file, which say what it is and who wrote it."""

import numpy as np

from tfbnn import __version__
from tfbnn.storage import schema

__all__ = ["write_attributes"]


def write_attributes(file, kind):
    """Writes the attributes of an open HDF5 file of the given FileKind."""
    values = (kind.format, kind.version, "tfbnn", __version__)
    for name, value in zip(schema.ATTRIBUTES, values):
        # Texts of fixed length: others lie on a heap, which is one more thing to go wrong.
        file.attrs[name] = np.bytes_(value) if isinstance(value, str) else value
