"""Tables to train on: a generated leading-order set and readers for files.

``neutralino_pairs`` computes a small physics set on the spot and needs no file.
``read_cross_sections`` reads a comma-separated table of neutralino cross sections.
Both return a :class:`Dataset`. ``read_cifar10`` and ``read_utkface`` read images that you have
downloaded, in the layouts of their authors.
"""

from tfbnn.datasets.cifar10 import LabelledImages, read_cifar10
from tfbnn.datasets.cross_sections import read_cross_sections
from tfbnn.datasets.neutralino import neutralino_pairs
from tfbnn.datasets.table import TEST, TRAIN, VALIDATION, Dataset
from tfbnn.datasets.utkface import Faces, read_utkface

__all__ = [
    "TEST",
    "TRAIN",
    "VALIDATION",
    "Dataset",
    "Faces",
    "LabelledImages",
    "neutralino_pairs",
    "read_cifar10",
    "read_cross_sections",
    "read_utkface",
]
