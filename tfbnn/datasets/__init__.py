"""A generated training table of leading-order cross sections, see ``neutralino_pairs``."""

from tfbnn.datasets.neutralino import Dataset, neutralino_pairs

__all__ = ["Dataset", "neutralino_pairs"]
