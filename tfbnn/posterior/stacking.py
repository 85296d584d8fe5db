"""Stacking: weights of the chains that predict held-out rows best as a mixture.

Chains that do not mix stay in modes of their own, and how many chains found a mode says nothing
about its posterior mass. Stacking weighs chains by how well the mixture of their predictive
densities scores on rows that were held out. The result is a good predictive distribution; it is
not the posterior, and every report says so.

Reference:
    Yao, Vehtari and Gelman (2022), "Stacking for non-mixing Bayesian computations: the curse and
    blessing of multimodal posteriors", JMLR 23(79), arXiv:2006.12335.
    Vehtari, Gelman and Gabry (2017), "Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC", arXiv:1507.04544.
    Vehtari, Simpson, Gelman, Yao and Gabry (2024), "Pareto smoothed importance sampling",
    arXiv:1507.02646.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tfbnn.posterior.averages import log_mean_exp, log_sum_exp
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import noise_tiles
from tfbnn.posterior.provenance import WeightsOrigin
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array
from tfbnn.system.words import required, warn

ON_VALIDATION_ROWS = "stacking on validation rows"
BY_PSIS_LOO = "stacking by PSIS-LOO"

# Share of unreliable leave-one-out densities from which on a warning is due.
_UNRELIABLE_SHARE = 0.05
# Weights closer than this to each other are equal.
_UNIFORM = 1e-9
# Log likelihoods [S, n] -> (log densities [n], Pareto k [n]).
LeaveOneOut = Callable[[Array], tuple[Array, Array]]

# Above it the smoothed estimate is unreliable, whatever the number of draws (Vehtari et al. 2024).
PARETO_K_LIMIT = 0.7
# Guaranteed distance of the mean log score from its maximum, in nats per row.
_TOLERANCE = 1e-8
# Weights below this are noise of the solver; they are dropped if the guarantee still holds.
_NEGLIGIBLE = 1e-6
# The barrier gives way by this factor at a time; Newton's method follows in a few steps.
_FACTOR = 10.0
_MAX_NEWTON_STEPS = 100
_NEWTON_DECREMENT = 1e-4


@dataclass(frozen=True, eq=False)
class Stacking:
    """What `BayesianMLP.stack_chains` found; the weights define a mixture, not the posterior.

    Attributes:
        weights: [C] weights of the chains, adding up to 1.
        method: "stacking on validation rows" or "stacking by PSIS-LOO".
        log_score_uniform: Mean per row of the log density of the held-out rows under the mixture
            of all chains with equal weights, in transformed space.
        log_score_stacked: The same under `weights`, which were fitted to these very rows.
        num_rows: Held-out rows n; groups of them where those of a fit are left out together.
        pareto_k: [C, n] Pareto k of the leave-one-out densities, or None for validation rows.
    """

    weights: Array
    method: str
    log_score_uniform: float
    log_score_stacked: float
    num_rows: int
    pareto_k: Array | None = None

    def __repr__(self) -> str:
        return f"<Stacking: weights {_weights_text(self.weights)}, {self.method}>"

    @property
    def unreliable_share(self) -> float:
        """Share of the leave-one-out densities with a Pareto k above 0.7; 0 without PSIS."""
        return 0.0 if self.pareto_k is None else float(np.mean(self.pareto_k > PARETO_K_LIMIT))

    def summary(self) -> str:
        """Returns the weights and scores in a few aligned lines."""
        lines = [
            ("method", f"{self.method}, {self.num_rows} rows; this is not the posterior"),
            ("weights", _weights_text(self.weights)),
            (
                "log score",
                f"{self.log_score_stacked:.4f} stacked, {self.log_score_uniform:.4f} with equal "
                "weights (mean per row, transformed)",
            ),
        ]
        if self.pareto_k is not None:
            share = f"{100 * self.unreliable_share:.1f} %"
            lines.append(("Pareto k", f"above {PARETO_K_LIMIT} for {share}"))
        return "\n".join(f"{label:<13}{text}" for label, text in lines)

    def provenance(self) -> WeightsOrigin:
        """The record that the posterior keeps of how its weights came about."""
        return WeightsOrigin(
            self.method, self.num_rows, self.log_score_uniform, self.log_score_stacked
        )


def stack(
    ensemble: Ensemble,
    rows: NetworkRows,
    *,
    leave_one_out: bool = False,
    row_groups: Array | None = None,
) -> Stacking:
    """Finds the stacking weights of the chains of an ensemble.

    Args:
        ensemble: Ensemble; its present chain weights play no role.
        rows: NetworkRows: held out from the fit, or the training rows for `leave_one_out`.
        leave_one_out: Whether to leave out every row in turn by PSIS, which takes some tenths of
            a millisecond per chain and row.
        row_groups: Which of them are left out together [N], numbered from 0; None: each by itself.

    Returns:
        Stacking.

    Raises:
        ImportError: For `leave_one_out` without ArviZ.
        ValueError: When all chains give some row the density zero.

    Warns:
        UserWarning: When the Pareto k of more than 5 % of the leave-one-out densities exceeds 0.7.
    """
    if leave_one_out:
        densities, pareto_k = loo_log_densities(ensemble, rows, row_groups)
    else:
        densities, pareto_k = chain_log_densities(ensemble, rows), None
    weights = stacking_weights(densities)
    uniform = np.full_like(weights, 1.0 / len(weights))
    stacking = Stacking(
        weights=weights,
        method=BY_PSIS_LOO if leave_one_out else ON_VALIDATION_ROWS,
        log_score_uniform=float(np.mean(log_mean_exp(densities, uniform))),
        log_score_stacked=float(np.mean(log_mean_exp(densities, weights))),
        num_rows=densities.shape[1],
        pareto_k=pareto_k,
    )
    if stacking.unreliable_share > _UNRELIABLE_SHARE:
        warn(
            f"Pareto k is above {PARETO_K_LIMIT} for {100 * stacking.unreliable_share:.1f} % of "
            "the leave-one-out densities, which are unreliable then, and so are the weights. Pass "
            "stack_chains validation rows that the fit has not seen.",
        )
    return stacking


def chain_log_densities(ensemble: Ensemble, rows: NetworkRows) -> Array:
    """Log predictive density of every row under every chain by itself: [C, n].

    Each is the log of the mean over the chain's own draws of the joint density of all targets, in
    transformed space.

    Args:
        ensemble: Ensemble.
        rows: NetworkRows.
    """
    found = np.empty((ensemble.num_chains, len(rows.x)))
    equal = np.full(ensemble.num_results, 1.0 / ensemble.num_results)
    for part, log_likelihood in _log_likelihood_tiles(ensemble, rows):
        for chain, values in enumerate(log_likelihood):
            found[chain, part] = log_mean_exp(values, equal)
    return found


def loo_log_densities(
    ensemble: Ensemble, rows: NetworkRows, row_groups: Array | None = None
) -> tuple[Array, Array]:
    """As `chain_log_densities`, of rows that the fit has seen, each as if it had been left out.

    Args:
        ensemble: Ensemble.
        rows: NetworkRows of the training.
        row_groups: As in `stack`; a group is one row of n then, with the joint density of its rows.

    Returns:
        (log densities [C, n], Pareto k [C, n]).

    Raises:
        ImportError: When ArviZ is not installed.
    """
    leave_one_out = load_psis()
    if row_groups is not None:
        count = int(row_groups.max()) + 1
        together = np.zeros((ensemble.num_chains, ensemble.num_results, count))
        for part, log_likelihood in _log_likelihood_tiles(ensemble, rows):
            places: Any = (..., row_groups[part])
            np.add.at(together, places, log_likelihood)
        by_chain = [leave_one_out(values) for values in together]
        return np.array([one for one, _ in by_chain]), np.array([k for _, k in by_chain])
    found, pareto_k = np.empty((2, ensemble.num_chains, len(rows.x)))
    for part, log_likelihood in _log_likelihood_tiles(ensemble, rows):
        for chain, values in enumerate(log_likelihood):
            found[chain, part], pareto_k[chain, part] = leave_one_out(values)
    return found, pareto_k


def stacking_weights(log_densities: npt.ArrayLike) -> Array:
    """Simplex weights that maximise mean_i log(sum_c w_c exp(l_ci)) (Yao et al. 2022, section 2).

    Args:
        log_densities: l [C, n], held-out log predictive densities of C chains for n rows; -inf is
            a density of zero.

    Returns:
        Weights [C] float64, adding up to 1, within 1e-8 per row of the largest log score. Chains
        that are alike share their weight evenly.

    Raises:
        ValueError: For a wrong shape, NaN, +inf, or a row at which all chains have -inf.
    """
    values = np.asarray(log_densities, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(
            "log_densities must have shape [C, n] with at least one chain and row, received "
            f"{list(values.shape)}."
        )
    undefined = np.argwhere(np.isnan(values) | np.isposinf(values))
    if len(undefined):
        chain, row = undefined[0]
        raise ValueError(
            f"Log densities must be numbers or -inf, received {values[chain, row]} from chain "
            f"{chain} in row {row}. Look at the predictions of this chain there."
        )
    largest = values.max(axis=0)
    if np.isneginf(largest).any():
        raise ValueError(
            f"Every chain gives row {np.argmin(largest)} the density zero (log density -inf), so "
            "that no weights are better than others. Check this row, or leave it out."
        )
    # Relative to the best chain of a row, what underflows has a density below 1e-300 of the best
    # one, and the optimum gives the mixture at least 1 / n of that: it cannot matter.
    with np.errstate(under="ignore"):
        return max_log_mixture(np.exp(values - largest))


def weighting_note(ensemble: Ensemble) -> str | None:
    """One line on chains that are weighted unequally, for reports; None where they are not."""
    weights = ensemble.chain_weights
    if np.ptp(weights) < _UNIFORM:
        return None
    origin = ensemble.provenance.chain_weights
    how = "hand" if origin is None else origin.method
    return f"weighted by {how}, not the posterior: {_weights_text(weights)}"


def _log_likelihood_tiles(ensemble: Ensemble, rows: NetworkRows) -> Iterator[tuple[slice, Array]]:
    """Yields (slice of rows, log density of their targets under every draw [C, S, rows])."""
    for part, location, scale in noise_tiles(ensemble, rows.x, rows.noise):
        with np.errstate(over="ignore"):  # of a prediction that is off by 1e154 deviations
            values = ensemble.spec.likelihood.log_density(rows.y[part], location, scale)
        yield part, values.reshape(ensemble.num_chains, ensemble.num_results, -1)


def _weights_text(weights: Array) -> str:
    text = " ".join(f"{weight:.3f}" for weight in weights)
    idle = [str(chain) for chain in np.flatnonzero(weights == 0)]
    if idle:
        text += f"; none for chain{'s' if len(idle) > 1 else ''} {', '.join(idle)}"
    return text


def load_psis() -> LeaveOneOut:
    """Finds ArviZ, before any density is computed.

    Returns:
        Function: log likelihoods of the draws of one chain [S, n] -> (log density of every row
        when it is left out [n], Pareto k [n]). A row at which a draw has density zero gets -inf
        and infinite k. Draws count as independent; this only sets how many of them form the tail.

    Raises:
        ImportError: When ArviZ is not installed.
    """
    need = "stack_chains without validation rows needs ArviZ for PSIS-LOO"
    arviz = required("arviz", need, "arviz", "pass validation rows")
    return partial(_loo, arviz)


def _loo(arviz: Any, log_likelihood: Array) -> tuple[Array, Array]:
    num_rows = log_likelihood.shape[1]
    log_density, pareto_k = np.full(num_rows, -np.inf), np.full(num_rows, np.inf)
    rows = np.isfinite(log_likelihood).all(axis=0)
    if rows.any():
        found = log_likelihood[:, rows]
        log_weights, pareto_k[rows] = arviz.psislw(-found.T)
        log_density[rows] = log_sum_exp(log_weights.T + found)
    return log_density, pareto_k


def max_log_mixture(densities: Array) -> Array:
    """Maximises mean_i log(sum_c w_c p_ci) over the simplex.

    The problem is concave. Instead of the simplex, sum_c w_c is subtracted from the objective for
    w >= 0: its maximum has weights that add up to one by itself, since the logarithm of a scaled
    mixture is shifted. A logarithmic barrier keeps weights positive and is weakened step by step;
    every term is self-concordant, so that damped Newton steps stay inside and converge from any
    start (Boyd and Vandenberghe 2004, "Convex optimization", sections 9.6 and 11.5). There is no
    randomness; of many optima, as for chains that are alike, the barrier picks the most even.

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
    """How much the mean log mixture can still grow at most: max_c mean_i p_ci / mixture_i - 1.

    The gradient of the concave objective is g_c = mean_i p_ci / mixture_i, and w . g = 1, so that
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
    """Minimises strength * n * (sum w - mean log mixture) - sum log w, in units of the weights.

    In these units (dw = w du) the Hessian is the unit matrix plus that of the responsibilities,
    positive definite whatever the densities are.
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
