"""What besides settings and data decides the bits of a run."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tfbnn import __version__
from tfbnn.engine.compile import has_gpu
from tfbnn.engine.seeds import SCHEME

__all__ = ["describe_environment"]


def describe_environment():
    """Device, scheme of the random keys, and versions of the libraries, JSON-able."""
    return {
        "device": "GPU" if has_gpu() else "CPU",
        "key_scheme": SCHEME,
        "versions": {
            "tfbnn": __version__,
            "numpy": np.__version__,
            "tensorflow": tf.__version__,
            "tensorflow_probability": tfp.__version__,
        },
    }
