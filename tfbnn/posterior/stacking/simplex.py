"""Weights on the simplex that maximise the mean logarithm of a mixture."""

import numpy as np

from tfbnn.system.arrays import Array

# Guaranteed distance of the mean log score from its maximum, in nats per row.
_TOLERANCE = 1e-8
# Weights below this are noise of the solver; they are dropped if the guarantee still holds.
_NEGLIGIBLE = 1e-6
# The barrier gives way by this factor at a time; Newton's method follows in a few steps.
_FACTOR = 10.0
_MAX_NEWTON_STEPS = 100
_NEWTON_DECREMENT = 1e-4


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
