"""Files: the model file with the sampled networks, and the folder that a run writes as it goes."""

from tfbnn.storage.format.sealing import seal
from tfbnn.storage.model.file import read_model, write_model
from tfbnn.storage.run.checkpoint import Checkpoint
from tfbnn.storage.run.folder import RunFolder
from tfbnn.storage.run.lane import LaneDraws, LaneWriter

__all__ = [
    "Checkpoint",
    "LaneDraws",
    "LaneWriter",
    "RunFolder",
    "read_model",
    "seal",
    "write_model",
]
