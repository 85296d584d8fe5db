"""Leave-one-out densities by Pareto-smoothed importance sampling (PSIS), through ArviZ.

References:
    Vehtari, Gelman and Gabry (2017), "Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC", arXiv:1507.04544.
    Vehtari, Simpson, Gelman, Yao and Gabry (2024), "Pareto smoothed importance sampling",
    arXiv:1507.02646.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tfbnn.posterior.averages import log_sum_exp
from tfbnn.system.arrays import Array
from tfbnn.system.extras import required

# Log likelihoods [S, n] -> (log densities [n], Pareto k [n]).
LeaveOneOut = Callable[[Array], tuple[Array, Array]]

# Above it the smoothed estimate is unreliable, whatever the number of draws (Vehtari et al. 2024).
PARETO_K_LIMIT = 0.7


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
    if int(arviz.__version__.split(".")[0]) >= 1:
        from arviz_stats.base import array_stats

        return partial(_finite_rows, partial(_loo_by_row, array_stats))
    return partial(_finite_rows, partial(_loo, arviz))


def _finite_rows(leave_one_out: LeaveOneOut, log_likelihood: Array) -> tuple[Array, Array]:
    """Applies a function to the rows at which it is defined."""
    num_rows = log_likelihood.shape[1]
    log_density, pareto_k = np.full(num_rows, -np.inf), np.full(num_rows, np.inf)
    rows = np.isfinite(log_likelihood).all(axis=0)
    if rows.any():
        log_density[rows], pareto_k[rows] = leave_one_out(log_likelihood[:, rows])
    return log_density, pareto_k


def _loo(arviz: Any, log_likelihood: Array) -> tuple[Array, Array]:
    """ArviZ 0.x: all rows at once."""
    log_weights, pareto_k = arviz.psislw(-log_likelihood.T)
    return log_sum_exp(log_weights.T + log_likelihood), pareto_k


def _loo_by_row(array_stats: Any, log_likelihood: Array) -> tuple[Array, Array]:
    """ArviZ 1.x: row by row, because it refuses rows without a tail to fit."""
    log_density, pareto_k = np.transpose([_loo_row(array_stats, row) for row in log_likelihood.T])
    return log_density, pareto_k


def _loo_row(array_stats: Any, row: Array) -> tuple[float, float]:
    try:
        log_density, pareto_k, _ = array_stats.loo(row[None], chain_axis=0, draw_axis=1)
    except ValueError:  # fewer than five draws in the tail, or draws that are all alike
        return np.log(len(row)) - log_sum_exp(-row), np.inf
    return float(log_density), float(pareto_k)
