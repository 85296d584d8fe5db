"""Rows of earlier fits, whose likelihood is a part of the prior, as tensors."""

from __future__ import annotations

from tfbnn.engine.density.data import Data, make_data
from tfbnn.spec.network_spec import NetworkSpec


def earlier_data(spec: NetworkSpec, dtype: str) -> Data:
    """The earlier rows of a spec that has some."""
    kept = spec.earlier
    noise = None if kept.noise is None else kept.noise.values
    return make_data(kept.x.values, kept.y.values, noise, dtype, kept.weights.values)
