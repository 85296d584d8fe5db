"""The log evidence as a product of ratios of normalisers of neighbouring rungs, its stones.

The ratio r = Z' / Z of two rungs is an average over the lower one, the forward stone, and one over the
average of the inverse over the upper one, the reverse stone. Each is carried by a few draws where
the rungs hardly overlap; the forward stone is then too low and the reverse stone too high. Bennett's
estimate takes draws of both rungs and solves

    mean of s(u - log r) over the lower rung = mean of s(log r - v) over the upper rung,

u and v the powers' difference times the log likelihood and s the logistic function. It is what
maximum likelihood makes of both samples (MBAR of two states), and its terms are bounded.

References:
    Xie et al. 2011, Syst. Biol. 60, 150 (stepping stones). Bennett 1976, J. Comput. Phys. 22, 245.
    Shirts and Chodera 2008, J. Chem. Phys. 129, 124105.
"""

from typing import NamedTuple

import numpy as np

from tfbnn.diagnostics.statistics import mcse_mean
from tfbnn.system.arrays import Array

# In nats, far below any error that a run can have.
_TOLERANCE = 1e-9
_MAX_ITERATIONS = 200
# Share of a stone's disagreement that counts as its error. With exact draws of linear models, 10 to
# 30 rungs and 100 to 1000 draws, the root mean square of error / stderr is .4 to 1.2 with it; 0 gives
# up to 3.3, 1 down to .3.
_DISAGREEMENT = 0.5
# Share of the variance of the chains' means that is added to the Monte Carlo variance, which knows of
# it already: where a rung moves slowly, runs are too short for their autocorrelation time. In 40 runs
# of four chains the root mean square of error / stderr is 1.1 with it, and 1.3 without.
_BETWEEN = 0.5


def stepping_stones(steps: Array, log_likelihood: Array) -> tuple[float, float]:
    """The log evidence and its standard error.

    The error has two parts. One is the Monte Carlo error, to first order, of a sum over all stones
    per draw: it knows of autocorrelation, of draws that swaps correlate between rungs, and of chains
    that disagree, whose spread is counted once more in part. The other is half of what each stone differs by from the nearer of its forward and
    its reverse stone, where it lies between them: too large a step between rungs shows there first.

    Args:
        steps: Differences of the powers [m - 1].
        log_likelihood: Draws at all rungs [C, S, m].

    Returns:
        (value, stderr); stderr NaN with fewer than four draws per chain, both where no draw of a
        rung has a likelihood above zero.
    """
    upwards, downwards = log_likelihood[..., :-1] * steps, -log_likelihood[..., 1:] * steps
    # A rung without likelihood, or one so far above the next that s is 1 for all draws.
    with np.errstate(invalid="ignore", divide="ignore"):
        forward, reverse = _log_mean_exp(upwards), -_log_mean_exp(downwards)
        level, terms = _bennett(upwards, downwards, 0.5 * (forward + reverse))
        gaps = np.minimum(level - forward, reverse - level)
    disagreement = _DISAGREEMENT * np.linalg.norm(np.maximum(gaps, 0.0))
    return float(level.sum()), float(np.hypot(_monte_carlo(terms.sum(axis=-1)), disagreement))


def _monte_carlo(terms: Array) -> float:
    """Standard error of the mean of terms [C, S]."""
    num_chains = len(terms)
    between = terms.mean(axis=1).var(ddof=1) / num_chains if num_chains > 1 else 0.0
    return float(np.sqrt(mcse_mean(terms) ** 2 + _BETWEEN * between))


def _bennett(upwards: Array, downwards: Array, level: Array) -> tuple[Array, Array]:
    """Bennett's estimates of all stones, by Newton's method between bounds.

    Args:
        upwards: u [C, S, m - 1].
        downwards: -v [C, S, m - 1].
        level: First values of log r [m - 1].

    Returns:
        (log r [m - 1], what each draw adds to its error, to first order [C, S, m - 1]).
    """
    low, high = np.full_like(level, -np.inf), np.full_like(level, np.inf)
    for _ in range(_MAX_ITERATIONS):
        lower, upper = _Side.at(upwards, level), _Side.at(downwards, -level)
        excess = lower.log_mean - upper.log_mean  # falls with the level, by `slope`
        slope = lower.slope + upper.slope
        low, high = np.where(excess > 0, level, low), np.where(excess > 0, high, level)
        ahead = level + np.divide(excess, slope, out=np.zeros_like(level), where=excess != 0)
        inside = (low <= ahead) & (ahead <= high)
        # A step that leaves the bounds goes past the finite one ahead, and the other is the level.
        new = np.where(inside, ahead, 0.5 * (low + high))
        if not np.any(np.abs(new - level) > _TOLERANCE):
            break
        level = new
    return level, (lower.weights - upper.weights) / slope


class _Side(NamedTuple):
    """One side of Bennett's equation.

    Attributes:
        log_mean: Log of the mean of s over the draws [m - 1].
        weights: s over its mean [C, S, m - 1].
        slope: Minus the derivative of `log_mean` by the level [m - 1].
    """

    log_mean: Array
    weights: Array
    slope: Array

    @classmethod
    def at(cls, gains: Array, level: Array) -> "_Side":
        # In logarithms: where rungs do not overlap, s underflows for all draws.
        logs = -np.logaddexp(0.0, level - gains)
        log_mean = _log_mean_exp(logs)
        weights = np.exp(logs - log_mean)
        return cls(log_mean, weights, np.mean(weights * -np.expm1(logs), axis=(0, 1)))


def _log_mean_exp(values: Array) -> Array:
    """Over all draws [C, S, ...] -> [...]."""
    largest = values.max(axis=(0, 1))
    return largest + np.log(np.mean(np.exp(values - largest), axis=(0, 1)))
