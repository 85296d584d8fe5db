"""What besides settings and data decides the bits of a run."""

from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import has_gpu
from tfbnn.engine.basis.libraries import tf, tfp
from tfbnn.engine.basis.seeds import SCHEME
from tfbnn.system.version import __version__


def describe_environment() -> dict[str, Any]:
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
