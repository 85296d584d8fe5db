"""Predictions of rows of the fit as if they had been left out, by their leverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tfbnn.diagnostics.statistics import bulk_ess
from tfbnn.posterior.basins.bridge import group_chains
from tfbnn.posterior.calibration.misfit_features import (
    MOST_FEATURES,
    misfit_features,
    misfit_networks,
    num_features,
    row_blocks,
    single_networks,
)
from tfbnn.posterior.calibration.misfit_fit import noise_of_networks
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import TargetTile, function_of_chains, target_tiles
from tfbnn.posterior.process_predictions import exactly_left_out
from tfbnn.posterior.relevance import mean_log_density
from tfbnn.spec.model_spec import ModelSpec, perceptron
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array
from tfbnn.system.threads import on_all_cores

# Leverage is the variance of the function over that of the noise. Rows with more than this dominate
# their own prediction, so that the prediction without them is not known.
_LARGEST_LEVERAGE = 0.9
# Rows that are left out together move the posterior further. For a Gaussian posterior the largest
# eigenvalue of the leverage is the Pareto k of the importance weights that leave the rows out. Above
# this value the weights are not reliable (Vehtari et al. 2024, arXiv:1507.02646).
_LARGEST_EIGENVALUE = 0.7
# A variance from n independent draws is too small by 1 / n of it, on average. With this many rows per
# weight leverage is at most a tenth on average, however small it seems to be.
_FEWEST_EFFECTIVE, _ROWS_PER_WEIGHT = 10, 10
# With more rows per weight leverage is at most a hundredth on average: not worth the time of `Tangents`.
_MOST_ROWS_PER_FEATURE = 100
_ROUNDING = 1e-12
# Rows that are left out together take matrices of as many rows and columns. Larger groups are not judged.
MOST_LEFT_OUT_TOGETHER = 2000
# Least share of the rows that has to be judged: a smaller one does not represent all rows.
FEWEST_JUDGED = 0.5
# Name of these rows in reports.
LEFT_OUT = "rows of the fit, each left out"


@dataclass(frozen=True)
class Tangents:
    """Leverage of rows, from the derivatives of a few networks of an ensemble in their weights.

    Chains that have hardly moved vary less than the posterior does. The derivatives do not depend
    on how far chains moved. With features Phi [P, N], divided by the noise scale of their row, the
    variance of the function over that of the noise is the diagonal of Phi^T (power Phi
    Phi^T + 1)^-1 Phi in the Gauss-Newton approximation (Immer, Korzepa and Bauer 2021, AISTATS,
    arXiv:2008.08400). It is smaller if there are too many weights to include all of them.

    Attributes:
        networks: Ensembles of one network each.
        whitening: For each network the matrix that makes features independent of each other
            [M, P, P].
        has_all_weights: Whether derivatives are those in all weights.
    """

    networks: list[Ensemble]
    whitening: Array
    has_all_weights: bool

    @classmethod
    def of(cls, ensemble: Ensemble, rows: NetworkRows) -> Tangents | None:
        """Compute the Tangents of an ensemble and all rows of its fit; None if they do not apply."""
        spec = ensemble.spec
        if not spec.has_additive_noise or not isinstance(spec, ModelSpec):
            return None
        is_exact = ensemble.mode is not None or ensemble.given is not None
        # A prior that is an earlier posterior decides more than a penalty of one does.
        if is_exact or spec.earlier is not None:
            return None
        of_readout = spec.layer_sizes[-2] + 1
        hidden = num_features(spec) - of_readout
        count = hidden + spec.num_targets * of_readout
        if count > MOST_FEATURES or len(rows.x) > _MOST_ROWS_PER_FEATURE * count:
            return None
        networks = single_networks(misfit_networks(ensemble))
        whitening = np.empty((len(networks), count, count))

        def find(number: int) -> None:
            precision = np.zeros((count, count))
            for block in row_blocks(len(rows.x)):
                for features in _scaled(networks[number], rows.taken(block)):
                    precision += spec.likelihood_power * (features @ features.T)
            # One is the precision of the prior in ntk. With nearly no noise it is less than rounding.
            precision += max(1.0, _ROUNDING * float(precision.max())) * np.eye(count)
            whitening[number] = np.linalg.inv(np.linalg.cholesky(precision))

        on_all_cores(find, range(len(networks)))
        has_all = hidden + of_readout * spec.num_outputs == spec.layout.num_weights
        return cls(networks, whitening, has_all)

    def leverage(self, rows: NetworkRows) -> Array:
        """Compute the variance of the function over that of the noise at rows of the fit [n, K]."""
        blocks = [rows.taken(block) for block in row_blocks(len(rows.x))]
        found = [
            self._mean(block, lambda white: np.square(white).sum(axis=0)).T for block in blocks
        ]
        return np.concatenate(found)

    def covariance(self, rows: NetworkRows) -> Array:
        """Compute covariances of the function between rows of the fit, in units of the noise: [K, n, n]."""
        return self._mean(rows, lambda white: white.T @ white)

    def _mean(self, rows: NetworkRows, function: Callable[[Array], Array]) -> Array:
        each = zip(self.networks, self.whitening)
        return np.mean(
            [[function(one @ of) for of in _scaled(network, rows)] for network, one in each], axis=0
        )


def _scaled(network: Ensemble, rows: NetworkRows) -> list[Array]:
    """Compute derivatives of a network in its weights over the noise scales of rows: per target [P, n].

    The weights of all readouts come first.
    """
    (noise,) = noise_of_networks(network, rows)
    size = perceptron(network.spec, "Leverage").layer_sizes[-2] + 1
    found = []
    for number, features in enumerate(misfit_features(network, rows.x)):
        readouts = np.zeros((noise.shape[1], size, len(noise)))
        readouts[number] = features[:size]
        whole = np.concatenate([readouts.reshape(-1, len(noise)), features[size:]])
        found.append(whole / noise[:, number])
    return found


def left_out_moments(
    ensemble: Ensemble, rows: NetworkRows, row_groups: Array | None = None
) -> tuple[Array, Array, Array]:
    """Compute `left_out` for rows of the fit of an ensemble.

    Args:
        ensemble: Ensemble of a regression.
        rows: The rows.
        row_groups: Groups of rows that are left out together [N], numbered from 0; None: each row
            by itself.

    Raises:
        ValueError: If the draws do not determine the leverage of rows, and it may be large.
    """
    ensemble = ensemble.for_averages
    function = function_of_chains(ensemble)
    groups = group_chains(function)
    num_left_out = len(rows.x) if row_groups is None else len(np.unique(row_groups))
    tangents = Tangents.of(ensemble, rows)
    require_moving_chains(ensemble, function, groups, num_left_out, tangents)
    mean, stddev = np.zeros(rows.y.shape), np.ones(rows.y.shape)
    judged = np.zeros(rows.y.shape, bool)
    for tile, found in left_out_tiles(ensemble, rows, groups, row_groups, tangents):
        mean[tile.span], stddev[tile.span], judged[tile.span] = found
    return mean, stddev, judged


def left_out_score(ensemble: Ensemble, rows: NetworkRows) -> float:
    """Compute the mean log density of rows of the fit, each left out, up to a constant.

    Rows of classes and counts are not left out. If a row's leverage is too large to be determined,
    the largest one that can be is used.
    """
    ensemble, scores = ensemble.for_averages, np.empty(len(rows.x))
    if not ensemble.spec.has_additive_noise:
        return mean_log_density(ensemble, rows)
    groups = group_chains(function_of_chains(ensemble))
    for tile, (mean, stddev, _) in left_out_tiles(ensemble, rows, groups):
        score = (rows.y[tile.span] - mean) / stddev
        scores[tile.span] = (-0.5 * score**2 - np.log(stddev)).sum(axis=1)
    return float(scores.mean())


def left_out_tiles(
    ensemble: Ensemble,
    rows: NetworkRows,
    groups: Array,
    row_groups: Array | None = None,
    tangents: Tangents | None = None,
) -> Iterator[tuple[TargetTile, tuple[Array, Array, Array]]]:
    """Iterate over the tiles of rows, each with its `left_out`.

    Args:
        ensemble: Ensemble of a regression, all of whose chains have a weight.
        rows, row_groups: As in `left_out_moments`; with groups, a tile is a group, or holds rows that are alone in
            theirs.
        groups: Group of each chain [C].
        tangents: Tangents of the fit, or None: leverage is that of the draws alone.
    """
    if ensemble.given is not None:
        indices = ensemble.given.indices_of(*rows)
        exact = exactly_left_out(ensemble, indices, row_groups)
        for tile in target_tiles(ensemble, rows):
            mean, stddev = (values[tile.span] for values in exact)
            yield tile, (mean, stddev, np.ones(mean.shape, bool))
        return
    if row_groups is not None and (alone := np.bincount(row_groups)[row_groups] == 1).any():
        for indices, own in (
            (np.flatnonzero(alone), None),
            (np.flatnonzero(~alone), row_groups[~alone]),
        ):
            parts = left_out_tiles(ensemble, rows.taken(indices), groups, own, tangents)
            for tile, found in parts if len(indices) else ():
                yield tile._replace(span=indices[tile.span]), found
        return
    weights, power = ensemble.chain_weights, ensemble.spec.likelihood_power
    tiles = target_tiles(ensemble, rows)
    if row_groups is not None:
        tiles = _group_tiles(ensemble, rows, row_groups)
    together = row_groups is not None
    leverage = None if together or tangents is None else tangents.leverage(rows)
    for tile in tiles:
        span, location, fitted, predicted, _ = tile
        target, tangent = rows.y[span], None if leverage is None else leverage[span]
        if together and tangents is not None:
            tangent = tangents.covariance(rows.taken(span))
        moments = target, location, fitted, weights, groups, power, predicted, together, tangent
        yield tile, left_out(*moments)


def _group_tiles(ensemble: Ensemble, rows: NetworkRows, row_groups: Array) -> Iterator[TargetTile]:
    """Iterate over groups of rows [N] as tiles, but not those of too many rows."""
    order = np.argsort(row_groups, kind="stable")
    _, first = np.unique(row_groups[order], return_index=True)
    for indices in np.split(order, first[1:]):
        if len(indices) <= MOST_LEFT_OUT_TOGETHER:
            tiles = target_tiles(ensemble, rows.taken(indices))
            parts = (np.broadcast_arrays(*tile[1:4]) for tile in tiles)
            yield TargetTile(indices, *(np.concatenate(part, axis=1) for part in zip(*parts)))


def require_moving_chains(
    ensemble: Ensemble, function: Array, groups: Array, num_rows: int, tangents: Tangents | None
) -> None:
    """Refuse draws whose variance is not that of the posterior, if it matters and `tangents` do not help.

    It does not matter with many rows per weight, as the leverages of all rows add up to no more
    than the number of parameters.
    """
    if ensemble.given is not None:  # each draw of infinite width is a whole posterior
        return
    if tangents is not None and tangents.has_all_weights:
        return
    if ensemble.mode is not None or num_rows >= _ROWS_PER_WEIGHT * ensemble.draws.shape[-1]:
        return
    # A function that no chain moved has no effective sample size, which counts as zero.
    sizes = [np.nan_to_num(bulk_ess(function[groups == group])) for group in np.unique(groups)]
    smallest = min(float(np.median(size)) for size in sizes)
    if smallest < _FEWEST_EFFECTIVE:
        raise ValueError(
            f"method='loo' needs {_FEWEST_EFFECTIVE} independent draws or more in each group of chains "
            f"that agree, these are worth {smallest:.2g}. Run longer chains, or use method='split'."
        )


def left_out(
    target: Array,
    location: Array,
    scale: Array,
    weights: Array,
    groups: Array,
    power: float = 1.0,
    predicted: Array | None = None,
    together: bool = False,
    tangent: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Predict rows without themselves: mean, standard deviation with noise, and whether they are known.

    All three are [n, K].

    A network with few rows per weight follows each row: the row's own residual is too small, and
    its own interval too wide. For a Gaussian posterior and Gaussian noise the row's leverage h, the
    variance of the function there over that of the noise, corrects both: residual / (1 - h),
    variance noise / (1 - h) (Rasmussen and Williams 2006, Gaussian Processes for Machine Learning,
    eq. 5.12). Chains that represent the same functions are pooled as one such posterior. Chains
    that do not keep apart if one row is left out: each group has a mode and a leverage of its own,
    and groups are mixed by their weights. With the likelihood to a power a row counts for that
    share of itself: h is as much smaller, and without the row the function has the variance
    (1 / power) h / (1 - h) noise.

    The variance of chains that have hardly moved is too small. The leverage of `Tangents` corrects
    their residuals. The variance remains that of the chains, as in predictions of new rows.

    Args:
        target: [n, K].
        location: Predictions of all draws, chain by chain [C * S, n, K].
        scale: Noise scales of their likelihood, broadcastable to `location`.
        weights: Weights of the chains [C]; each group has some.
        groups: Group of each chain [C].
        power: Power of the likelihood in the fit; default 1, the posterior.
        predicted: Noise scales of a prediction, if they differ; see `TargetTile`.
        together: Whether all rows are left out at once, and not each in turn. Leverage is then a
            matrix, and its largest eigenvalue decides whether the predictions are known.
        tangent: Least variance of the function over that of the noise [n, K], or covariances
            [K, n, n] if rows are left out together.
    """
    members = np.where(groups == np.unique(groups)[:, None], weights, 0.0)
    of_groups = members.sum(axis=1)
    members /= of_groups[:, None]
    shape = (len(weights), -1, *target.shape)
    of_chain = location.reshape(shape)
    means_of_chains = of_chain.mean(axis=1)
    noises = (
        np.broadcast_to(np.square(values), location.shape).reshape(shape).mean(axis=1)
        for values in (scale, scale if predicted is None else predicted)
    )
    means, within, noise, noise_of_new = (
        np.einsum("gc,cnk->gnk", members, values)
        for values in (means_of_chains, of_chain.var(axis=1), *noises)
    )
    if together:
        draw_weights = np.repeat(members / of_chain.shape[1], of_chain.shape[1], axis=1)
        residual, variance, judged = _without_all(
            target, location, means, noise, draw_weights, power, tangent
        )
    else:
        between = np.square(means_of_chains - means[np.unique(groups, return_inverse=True)[1]])
        variance = within + np.einsum("gc,cnk->gnk", members, between)
        with np.errstate(divide="ignore", invalid="ignore"):  # without noise no row is judged
            left = 1.0 - power * variance / noise
        without = left if tangent is None else np.minimum(left, 1.0 - power * tangent)
        judged = without.min(axis=0) >= 1.0 - _LARGEST_LEVERAGE
        left, without = (
            np.maximum(np.nan_to_num(shares), 1.0 - _LARGEST_LEVERAGE) for shares in (left, without)
        )
        residual, variance = (target - means) / without, noise * (1.0 - left) / (power * left)
    left_means = target - residual
    mean = np.einsum("g,gnk->nk", of_groups, left_means)
    around = noise_of_new + variance + np.square(left_means - mean)
    spread = np.einsum("g,gnk->nk", of_groups, around)
    return mean, np.sqrt(spread), judged


