"""Convergence diagnostics with NumPy: statistics of chains, and the diagnosis of a run."""

from typing import Any

from tfbnn.spec.habits import absent


def __getattr__(name: str) -> Any:
    raise absent("tfbnn.diagnostics", name, ())
