"""Stacking: weights of the chains that predict held-out rows best as a mixture.

Chains that do not mix stay in modes of their own, and the number of chains in a mode says nothing
about its posterior mass. Stacking weights chains by how well the mixture of their predictive
densities scores on rows that were held out. The result is a good predictive distribution; it is
not the posterior, and every report says so.

Reference:
    Yao, Vehtari and Gelman (2022), "Stacking for non-mixing Bayesian computations: the curse and
    blessing of multimodal posteriors", JMLR 23(79), arXiv:2006.12335.
"""

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from tfbnn.posterior.averages import log_mean_exp
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import target_tiles
from tfbnn.posterior.provenance import WeightsOrigin
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array

ON_VALIDATION_ROWS = "stacking on validation rows"

# Weights closer to each other than this count as equal.
_UNIFORM = 1e-9
# Guaranteed distance of the mean log score from its maximum, in nats per row.
_TOLERANCE = 1e-8
# Weights below this are noise of the solver; they are dropped if the guarantee still holds.
_NEGLIGIBLE = 1e-6
# The barrier is weakened by this factor at a time; Newton's method follows in a few steps.
_FACTOR = 10.0
_MAX_NEWTON_STEPS = 100
_NEWTON_DECREMENT = 1e-4


@dataclass(frozen=True, eq=False, repr=False)
class Stacking(WeightsOrigin):
    """Result of `BayesianMLP.stack_chains`; the weights define a mixture, not the posterior.

    Attributes:
        method: "stacking on validation rows".
        num_rows: Held-out rows n.
        log_score_uniform: Mean per row of the log density of the held-out rows under the mixture
            of all chains with equal weights, in transformed space.
        log_score_stacked: The same under `weights`, which were fitted to these very rows.
        weights: [C] weights of the chains, adding up to 1.
    """

    weights: Array

    def __repr__(self) -> str:
        return f"<Stacking: weights {_weights_text(self.weights)}, {self.method}>"

    def summary(self) -> str:
        """Return the weights and scores in a few aligned lines."""
        lines = [
            ("method", f"{self.method}, {self.num_rows} rows; this is not the posterior"),
            ("weights", _weights_text(self.weights)),
            (
                "log score",
                f"{self.log_score_stacked:.4f} stacked, {self.log_score_uniform:.4f} with equal "
                "weights (mean per row, transformed)",
            ),
        ]
        return "\n".join(f"{label:<13}{text}" for label, text in lines)

    def provenance(self) -> WeightsOrigin:
        """Return the record of the weights that the posterior keeps."""
        return WeightsOrigin(**{one.name: getattr(self, one.name) for one in fields(WeightsOrigin)})


def stack(ensemble: Ensemble, rows: NetworkRows) -> Stacking:
    """Find the stacking weights of the chains of an ensemble.

    Args:
        ensemble: Ensemble; its present chain weights play no role.
        rows: NetworkRows, held out from the fit.

    Raises:
        ValueError: When all chains give some row the density zero.
    """
    if isinstance(ensemble.spec, InfiniteSpec):
        # Each draw is a whole posterior, and takes a factorisation.
        ensemble = ensemble.few
    densities = chain_log_densities(ensemble, rows)
    weights = stacking_weights(densities)
    uniform = np.full_like(weights, 1.0 / len(weights))
    return Stacking(
        weights=weights,
        method=ON_VALIDATION_ROWS,
        log_score_uniform=float(np.mean(log_mean_exp(densities, uniform))),
        log_score_stacked=float(np.mean(log_mean_exp(densities, weights))),
        num_rows=densities.shape[1],
    )


def chain_log_densities(ensemble: Ensemble, rows: NetworkRows) -> Array:
    """Compute the log predictive density of every row under every chain by itself: [C, n].

    Each is the log of the mean over the chain's own draws of the joint density of all targets, in
    transformed space.

    Args:
        ensemble: Ensemble.
        rows: NetworkRows.
    """
    found = np.empty((ensemble.num_chains, len(rows.x)))
    equal = np.full(ensemble.num_results, 1.0 / ensemble.num_results)
    for part, location, scale, *_ in target_tiles(ensemble, rows):
        with np.errstate(over="ignore"):  # a prediction may be off by 1e154 deviations
            values = ensemble.spec.likelihood.log_density(rows.y[part], location, scale)
        found[:, part] = [log_mean_exp(of_chain, equal) for of_chain in ensemble.by_chains(values)]
    return found


