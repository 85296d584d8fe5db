"""Fits on a cluster with Dask (the extra `cluster`)."""

from typing import Any

from tfbnn.cluster.cluster_fit import fit
from tfbnn.spec.habits import FORMER

__all__ = ["fit"]


def __getattr__(name: str) -> Any:
    ended = f" {FORMER['cluster.predict']}" if name == "predict" else ""
    raise AttributeError(f"module 'tfbnn.cluster' has no attribute {name!r}.{ended}")
