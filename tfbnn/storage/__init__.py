"""Model files with sampled networks, and, in `tfbnn.storage.run`, folders written during a run."""

from tfbnn.storage.format.sealing import seal
from tfbnn.storage.model.file import read_model, write_model

__all__ = ["read_model", "seal", "write_model"]
