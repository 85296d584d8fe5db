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
