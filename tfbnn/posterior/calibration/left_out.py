"""Predict rows of the fit as if they had been left out, by their leverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tfbnn.diagnostics.statistics import bulk_ess
from tfbnn.posterior.averages import log_mean_exp
from tfbnn.posterior.basins.evidence import group_chains
from tfbnn.posterior.calibration.misfit_features import (
    MOST_FEATURES,
    misfit_features,
    misfit_networks,
    num_features,
    row_blocks,
    single_networks,
)
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import TargetTile, function_of_chains, target_tiles
from tfbnn.posterior.process_predictions import exactly_left_out
from tfbnn.spec.model_spec import ModelSpec, perceptron
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array
from tfbnn.system.threads import on_all_cores

# Rows whose variance of the function is more than this of that of the noise decide their own
# prediction, and nothing is known of them without themselves.
_LARGEST_LEVERAGE = 0.9
# Rows that are left out together move the posterior further. Weights of draws that leave them out have
# this eigenvalue for their Pareto k, of a Gaussian posterior, and tell nothing above it (Vehtari et
# al. 2024, arXiv:1507.02646).
_LARGEST_EIGENVALUE = 0.7
# A variance out of n independent draws is too small by 1 / n of it, on average; with so many rows per
# weight leverage is at most a tenth on average, however small it seems to be.
_FEWEST_EFFECTIVE, _ROWS_PER_WEIGHT = 10, 10
# With more rows per weight leverage is at most a hundredth on average: not worth the time of `Tangents`.
_MOST_ROWS_PER_FEATURE = 100
_ROUNDING = 1e-12
# Rows that are left out together take matrices of so many rows and columns; more of them are not judged.
_MOST_TOGETHER = 2000
# Share of the rows of which something has to be known: fewer are no sample of all.
FEWEST_JUDGED = 0.5
# What reports call them.
LEFT_OUT = "rows of the fit, each left out"


@dataclass(frozen=True)
class Tangents:
    """Leverage of rows by the derivatives of a few networks of an ensemble in their weights.

    Chains that have hardly moved vary less than the posterior does. What derivatives say does not
    depend on how far chains went: with features Phi [P, N], divided by the noise scale of their row, the
    variance of the function over that of the noise is the diagonal of
    Phi^T (power Phi Phi^T + 1)^-1 Phi in the Gauss-Newton approximation (Immer, Korzepa and Bauer 2021,
    AISTATS, arXiv:2008.08400). It is less where there are too many weights for all to count.

    Attributes:
        networks: Each as an ensemble of its own.
        whitening: Of each network, what makes features independent of each other [M, P, P].
        has_all_weights: Whether derivatives are those in all weights.
    """

    networks: list[Ensemble]
    whitening: Array
    has_all_weights: bool

    @classmethod
    def of(cls, ensemble: Ensemble, rows: NetworkRows) -> Tangents | None:
        """Return those of an ensemble and all rows of its fit; None where there are none or they tell nothing."""
        spec = ensemble.spec
        if not spec.has_additive_noise or not isinstance(spec, ModelSpec):
            return None
        is_exact = ensemble.mode is not None or ensemble.given is not None
        # The posterior that is a prior decides more than a penalty of one does.
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
            # One is the prior's in ntk; next to no noise makes it less than rounding.
            precision += max(1.0, _ROUNDING * float(precision.max())) * np.eye(count)
            whitening[number] = np.linalg.inv(np.linalg.cholesky(precision))

        on_all_cores(find, range(len(networks)))
        has_all = hidden + of_readout * spec.num_outputs == spec.layout.num_weights
        return cls(networks, whitening, has_all)

    def leverage(self, rows: NetworkRows) -> Array:
        """Return the variance of the function over that of the noise at rows of the fit [n, K]."""
        blocks = [rows.taken(block) for block in row_blocks(len(rows.x))]
        found = [
            self._mean(block, lambda white: np.square(white).sum(axis=0)).T for block in blocks
        ]
        return np.concatenate(found)

    def covariance(self, rows: NetworkRows) -> Array:
        """Return the covariances of the function between rows of the fit, noise taken for unit [K, n, n]."""
        return self._mean(rows, lambda white: white.T @ white)

    def _mean(self, rows: NetworkRows, function: Callable[[Array], Array]) -> Array:
        each = zip(self.networks, self.whitening)
        return np.mean(
            [[function(one @ of) for of in _scaled(network, rows)] for network, one in each], axis=0
        )


def _scaled(network: Ensemble, rows: NetworkRows) -> list[Array]:
    """Return derivatives of one network in its weights over the noise scales of rows: per target [P, n].

    The weights of all readouts come first.
    """
    noise: Array = np.empty(rows.y.shape)
    for tile in target_tiles(network, rows):
        noise[tile.place] = np.broadcast_to(tile.fitted, tile.location.shape).squeeze(axis=0)
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
    """Return `left_out` of rows of the fit of an ensemble.

    Args:
        ensemble: Ensemble of a regression.
        rows: The rows.
        row_groups: Which of them are left out together [N], numbered from 0; None: each by itself.

    Raises:
        ValueError: Where the draws do not tell the leverage of rows, and it may be large.
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
        mean[tile.place], stddev[tile.place], judged[tile.place] = found
    return mean, stddev, judged


