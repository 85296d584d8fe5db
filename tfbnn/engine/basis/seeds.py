"""Random keys, and the environment that also determines the bits of a run.

A key is a hash of (seed, stream, chain, index). A draw therefore does not depend on the length of
compiled blocks or on interruptions, and no two uses share a key. TFP's own folding is an
exclusive-or of small integers, with which (chain 1, step 2) and (chain 2, step 1) would draw the
same numbers.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import has_gpu
from tfbnn.engine.basis.libraries import tf, tfp
from tfbnn.system.arrays import Array
from tfbnn.system.version import __version__

SCHEME = "tfbnn-keys-1"


def keys(seed: int, stream: str, chain: int, start: int, count: int) -> Array:
    """Compute stateless TensorFlow seeds for the indices start .. start + count - 1.

    Args:
        seed: The user's integer seed.
        stream: Purpose of the numbers, such as "transition".
        chain: Chain number, or -1 - n for chains that advance together, with n the first of them.
        start: Absolute index of the first key, for example a transition counted from the start.
        count: Number of keys.

    Returns:
        int32 array [count, 2]: the first 64 bits of SHA-256 over all of the above.
    """
    prefix = _prefix(seed, stream, chain)
    digests = [_digest(prefix, index)[:8] for index in range(start, start + count)]
    return np.frombuffer(b"".join(digests), dtype="<i4").reshape(count, 2)


def generator(seed: int, stream: str, chain: int, index: int = 0) -> np.random.Generator:
    """Return a NumPy generator with its own key, for draws outside compiled code."""
    key = int.from_bytes(_digest(_prefix(seed, stream, chain), index)[:16], "little")
    return np.random.Generator(np.random.Philox(key=key))


def _prefix(seed: int, stream: str, chain: int) -> bytes:
    return f"{SCHEME}|{seed}|{stream}|{chain}|".encode()


def _digest(prefix: bytes, index: int) -> bytes:
    return hashlib.sha256(prefix + index.to_bytes(8, "little")).digest()


def describe_environment() -> dict[str, Any]:
    """Return device, key scheme and versions of the libraries as a JSON-compatible dict."""
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
