"""Fewer draws for about the same predictions, and what that changes."""

from dataclasses import replace
from typing import cast

import numpy as np

from tfbnn.posterior.compression.record import Change, Compression, Sizes
from tfbnn.posterior.compression.stein import posterior_scores, stein_thinning
from tfbnn.posterior.compression.thinning import kernel_thinning, prediction_kernel, stride
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import Summary, noise_tiles, predict
from tfbnn.spec.rows import Rows
from tfbnn.system.arrays import Array

METHODS = ("kernel_thinning", "stein", "stride")

# Draws up to which the matrix of the kernel is affordable: 128 MB.
_MAX_CANDIDATES = 4000
# One reference input out of so many is kept for the statement of the change.
_STATED_SHARE = 4
# Relative spread below which predictions are the same.
_ROUNDING = 1e-12
# One standard deviation below and above the median of a normal.
_QUANTILES = (0.16, 0.84)


def compress(
    ensemble: Ensemble,
    num_draws: int,
    method: str,
    *,
    x_reference: Array | None = None,
    rows: Rows | None = None,
    seed: int = 0,
) -> Ensemble:
    """Chooses draws of an ensemble.

    Args:
        ensemble: Ensemble; its chain weights count.
        num_draws: Draws to choose, at most as many as the chains with a weight have.
        method: One of METHODS.
        x_reference: Inputs [R, D], transformed, at which predictions are to be kept. The change is
            then stated at the reference inputs saved with the ensemble. Default: three quarters of
            those, and the change is stated at the others.
        rows: For "stein": checked Rows of the fit.
        seed: Of kernel thinning.

    Returns:
        Ensemble of one chain with the chosen draws; its provenance holds the Compression.

    Raises:
        ValueError: When there are not so many draws, when the ensemble has been compressed before,
            when predictions do not differ between draws or are not finite, when there are too few
            reference inputs to keep some for the statement, or when "stein" cannot be used.
    """
    _check(ensemble, num_draws, method)
    full = ensemble.weighted
    choosing, stating = _split(ensemble.x_pipeline.forward(ensemble.x_reference), x_reference)
    candidates = np.arange(full.num_draws)
    if method == "stride":
        chosen = stride(full.draw_weights, num_draws)
    elif method == "kernel_thinning":
        weights = full.draw_weights
        if full.num_draws > _MAX_CANDIDATES:
            candidates = stride(weights, _MAX_CANDIDATES)
            weights = np.full(_MAX_CANDIDATES, 1.0 / _MAX_CANDIDATES)
        gram = prediction_kernel(_compared(_only(full, candidates), choosing), weights)
        chosen = candidates[kernel_thinning(gram, weights, num_draws, seed)]
    elif rows is None:
        raise ValueError("method='stein' needs the rows of the fit.")
    else:
        theta = full.draws.reshape(full.num_draws, -1).astype(np.float64)
        chosen = stein_thinning(theta, posterior_scores(ensemble, theta, rows), num_draws)
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


def _check(ensemble: Ensemble, num_draws: int, method: str) -> None:
    if ensemble.is_compressed:
        raise ValueError(
            "This model is compressed already, so that a statement of the change would leave out "
            "the first one. Compress the model that it came from."
        )
    available = ensemble.weighted.num_draws
    if num_draws > available:
        raise ValueError(
            f"num_draws must be at most {available}, the draws of chains with a weight, received "
            f"num_draws={num_draws}."
        )
    if method == "kernel_thinning" and num_draws > _MAX_CANDIDATES:
        raise ValueError(
            f"method='kernel_thinning' chooses at most {_MAX_CANDIDATES} draws, received "
            f"num_draws={num_draws}. Use method='stride' for that many."
        )


def _split(saved: Array, x_reference: Array | None) -> tuple[Array, Array]:
    """(inputs to choose at, inputs to state the change at): they must not be the same.

    The change at the inputs that the draws were chosen at is up to half of that elsewhere.
    """
    if x_reference is not None:
        return x_reference, saved
    if len(saved) < _STATED_SHARE:
        raise ValueError(
            f"The model was saved with {len(saved)} reference inputs only, too few to choose draws "
            "at some and to state the change at others. Pass x_reference."
        )
    stated = np.arange(len(saved)) % _STATED_SHARE == _STATED_SHARE - 1
    return saved[~stated], saved[stated]


def measure_change(before: Ensemble, after: Ensemble, x: Array) -> Change:
    """How far the predictions of two ensembles are apart, noise-free, in original units.

    Args:
        before, after: Ensembles of one model.
        x: Inputs [R, D], transformed.

    Returns:
        Change. num_rows: R. mean_stddev: relative change of the standard deviation averaged over
        the inputs, with its sign, of the output where it is largest. mean, stddev, quantiles:
        dicts with the average and the largest absolute change over inputs and outputs, of the mean
        and the 16 and 84 % quantiles in units of the standard deviation before, of the standard
        deviation relative to it.

    Raises:
        ValueError: When no standard deviation is positive and finite.
    """
    wanted = Summary(quantiles=_QUANTILES)
    old, new = (predict(ensemble, x, wanted) for ensemble in (before, after))
    # Rounding leaves some spread where all draws are the same.
    usable = np.isfinite(old.stddev) & (old.stddev > _ROUNDING * np.abs(old.mean))
    if not usable.any():
        raise ValueError(
            "The predictions at the reference inputs are infinite or the same for all draws, so "
            "that their change has no scale. Pass other x_reference."
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
    """What is to be kept [N, columns]: transformed predictions, and log noise scales that vary."""
    parts: list[Array] = []
    for _, location, scale in noise_tiles(ensemble, x):
        parts.append(location)
        if scale is not None and np.ndim(scale) == location.ndim:
            parts.append(np.log(scale))
    columns = np.concatenate(parts, axis=1).reshape(ensemble.num_draws, -1)
    if not np.isfinite(columns).all():
        raise ValueError(
            "Some predictions at the reference inputs are not finite. Pass x_reference nearer to "
            "the training rows, or use method='stride'."
        )
    return columns


def _only(ensemble: Ensemble, chosen: Array) -> Ensemble:
    """The chosen draws as one chain; statistics of the sampler go with them."""

    def pick(values: Array) -> Array:
        return values.reshape(ensemble.num_draws, *values.shape[2:])[chosen][None]

    few = ensemble.picked(pick)
    return replace(few, readouts=None, basins=None).with_chain_weights(np.ones(1))


def _sizes(changes: Array) -> Sizes:
    return {"average": float(np.mean(np.abs(changes))), "largest": float(np.max(np.abs(changes)))}
