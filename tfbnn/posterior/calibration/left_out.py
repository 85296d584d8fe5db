"""What each row of the fit would have been predicted to be without itself, from its leverage."""

from __future__ import annotations

from typing import cast

import numpy as np

from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import noise_tiles
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array

# Rows whose variance of the function is more than this of that of the noise decide their own
# prediction, and nothing is known of them without themselves.
_LARGEST_LEVERAGE = 0.9
# Share of the rows of which something has to be known: fewer are no sample of all.
FEWEST_JUDGED = 0.5


def left_out_moments(ensemble: Ensemble, rows: NetworkRows) -> tuple[Array, Array, Array]:
    """As `left_out`, of rows of the fit of an ensemble."""
    ensemble = ensemble.weighted.mirrored
    mean, stddev, judged = (np.empty(rows.y.shape) for _ in range(3))
    for place, location, scale in noise_tiles(ensemble, rows.x, rows.noise):
        found = left_out(rows.y[place], location, cast(Array, scale), ensemble.chain_weights)
        mean[place], stddev[place], judged[place] = found
    return mean, stddev, judged.astype(bool)


def left_out(
    target: Array, location: Array, scale: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """(Mean, standard deviation with noise, whether they can be told) of rows left out, [n, K] each.

    A network with few rows per weight follows each row: its own residual is too small, and its own
    interval too wide. For a Gaussian posterior and Gaussian noise the row's leverage h, the variance
    of the function there over that of the noise, takes both back: residual / (1 - h), variance
    noise / (1 - h) (Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, eq. 5.12).
    Every chain is taken for such a posterior around a mode of its own, and they are mixed by weight.

    Args:
        target: [n, K].
        location: Predictions of all draws, chain by chain [C * S, n, K].
        scale: Their noise scales, broadcastable to `location`.
        weights: Of the chains [C].
    """
    shape = (len(weights), -1, *target.shape)
    of_chain = location.reshape(shape)
    noise = np.broadcast_to(np.square(scale), location.shape).reshape(shape).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # no noise, no row that can be told
        left = 1.0 - of_chain.var(axis=1) / noise
    judged: Array = left.min(axis=0) >= 1.0 - _LARGEST_LEVERAGE
    left = np.maximum(np.nan_to_num(left), 1.0 - _LARGEST_LEVERAGE)
    means = target - (target - of_chain.mean(axis=1)) / left
    mean = np.einsum("c,cnk->nk", weights, means)
    variance = np.einsum("c,cnk->nk", weights, noise / left + np.square(means - mean))
    return mean, np.sqrt(variance), judged
