"""Compression of an ensemble to a few draws with about the same predictions, and its change."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import Summary, output_tiles, predict
from tfbnn.posterior.provenance import Change, Compression, Sizes
from tfbnn.system.arrays import Array
from tfbnn.system.words import required

METHODS = ("kernel_thinning", "stride")

# Most draws for which the matrix of the kernel is affordable: 128 MB.
_MAX_CANDIDATES = 4000
# One in this many reference inputs is kept to measure the change.
_STATED_SHARE = 4
# Relative spread below which predictions count as equal.
_ROUNDING = 1e-12
# One standard deviation below and above the median of a normal.
_QUANTILES = (0.16, 0.84)
# Weight of the squares in the kernel of predictions. Measured on cross sections at new inputs: more
# keeps standard deviations better where there are many reference inputs, and means worse.
_SQUARES = 0.1

# A swap has to lower the discrepancy by more than its rounding error.
_LEAST_GAIN = 1e-12


def compress(
    ensemble: Ensemble,
    num_draws: int,
    method: str,
    *,
    x_reference: Array | None = None,
) -> Ensemble:
    """Choose draws of an ensemble.

    Args:
        ensemble: Ensemble; its chain weights count.
        num_draws: Number of draws to choose, at most as many as the chains with a weight have.
        method: One of METHODS.
        x_reference: Inputs [R, D], transformed, at which predictions are to be kept. The change is
            then measured at the reference inputs saved with the ensemble. Default: three quarters
            of those, and the change is measured at the others.

    Returns:
        Ensemble of one chain with the chosen draws; its provenance holds the Compression.

    Raises:
        ValueError: If there are fewer draws, if the ensemble is already compressed, if predictions
            do not differ between draws or are not finite, and if there are too few reference inputs
            to keep some for the change.
    """
    if ensemble.is_compressed:
        raise ValueError("This model is compressed already. Compress the one that it came from.")
    full = ensemble.weighted
    most = full.num_draws if method == "stride" else min(full.num_draws, _MAX_CANDIDATES)
    if num_draws > most:
        raise ValueError(
            f"num_draws must be at most {most} of {full.num_draws} draws by {method}, received {num_draws}."
        )
    choosing, stating = _split(ensemble.x_pipeline.forward(ensemble.x_reference), x_reference)
    candidates, weights = np.arange(full.num_draws), full.draw_weights
    if method == "stride":
        chosen = stride(weights, num_draws)
    else:
        if full.num_draws > _MAX_CANDIDATES:
            candidates = stride(weights, _MAX_CANDIDATES)
            weights = np.full(_MAX_CANDIDATES, 1.0 / _MAX_CANDIDATES)
        gram = prediction_kernel(_compared(_only(full, candidates), choosing), weights)
        chosen = candidates[kernel_thinning(gram, weights, num_draws)]
    small = _only(full, chosen)
    used = np.flatnonzero(ensemble.chain_weights > 0)
    per_chain = np.bincount(used[chosen // full.num_results], minlength=ensemble.num_chains)
    record = Compression(
        method=method,
        num_draws=num_draws,
        num_distinct=len(np.unique(chosen)),
        num_available=full.num_draws,
        num_candidates=len(np.unique(candidates)),
        draws_per_chain=per_chain.tolist(),
        num_inputs=len(choosing),
        change=measure_change(full, small, stating),
    )
    # The run was not stopped early, it was compressed.
    provenance = small.provenance.stating(compression=record, num_results_requested=None)
    return replace(small, provenance=provenance)


def _split(saved: Array, x_reference: Array | None) -> tuple[Array, Array]:
    """Return the inputs to choose at, and other inputs to measure the change at.

    The change at the inputs that the draws were chosen at is up to half of that elsewhere. So saved
    inputs among those that are given either choose or measure.
    """
    measures = np.arange(len(saved)) % _STATED_SHARE == _STATED_SHARE - 1
    if x_reference is not None:
        given = {row.tobytes() for row in x_reference}
        is_apart = np.array([row.tobytes() not in given for row in saved], bool)
        if is_apart.sum() >= max(1, measures.sum()):
            return x_reference, saved[is_apart]
        kept = {row.tobytes() for row in saved[measures]}
        chooses = np.array([row.tobytes() not in kept for row in x_reference], bool)
        if kept and chooses.any():
            return x_reference[chooses], saved[measures]
    if len(saved) < _STATED_SHARE:
        raise ValueError(
            f"The model was saved with {len(saved)} reference inputs only, too few. Pass x_reference."
        )
    return saved[~measures], saved[measures]


def measure_change(before: Ensemble, after: Ensemble, x: Array) -> Change:
    """Measure the change of noise-free predictions between two ensembles, in original units.

    Args:
        before, after: Ensembles of one model.
        x: Inputs [R, D], transformed.

    Returns:
        Change. num_rows: R. mean_stddev: relative change of the standard deviation averaged over
        the inputs, with its sign, for the output with the largest one. mean, stddev, quantiles:
        dicts with the average and the largest absolute change over inputs and outputs. The mean and
        the 16 and 84 % quantiles are in units of the standard deviation before, and the standard
        deviation is relative to it.

    Raises:
        ValueError: If no standard deviation is positive and finite.
    """
    wanted = Summary(quantiles=_QUANTILES)
    old, new = (predict(ensemble, x, wanted) for ensemble in (before, after))
    # Rounding leaves some spread where all draws are the same.
    usable = np.isfinite(old.stddev) & (old.stddev > _ROUNDING * np.abs(old.mean))
    if not usable.any():
        raise ValueError(
            "Predictions of all draws are infinite, or the same. Pass other x_reference."
        )
    spread = old.stddev[usable]
    ratios = [
        new.stddev[rows, column].sum() / old.stddev[rows, column].sum() - 1.0
        for column, rows in enumerate(usable.T)
        if rows.any()
    ]
    before_quantiles, after_quantiles = (cast(Array, one.quantiles) for one in (old, new))
    return {
        "num_rows": len(x),
        "mean_stddev": float(max(ratios, key=abs)),
        "mean": _sizes((new.mean - old.mean)[usable] / spread),
        "stddev": _sizes(new.stddev[usable] / spread - 1.0),
        "quantiles": _sizes((after_quantiles - before_quantiles)[:, usable] / spread),
    }


def _compared(ensemble: Ensemble, x: Array) -> Array:
    """Return the quantities to keep [N, columns]: transformed predictions, log noise scales that vary."""
    parts: list[Array] = []
    likelihood = ensemble.spec.likelihood
    for _, outputs in output_tiles(ensemble, x):
        location = likelihood.location(outputs)
        scale = likelihood.scale(outputs, ensemble.log_noise_scale, None)
        parts.append(location)
        if scale is not None and np.ndim(scale) == location.ndim:
            parts.append(np.log(scale))
    columns = np.concatenate(parts, axis=1).reshape(ensemble.num_draws, -1)
    if not np.isfinite(columns).all():
        raise ValueError(
            "Some predictions are not finite. Pass x_reference nearer to the training rows."
        )
    return columns


def _only(ensemble: Ensemble, chosen: Array) -> Ensemble:
    """Return the chosen draws as one chain, with their statistics of the sampler."""

    def pick(values: Array) -> Array:
        return values.reshape(ensemble.num_draws, *values.shape[2:])[chosen][None]

    few = ensemble.picked(pick)
    return replace(few, readouts=None, basins=None).with_chain_weights(np.ones(1))


def _sizes(changes: Array) -> Sizes:
    return {"average": float(np.mean(np.abs(changes))), "largest": float(np.max(np.abs(changes)))}


def stride(weights: Array, count: int) -> Array:
    """Choose equally spaced draws, by weight: systematic sampling without a random start.

    Args:
        weights: Weights of the draws [N], adding up to 1.
        count: Number of draws to choose.

    Returns:
        Draws [count], ascending; with equal weights all different for count <= N.
    """
    levels = (np.arange(count) + 0.5) / count
    # A level between two draws belongs to the earlier one, whichever way the sum was rounded.
    return np.searchsorted(np.cumsum(weights) * (1.0 + 1e-9), levels).clip(max=len(weights) - 1)


def prediction_kernel(columns: Array, weights: Array) -> Array:
    """Compute the Gram matrix [N, N] of a kernel that compares the distributions of every column.

    The kernel of one column, standardised under the weights, is k(u, v) = (|u| + |v| - |u - v|) / 2
    + 0.1 u^2 v^2. It is averaged over columns. The discrepancy that the first part measures between
    two sets of draws is half their energy distance (Sejdinovic et al. 2013), the integral of the
    squared difference of the distribution functions. It keeps means and quantiles, has no length
    scale, and far outliers cannot dominate it. The second part is the squared difference of the
    variances.

    Args:
        columns: Finite values [N, M].
        weights: [N], adding up to 1.

    Raises:
        ImportError: If SciPy is not installed.
        ValueError: If all draws are the same in every column.
    """
    spatial = required("scipy.spatial.distance", "compress needs SciPy", "fit")
    columns = columns[:, np.ptp(columns, axis=0) > 0]
    if not columns.size:
        raise ValueError(
            "All draws predict the same, so there is nothing to choose by. Pass other x_reference."
        )
    centred = columns - weights @ columns
    standardised = centred / np.sqrt(weights @ np.square(centred))
    size = np.abs(standardised).sum(axis=1)
    distance = spatial.squareform(spatial.pdist(standardised, "cityblock"))
    squares = np.square(standardised)
    products = squares @ squares.T
    return (0.5 * (size[:, None] + size - distance) + _SQUARES * products) / len(squares.T)


def kernel_thinning(gram: Array, weights: Array, count: int) -> Array:
    """Choose draws whose kernel mean is close to that of all draws.

    The draws of `stride` are exchanged one after the other for those that lower the discrepancy
    most, until no exchange helps: KT-SWAP of Dwivedi and Mackey 2024, arXiv:2105.05842. Their
    halving step in front of it ends at the same discrepancy, within a few per cent either way.

    Args:
        gram: Kernel between all draws [N, N].
        weights: Weights of the draws in the distribution to be kept [N], adding up to 1.
        count: Number of draws to choose, at most N.

    Returns:
        Draws [count], ascending.
    """
    chosen, target = stride(weights, count), gram @ weights
    half_diagonal = 0.5 * np.diag(gram)
    total = gram[chosen].sum(axis=0)
    improved = True
    while improved:
        improved = False
        for index, old in enumerate(chosen):
            total -= gram[old]
            # Half the discrepancy times count, as far as it depends on the new draw.
            cost = (total + half_diagonal) / count - target
            new = int(np.argmin(cost))
            if cost[new] < cost[old] - _LEAST_GAIN:
                chosen[index], improved = new, True
            total += gram[chosen[index]]
    return np.sort(chosen)
