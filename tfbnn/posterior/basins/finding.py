"""The search for `Basins`: chains are grouped by their functions, and groups weighted by evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.diagnostics.statistics import rhat
from tfbnn.posterior.basins.basins import Basins
from tfbnn.posterior.basins.bridge import (
    FEWEST_DRAWS,
    Evidence,
    RowsTarget,
    group_chains,
    log_evidence,
)
from tfbnn.posterior.checks import rows_given_or_fitted
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import function_of_chains
from tfbnn.spec.rows import Rows, rows_of_chains
from tfbnn.system.arrays import Array

# A Gauss-Newton matrix and its factors take some 8 P^2 bytes each: 0.5 GB at this P.
MOST_PARAMETERS = 8000


def basins_of_model(
    ensemble: Ensemble,
    training_rows: Rows | None,
    x: ArrayLike | None,
    y: ArrayLike | None,
    noise_scale: ArrayLike | None,
) -> Basins:
    """Return the Basins of a model; other arguments and errors as in `SampledModel.basins`.

    Args:
        ensemble: Ensemble of the model.
        training_rows: Rows of the fit in this process, or None.
    """
    if ensemble.no_chains is not None:
        raise ValueError(f"basins needs chains, and this model has none. {ensemble.no_chains}.")
    rows = rows_given_or_fitted(ensemble, training_rows, x, y, noise_scale, "basins")
    function = function_of_chains(ensemble)
    seen = rows_of_chains(ensemble.spec, ensemble.transform(rows))
    target = RowsTarget(ensemble.spec, seen)
    found = find_basins(ensemble.draws, function, target)
    return replace(found, chain_weights=ensemble.chain_weights)


def find_basins(draws: Array, function: Array, target: RowsTarget) -> Basins:
    """Find the Basins of chains of equal weights.

    Args:
        draws: [C, S, P].
        function: Function values for comparing chains, at reference inputs [C, S, N_ref, K].
        target: The density of the model given its rows.

    Raises:
        ValueError: For fewer than eight draws per chain; with several basins for too many
            parameters, and if the Gauss-Newton matrix has no factor.
    """
    if draws.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"basins needs at least {FEWEST_DRAWS} draws per chain, received {draws.shape[1]}."
        )
    labels = group_chains(function)
    groups = [np.flatnonzero(labels == group) for group in range(labels.max() + 1)]
    found = [Evidence(0.0, 0.0)]
    if len(groups) > 1:
        if draws.shape[2] > MOST_PARAMETERS:
            raise ValueError(
                f"basins weighs the {len(groups)} groups of chains by P x P matrices, for at most "
                f"{MOST_PARAMETERS} parameters, this model has {draws.shape[2]}. Use narrower layers."
            )
        found = [log_evidence(target, list(draws[group])) for group in groups]
    order = np.argsort([-one.value for one in found], kind="stable")
    values, errors = zip(*(found[group] for group in order))
    return Basins(
        labels=np.argsort(order, kind="stable")[labels],
        log_evidence=np.array(values),
        log_evidence_stderr=np.array(errors),
        rhat_within=np.stack([rhat(function[groups[group]]) for group in order]),
        chain_weights=np.full(len(draws), 1 / len(draws)),
    )