def _without_all(
    target: Array,
    location: Array,
    means: Array,
    noise: Array,
    weights: Array,
    power: float,
    tangent: Array | None,
) -> tuple[Array, Array, Array]:
    """Return residuals and variances [G, n, K] without all rows, and whether they are known [n, K].

    The variances are those of the function.

    Args:
        target, location: As in `left_out`.
        means, noise: Means and noise variances of each group of chains [G, n, K].
        weights: Weights of all draws in each group of chains [G, C * S].
        power: Power of the likelihood.
        tangent: As in `left_out`.
    """
    residual, variance = np.empty(means.shape), np.empty(means.shape)
    judged = np.ones(target.shape, bool)
    for group, target_number in np.ndindex(len(means), target.shape[1]):
        index = group, slice(None), target_number
        scale = np.sqrt(noise[index])
        with np.errstate(divide="ignore", invalid="ignore"):
            off = (location[..., target_number] - means[index]) / scale
            matrix = power * (off * weights[group][:, None]).T @ off
        if not np.isfinite(matrix).all():  # without noise no row is judged
            matrix, scale = np.eye(len(scale)), np.ones_like(scale)
        leverage, vectors = np.linalg.eigh(matrix)
        leverage = np.minimum(leverage, _LARGEST_EIGENVALUE)
        shares = leverage / (1.0 - leverage)
        variance[index] = np.square(scale[:, None] * vectors) @ shares / power
        if tangent is not None and power * np.trace(tangent[target_number]) > np.trace(matrix):
            matrix = power * tangent[target_number]
        leverage, vectors = np.linalg.eigh(matrix)
        judged[:, target_number] &= leverage[-1] <= _LARGEST_EIGENVALUE
        plain = (target[:, target_number] - means[index]) / scale @ vectors
        plain /= 1.0 - np.minimum(leverage, _LARGEST_EIGENVALUE)
        residual[index] = scale * (vectors @ plain)
    return residual, variance, judged
