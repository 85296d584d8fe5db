"""The normal distributions that draws of a posterior look like, one for each basin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfbnn.posterior.basins.bridge import effective_size
from tfbnn.posterior.basins.finding import RowsTarget
from tfbnn.posterior.basins.grouping import group_chains
from tfbnn.posterior.basins.proposal import Frame
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import function_of_chains
from tfbnn.spec.priors import NormalMixture
from tfbnn.spec.rows import NetworkRows
from tfbnn.spec.symmetries import aligned
from tfbnn.system.arrays import Array

# Numbers in the directions of all components: 32 MB, of which a file's text makes 43. What is more
# than that has the longest directions alone.
_MOST_NUMBERS = 4e6
# Least variance along a direction, of one on the diagonal: rounding has made what is below.
_LEAST = 1e-14


def posterior_mixture(ensemble: Ensemble, rows: NetworkRows | None) -> NormalMixture:
    """A normal distribution of all parameters per basin, weighed by the weights of its chains.

    Its mean is that of the draws, brought into one copy of the networks. Its covariance is that of so
    many independent draws as these are worth, and of P more from N(., H^-1), H the Gauss-Newton matrix
    at the best one: few draws cannot tell the directions that rows determine from the others, and
    without them, as with many parameters, a covariance is shrunk to its diagonal.

    Args:
        ensemble: Ensemble of networks.
        rows: The rows of its fit on the scale the network sees, or None.
    """
    labels = group_chains(function_of_chains(ensemble))
    groups = [np.flatnonzero(labels == group) for group in range(labels.max() + 1)]
    num_draws, size = ensemble.draws.shape[1:]
    rank = int(_MOST_NUMBERS / (len(groups) * size))
    if rank < size:
        rows = None
    target = None if rows is None else RowsTarget(ensemble.spec, rows)
    parts = [
        _component(ensemble, chains, target, min(rank, size, num_draws if rows is None else size))
        for chains in groups
    ]
    weights = np.array([ensemble.chain_weights[chains].sum() for chains in groups])
    return NormalMixture.of(weights / weights.sum(), *(np.stack(one) for one in zip(*parts)))


class _Component(NamedTuple):
    """Settings of one component, as of `NormalMixture`."""

    loc: Array
    scale: Array
    directions: Array
    stretch: Array


def _component(
    ensemble: Ensemble, chains: Array, target: RowsTarget | None, rank: int
) -> _Component:
    """The component of the chains of one basin."""
    spec, draws = ensemble.spec, ensemble.draws[chains].astype(np.float64)
    log_prob = ensemble.sample_stats["lp"][chains]
    best = draws.reshape(-1, draws.shape[2])[np.argmax(log_prob)]
    count = sum(map(effective_size, log_prob))
    theta, _ = aligned(spec, draws.reshape(-1, draws.shape[2]), best)
    share = np.repeat(ensemble.chain_weights[chains], draws.shape[1])
    share = share / share.sum()
    if target is None:
        spread = np.sqrt(share @ np.square(theta - share @ theta))
        return _shrunk(theta, share, count, spread, rank)
    frame = Frame(best, target.factor(best))
    normal = frame.fitted(theta, count, share)
    root = np.linalg.solve(frame.factor.T, normal.spread)
    loc = frame.centre + np.linalg.solve(frame.factor.T, normal.mean)
    covariance = root @ root.T
    scale = np.sqrt(np.diag(covariance))
    variances, directions = np.linalg.eigh(covariance / (scale[:, None] * scale))
    return _Component(loc, scale, directions, np.sqrt(np.maximum(variances, _LEAST)))


def _shrunk(theta: Array, share: Array, count: float, spread: Array, rank: int) -> _Component:
    """By draws alone: their longest directions, with the covariance shrunk to its diagonal."""
    loc, size = share @ theta, theta.shape[1]
    scaled = (theta - loc) / spread * np.sqrt(share)[:, None]
    _, lengths, directions = np.linalg.svd(scaled, full_matrices=False)
    across = size / (count + size)
    variances = across + (1.0 - across) * np.square(lengths[:rank])
    return _Component(
        loc, spread * np.sqrt(across), directions[:rank].T, np.sqrt(variances / across)
    )
