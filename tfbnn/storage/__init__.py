"""Files: the model file with the sampled networks, and the folder that a run writes as it goes."""

from tfbnn.storage.format.sealing import seal
from tfbnn.storage.model.file import read_model, write_model
from tfbnn.storage.run.chain_group import GroupDraws, GroupWriter
from tfbnn.storage.run.checkpoint import Checkpoint
from tfbnn.storage.run.folder import RunFolder

__all__ = [
    "Checkpoint",
    "GroupDraws",
    "GroupWriter",
    "RunFolder",
    "read_model",
    "seal",
    "write_model",
]
