"""Files: the model file with the sampled networks."""

from tfbnn.storage.model_file import read_model, write_model
from tfbnn.storage.trailer import seal

__all__ = ["read_model", "seal", "write_model"]
