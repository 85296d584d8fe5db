"""The classification data that benchmarks share."""

import numpy as np

from benchmarks.lib.common import data_folder

__all__ = ["XOR", "banknotes", "iris", "stratified_split"]

# Inputs [4, 2] and labels [4].
XOR = (np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0]))


def iris():
    """Fisher's iris in UCI's variant: four inputs, three classes of 50 rows each."""
    return _table("iris")


def banknotes():
    """Swiss banknotes: six measurements, 100 genuine (0) and 100 counterfeit (1) notes."""
    return _table("banknotes")


def _table(name):
    folder = data_folder() / "xor_iris"
    x, y = (
        np.loadtxt(folder / f"{name}_{part}.csv", delimiter=",", skiprows=1) for part in ("x", "y")
    )
    return x, y.astype(int)


def stratified_split(y, share, seed):
    """Indices (train, test), with the same share of every class among the training rows."""
    generator, train = np.random.default_rng(seed), np.zeros(len(y), bool)
    for label in np.unique(y):
        rows = generator.permutation(np.flatnonzero(y == label))
        train[rows[: round(share * len(rows))]] = True
    return np.flatnonzero(train), np.flatnonzero(~train)