def left_out_score(ensemble: Ensemble, rows: NetworkRows) -> float:
    """Return the mean log density of rows of the fit, each left out, up to a constant; of classes and counts, not left out.

    Where draws tell nothing of a row without itself its leverage counts as the largest that is known.
    """
    ensemble, scores = ensemble.for_averages, np.empty(len(rows.x))
    if not ensemble.spec.has_additive_noise:
        for tile in target_tiles(ensemble, rows):
            likelihood = ensemble.spec.likelihood
            densities = likelihood.log_density(rows.y[tile.place], tile.location, tile.fitted)
            scores[tile.place] = log_mean_exp(densities, ensemble.draw_weights)
        return float(scores.mean())
    groups = group_chains(function_of_chains(ensemble))
    for tile, (mean, stddev, _) in left_out_tiles(ensemble, rows, groups):
        score = (rows.y[tile.place] - mean) / stddev
        scores[tile.place] = (-0.5 * score**2 - np.log(stddev)).sum(axis=1)
    return float(scores.mean())


def halves(num_rows: int, labels: Array | None = None) -> Array:
    """Return the number of the half, 0 or 1, of each row [N]; rows of one label [N] are in the same half."""
    _, places = np.unique(np.arange(num_rows) if labels is None else labels, return_inverse=True)
    order: Array = np.random.default_rng(0).permutation(int(places.max(initial=-1)) + 1)
    return order[places] % 2


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
        rows, row_groups: As in `left_out_moments`; a tile is then a group of rows.
        groups: Number of the group of each chain [C].
        tangents: Tangents of the fit, or None: leverage is that of the draws alone.
    """
    if ensemble.given is not None:
        places = ensemble.given.places_of(rows.x, rows.y)
        exact = exactly_left_out(ensemble, places, row_groups)
        for tile in target_tiles(ensemble, rows):
            mean, stddev = (values[tile.place] for values in exact)
            yield tile, (mean, stddev, np.ones(mean.shape, bool))
        return
    weights, power = ensemble.chain_weights, ensemble.spec.likelihood_power
    tiles = target_tiles(ensemble, rows)
    if row_groups is not None:
        tiles = _group_tiles(ensemble, rows, row_groups)
    together = row_groups is not None
    leverage = None if together or tangents is None else tangents.leverage(rows)
    for tile in tiles:
        place, location, fitted, predicted, _ = tile
        target, tangent = rows.y[place], None if leverage is None else leverage[place]
        if together and tangents is not None:
            tangent = tangents.covariance(rows.taken(place))
        moments = target, location, fitted, weights, groups, power, predicted, together, tangent
        yield tile, left_out(*moments)


def _group_tiles(ensemble: Ensemble, rows: NetworkRows, row_groups: Array) -> Iterator[TargetTile]:
    """Iterate over groups of rows [N], but those of too many."""
    order = np.argsort(row_groups, kind="stable")
    _, first = np.unique(row_groups[order], return_index=True)
    for place in np.split(order, first[1:]):
        if len(place) <= _MOST_TOGETHER:
            tiles = target_tiles(ensemble, rows.taken(place))
            parts = (np.broadcast_arrays(*tile[1:4]) for tile in tiles)
            yield TargetTile(place, *(np.concatenate(part, axis=1) for part in zip(*parts)))


def require_moving_chains(
    ensemble: Ensemble, function: Array, groups: Array, num_rows: int, tangents: Tangents | None
) -> None:
    """Refuse draws whose variance is not that of the posterior, where it matters and nothing else tells.

    The leverages of all rows add up to no more than the number of parameters.
    """
    if tangents is not None and tangents.has_all_weights:
        return
    if ensemble.mode is not None or num_rows >= _ROWS_PER_WEIGHT * ensemble.draws.shape[-1]:
        return
    # Nothing is known of what no chain moved, which is next to none.
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
    """(Mean, standard deviation with noise, whether they can be told) of rows left out, [n, K] each.

    A network with few rows per weight follows each row: its own residual is too small, and its own
    interval too wide. For a Gaussian posterior and Gaussian noise the row's leverage h, the variance
    of the function there over that of the noise, takes both back: residual / (1 - h), variance
    noise / (1 - h) (Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, eq. 5.12).
    Chains that represent the same functions are taken together for such a posterior. Those that do
    not stay where they are whatever one row says: each group has a mode and a leverage of its own,
    and groups are mixed by their weights. With the likelihood to a power a row counts for that share
    of itself: h is as much smaller, and the function has the variance (1 / power) h / (1 - h) noise
    without the row.

    Chains that have hardly moved have a variance that is too small, and residuals that the leverage of
    `Tangents` takes back. The variance remains theirs, as it does in predictions of new rows.

    Args:
        target: [n, K].
        location: Predictions of all draws, chain by chain [C * S, n, K].
        scale: Noise scales of their likelihood, broadcastable to `location`.
        weights: Of the chains [C]; each group has some.
        groups: Number of the group of each chain [C].
        power: Of the likelihood, in the fit; default 1, the posterior.
        predicted: Noise scales of a prediction, where they are others; see `TargetTile`.
        together: Whether all rows are left out at once, and not each in turn: leverage is a matrix
            then, and its largest eigenvalue tells whether anything is known.
        tangent: Least variance of the function over that of the noise [n, K], or where rows are left out
            together covariances [K, n, n].
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
        between = np.square(means_of_chains - means[:, None])
        variance = within + np.einsum("gc,gcnk->gnk", members, between)
        with np.errstate(divide="ignore", invalid="ignore"):  # no noise, no row that can be told
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
    """(Residuals, variances of the function [G, n, K], whether they can be told [n, K]) without all rows.

    Args:
        target, location: As in `left_out`.
        means, noise: Of each group of chains [G, n, K].
        weights: Of all draws in each group of chains [G, C * S].
        power: Of the likelihood.
        tangent: As in `left_out`.
    """
    residual, variance = np.empty(means.shape), np.empty(means.shape)
    judged = np.ones(target.shape, bool)
    for group, target_number in np.ndindex(len(means), target.shape[1]):
        place = group, slice(None), target_number
        scale = np.sqrt(noise[place])
        with np.errstate(divide="ignore", invalid="ignore"):
            off = (location[..., target_number] - means[place]) / scale
            matrix = power * (off * weights[group][:, None]).T @ off
        if not np.isfinite(matrix).all():  # no noise, no row that can be told
            matrix, scale = np.eye(len(scale)), np.ones_like(scale)
        leverage, vectors = np.linalg.eigh(matrix)
        leverage = np.minimum(leverage, _LARGEST_EIGENVALUE)
        shares = leverage / (1.0 - leverage)
        variance[place] = np.square(scale[:, None] * vectors) @ shares / power
        if tangent is not None and power * np.trace(tangent[target_number]) > np.trace(matrix):
            matrix = power * tangent[target_number]
        leverage, vectors = np.linalg.eigh(matrix)
        judged[:, target_number] &= leverage[-1] <= _LARGEST_EIGENVALUE
        plain = (target[:, target_number] - means[place]) / scale @ vectors
        plain /= 1.0 - np.minimum(leverage, _LARGEST_EIGENVALUE)
        residual[place] = scale * (vectors @ plain)
    return residual, variance, judged
