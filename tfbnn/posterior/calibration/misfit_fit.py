"""Estimation of a `Misfit` from the rows of the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from tfbnn.posterior.calibration.calibration import Misfit
from tfbnn.posterior.calibration.misfit_features import (
    misfit_factors,
    misfit_features,
    misfit_networks,
    num_features,
    row_blocks,
    single_networks,
)
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import target_tiles
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array
from tfbnn.system.threads import on_all_cores

# Weight along an axis, relative to the largest, below which it is rounding.
_LEAST_SHARE = 1e-10
_ROUNDING = 1e-12

Blocks = Callable[[], Iterator[tuple[slice, Array]]]


def fit_misfit(
    ensemble: Ensemble, rows: NetworkRows, scores: Array, judged: Array
) -> tuple[Misfit, Array]:
    """Estimate the Misfit, and its factors [N, K] at the rows of the fit, each without its own part.

    Args:
        ensemble: Ensemble of a regression.
        rows: The rows of the fit on the scale the network sees.
        scores: Scores of the rows, each left out [N, K].
        judged: Mask of the scores that are known [N, K].
    """
    networks = misfit_networks(ensemble)
    noise = noise_of_networks(networks, rows)
    count, num_targets = num_features(ensemble.spec), rows.y.shape[1]
    directions = np.empty((len(noise), num_targets, count, count), ensemble.spec.dtype)
    squares, own = np.empty(directions.shape[:-1]), np.empty_like(noise)
    singles = single_networks(networks)

    def find(number: int) -> None:
        for target in range(num_targets):
            scale = noise[number, :, target]
            blocks = partial(_blocks, singles[number], rows.x, target, scale)
            axes, means, leverage, total = misfit_axes(
                blocks, np.square(scores[:, target]), judged[:, target]
            )
            # At the rows themselves, whose features are not divided by their noise, the denominator
            # is then about 1 on average.
            unit = np.sqrt(len(scale) / (total * float(np.mean(np.square(scale)))))
            directions[number, target] = unit * axes
            squares[number, target] = means
            terms = np.square(unit * scale) * leverage
            own[number, :, target] = terms * judged[:, target]

    on_all_cores(find, range(len(singles)))
    misfit = Misfit(directions, squares)
    return misfit, misfit_factors(ensemble, misfit, rows.x, (own * np.square(scores), own))


def noise_of_networks(networks: Ensemble, rows: NetworkRows) -> Array:
    """Compute the noise scales of the likelihood of M networks at rows with known targets [M, N, K]."""
    noise: Array = np.empty((networks.num_draws, *rows.y.shape))
    for span, location, scale, *_ in target_tiles(networks, rows):
        noise[:, span] = np.broadcast_to(scale, location.shape)
    return noise


def misfit_axes(blocks: Blocks, squares: Array, judged: Array) -> tuple[Array, Array, Array, float]:
    """Compute both sums of a Misfit as quadratic forms, for one network and target.

    The penalty on weights is one for theta, as the prior has it in ntk. In the other
    parameterisation it has little influence where the rows have some.

    Args:
        blocks: Function that iterates over (slice of rows, their features over their noise scale
            [P, n]).
        squares: Squared scores [N].
        judged: Mask of the rows that have a score [N].

    Returns:
        (Directions [P, P] and squares [P] as in `Misfit`, up to a factor; leverage of the rows [N];
        the denominator of a `Misfit`, added up over all rows.)
    """
    of_rows: Array = sum((features @ features.T for _, features in blocks()), np.array(0.0))
    # With nearly no noise a penalty of one is less than rounding.
    penalty = max(1.0, _ROUNDING * float(of_rows.max()))
    precision = of_rows + penalty * np.eye(len(of_rows))
    whitening = np.linalg.inv(np.linalg.cholesky(precision))
    leverage = np.empty(len(squares))
    above, below = np.zeros_like(precision), np.zeros_like(precision)
    for rows, features in blocks():
        white = whitening @ features
        leverage[rows] = np.maximum(np.square(white).sum(axis=0), np.finfo(np.float64).tiny)
        # BLAS takes half the time for a product with its own transpose.
        weighted = white * np.sqrt(judged[rows] / leverage[rows])
        below += weighted @ weighted.T
        weighted *= np.sqrt(squares[rows])
        above += weighted @ weighted.T
    # Axes on which the denominator is a plain sum of squares, rotated so that the numerator has no
    # mixed terms either.
    lengths, axes = np.linalg.eigh(below)
    known = lengths > _LEAST_SHARE * lengths[-1]
    roots = np.sqrt(np.where(known, lengths, 1.0))
    inner = (axes / roots) * known
    means, turn = np.linalg.eigh(inner.T @ above @ inner)
    directions = whitening.T @ (axes * (roots * known)) @ turn
    total = float(np.sum(directions * (of_rows @ directions)))
    return directions, np.maximum(means, 0.0), leverage, total


def _blocks(
    network: Ensemble, x: Array, target: int, noise: Array
) -> Iterator[tuple[slice, Array]]:
    for rows in row_blocks(len(x)):
        yield rows, misfit_features(network, x[rows])[target] / noise[rows]
