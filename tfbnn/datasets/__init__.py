"""Tables to train on: a generated leading-order set and readers for files.

``neutralino_pairs`` computes a small physics set on the spot and needs no file.
``read_cross_sections`` reads a comma-separated table of neutralino cross sections.
Both return a :class:`Dataset`.
"""

from typing import Any

from tfbnn.datasets.cross_sections import read_cross_sections
from tfbnn.datasets.neutralino import neutralino_pairs
from tfbnn.datasets.table import TEST, TRAIN, VALIDATION, Dataset
from tfbnn.spec.habits import absent

__all__ = [
    "TEST",
    "TRAIN",
    "VALIDATION",
    "Dataset",
    "neutralino_pairs",
    "read_cross_sections",
]


def __getattr__(name: str) -> Any:
    raise absent("tfbnn.datasets", name, __all__)
