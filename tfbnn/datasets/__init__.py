"""A generated training table of leading-order cross sections, see ``neutralino_pairs``."""

from typing import Any

from tfbnn.datasets.neutralino import Dataset, neutralino_pairs
from tfbnn.spec.habits import absent

__all__ = ["Dataset", "neutralino_pairs"]


def __getattr__(name: str) -> Any:
    raise absent("tfbnn.datasets", name, __all__)
