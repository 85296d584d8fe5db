"""Files: the model file with the sampled networks, and the folder that a run writes as it goes."""

from tfbnn.storage.checkpoint import Checkpoint
from tfbnn.storage.lane_reader import LaneDraws
from tfbnn.storage.lane_writer import LaneWriter
from tfbnn.storage.model_file import read_model, write_model
from tfbnn.storage.run_folder import RunFolder
from tfbnn.storage.trailer import seal

__all__ = [
    "Checkpoint",
    "LaneDraws",
    "LaneWriter",
    "RunFolder",
    "read_model",
    "seal",
    "write_model",
]
