"""Which chains represent the same functions."""

from __future__ import annotations

import numpy as np

from tfbnn.system.arrays import Array

# Two equal normal distributions have two peaks, and next to nothing between them, from this distance
# of their means on, in standard deviations.
FAR = 2.0


def group_chains(function: Array) -> Array:
    """Numbers of the groups that chains belong to, in the order of their first chains: [C].

    Chains that are nearer to each other than FAR are in one group, and so are those that others
    connect.

    Args:
        function: Function values at reference inputs [C, S, N_ref, K].
    """
    near = distances(function) < FAR
    labels = np.arange(len(near))
    for chain, neighbours in enumerate(near):
        joined = np.isin(labels, labels[neighbours | (np.arange(len(near)) == chain)])
        labels[joined] = labels[joined].min()
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def distances(function: Array) -> Array:
    """How far the mean functions of chains are apart, in their own standard deviations [C, C].

    Root mean square over the reference inputs; infinite where a value is not finite, and where
    constant functions differ.

    Args:
        function: Function values at reference inputs [C, S, N_ref, K].
    """
    with np.errstate(all="ignore"):
        means, variances = function.mean(axis=1, dtype=float), function.var(axis=1, dtype=float)
        gaps = np.square(means[:, None] - means)
        ratios = gaps / (0.5 * (variances[:, None] + variances))
    ratios = np.where(gaps == 0.0, 0.0, ratios)
    found: Array = np.sqrt(np.mean(ratios, axis=(2, 3)))
    return np.where(np.isnan(found), np.inf, found)
