"""Finds `Basins`: groups chains by their functions, and weighs the groups by their evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tfbnn.diagnostics.statistics import rhat
from tfbnn.posterior.basins.evidence import FEWEST_DRAWS, Evidence, Target, log_evidence
from tfbnn.posterior.basins.grouping import group_chains
from tfbnn.posterior.basins.record import Basins
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import function_of_chains
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows
from tfbnn.spec.symmetries import aligned
from tfbnn.system.arrays import Array

# A Gauss-Newton matrix and its factors take some 8 P^2 bytes each: 0.5 GB at this P.
MOST_PARAMETERS = 8000
_NETWORKS_AT_ONCE = 64


def basins_of(ensemble: Ensemble, rows: NetworkRows) -> Basins:
    """The Basins of the chains of an ensemble.

    Args:
        ensemble: Ensemble of a run.
        rows: All rows of the fit on the scale the network sees.

    Raises:
        ValueError: As `find_basins`.
    """
    function = function_of_chains(ensemble)
    target = RowsTarget(ensemble.spec, rows)
    return find_basins(ensemble.draws, function, target, ensemble.chain_weights)


def find_basins(
    draws: Array, function: Array, target: Target, chain_weights: Array | None = None
) -> Basins:
    """The Basins of chains.

    Args:
        draws: [C, S, P].
        function: What they are compared by, at reference inputs [C, S, N_ref, K].
        target: Target.
        chain_weights: [C], by default equal ones.

    Raises:
        ValueError: For fewer than eight draws per chain; with several basins for too many parameters,
            and where the Gauss-Newton matrix has no factor.
    """
    if draws.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"basins needs at least {FEWEST_DRAWS} draws per chain, received {draws.shape[1]}."
        )
    labels = group_chains(function)
    groups = [np.flatnonzero(labels == group) for group in range(labels.max() + 1)]
    found = [Evidence(0.0, 0.0, False)]
    if len(groups) > 1:
        if draws.shape[2] > MOST_PARAMETERS:
            raise ValueError(
                f"basins weighs the {len(groups)} groups of chains by P x P matrices, for at most "
                f"{MOST_PARAMETERS} parameters, this model has {draws.shape[2]}. Use narrower layers."
            )
        found = [log_evidence(target, list(draws[group])) for group in groups]
    order = np.argsort([-one.value for one in found], kind="stable")
    values, errors, bridged = zip(*(found[group] for group in order))
    return Basins(
        labels=np.argsort(order, kind="stable")[labels],
        log_evidence=np.array(values),
        log_evidence_stderr=np.array(errors),
        is_bridged=np.array(bridged),
        rhat_within=np.stack([rhat(function[groups[group]]) for group in order]),
        chain_weights=np.full(len(draws), 1 / len(draws))
        if chain_weights is None
        else chain_weights,
    )


class RowsTarget:
    """The density of a model given rows, in float64: at nearly no noise float32 errs by whole units."""

    def __init__(self, spec: NetworkSpec, rows: NetworkRows) -> None:
        self._spec, self._rows = replace(spec, dtype="float64"), rows

    def log_prob(self, theta: Array) -> Array:
        from tfbnn.engine.density.value_and_gradient import log_prob_terms

        parts = []
        for start in range(0, len(theta), _NETWORKS_AT_ONCE):
            # Always as many, or the density would be traced anew for each number.
            part = theta[start : start + _NETWORKS_AT_ONCE]
            full = np.resize(part, (_NETWORKS_AT_ONCE, theta.shape[1]))
            terms = log_prob_terms(self._spec, full, *self._rows)
            parts.append((terms["log_prior"] + terms["log_likelihood"])[: len(part)])
        result = np.concatenate(parts)
        return np.where(np.isnan(result), -np.inf, result)

    def factor(self, theta: Array) -> Array:
        if self._spec.gauss_newton_obstacle is not None:
            raise ValueError(
                f"basins needs the derivatives of every row's outputs: {self._spec.gauss_newton_obstacle}. "
                "Weigh chains by held-out rows: model.stack_chains."
            )
        from tfbnn.engine.density.data import make_data
        from tfbnn.engine.density.laplace import factor_at

        factor = factor_at(self._spec, theta, make_data(*self._rows, "float64"))
        if factor is None:
            raise ValueError(
                "basins needs a Gauss-Newton matrix that is finite and positive definite at a draw of "
                "every chain. Use a prior with curvature, such as Normal."
            )
        return factor

    def aligned(self, theta: Array, reference: Array) -> tuple[Array, Array]:
        return aligned(self._spec, theta, reference)
