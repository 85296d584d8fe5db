"""Files: the model file with the sampled networks; and in `run` the folder that a run writes as it goes."""

from tfbnn.storage.format.sealing import seal
from tfbnn.storage.model.file import read_model, write_model

__all__ = ["read_model", "seal", "write_model"]