def stacking_weights(log_densities: npt.ArrayLike) -> Array:
    """Compute the simplex weights that maximise mean_i log(sum_c w_c exp(l_ci)).

    See Yao et al. 2022, section 2.

    Args:
        log_densities: l [C, n], held-out log predictive densities of C chains for n rows; -inf is
            a density of zero.

    Returns:
        Weights [C] float64, adding up to 1, within 1e-8 per row of the largest log score. Chains
        that are alike share their weight evenly.

    Raises:
        ValueError: For NaN, +inf, or a row at which all chains have -inf.
    """
    values = np.asarray(log_densities, dtype=np.float64)
    undefined = np.argwhere(np.isnan(values) | np.isposinf(values))
    if len(undefined):
        chain, row = undefined[0]
        raise ValueError(
            f"Log densities must be below inf, received {values[chain, row]} from chain {chain} in row {row}."
        )
    largest = values.max(axis=0)
    if np.isneginf(largest).any():
        raise ValueError(
            f"Every chain gives row {np.argmin(largest)} the density zero. Check this row, or leave it out."
        )
    # A density that underflows is below 1e-300 of that of the best chain of the row. The optimum
    # gives the mixture at least 1 / n of the latter, so that the former cannot matter.
    with np.errstate(under="ignore"):
        return max_log_mixture(np.exp(values - largest))


def weighting_note(ensemble: Ensemble) -> str | None:
    """Return a line on unequal weights of the chains for reports; None if they are equal."""
    weights = ensemble.chain_weights
    if np.ptp(weights) < _UNIFORM:
        return None
    origin = ensemble.provenance.chain_weights
    how = "hand" if origin is None else origin.method
    return f"weighted by {how}, not the posterior: {_weights_text(weights)}"


def _weights_text(weights: Array) -> str:
    return " ".join(f"{weight:.3f}" for weight in weights)


def max_log_mixture(densities: Array) -> Array:
    """Maximise mean_i log(sum_c w_c p_ci) over the simplex.

    The problem is concave. Instead of the simplex, sum_c w_c is subtracted from the objective for
    w >= 0. The maximum then has weights that add up to one by itself, since the logarithm of a
    scaled mixture is shifted. A logarithmic barrier keeps weights positive and is weakened step by
    step.
    Every term is self-concordant, so that damped Newton steps stay inside and converge from any
    start (Boyd and Vandenberghe 2004, "Convex optimization", sections 9.6 and 11.5). There is no
    randomness. Among several optima, as for chains that are alike, the barrier picks the most even
    one.

    Args:
        densities: p [C, n], non-negative, scaled such that the largest of every row is about one.

    Returns:
        Weights [C], adding up to one, at most 1e-8 per row below the maximum (`optimality_gap`).
    """
    num_chains, num_rows = densities.shape
    weights = np.full(num_chains, 1.0 / num_chains)
    strength, last = 1.0, 10.0 * num_chains / (num_rows * _TOLERANCE)
    while True:
        weights = _newton(weights, densities, strength)
        if strength >= last:
            break
        strength = min(_FACTOR * strength, last)
    weights = weights / weights.sum()
    kept = np.where(weights < _NEGLIGIBLE, 0.0, weights)
    kept /= kept.sum()
    return kept if optimality_gap(kept, densities) <= _TOLERANCE else weights


def optimality_gap(weights: Array, densities: Array) -> float:
    """Return an upper bound of what the mean log mixture can still gain.

    It is max_c mean_i p_ci / mixture_i - 1. The gradient of the concave objective is
    g_c = mean_i p_ci / mixture_i, and w . g = 1, so that
    no other point of the simplex is better by more than max_c g_c - 1. It is zero exactly where
    the Karush-Kuhn-Tucker conditions hold.

    Args:
        weights: [C], on the simplex.
        densities: [C, n], non-negative.

    Returns:
        Float, non-negative up to rounding, infinite where a mixture is zero.
    """
    mixture = weights @ densities
    if not mixture.all():
        return np.inf
    return float(np.mean(densities / mixture, axis=1).max() - 1.0)


def _newton(weights: Array, densities: Array, strength: float) -> Array:
    """Minimise strength * n * (sum w - mean log mixture) - sum log w, in units of the weights.

    In these units (dw = w du) the Hessian is the unit matrix plus that of the responsibilities,
    which is positive definite for any densities.
    """
    num_rows = densities.shape[1]
    for _ in range(_MAX_NEWTON_STEPS):
        shares = weights[:, None] * densities
        shares /= shares.sum(axis=0)  # responsibilities of the chains for every row
        gradient = strength * (num_rows * weights - shares.sum(axis=1)) - 1.0
        hessian = np.eye(len(weights)) + strength * (shares @ shares.T)
        direction = np.linalg.solve(hessian, -gradient)
        decrement = np.sqrt(max(-gradient @ direction, 0.0))
        step = 1.0 if decrement < 0.25 else 1.0 / (1.0 + decrement)
        weights = weights * (1.0 + step * direction)
        if decrement < _NEWTON_DECREMENT:
            break
    return weights
