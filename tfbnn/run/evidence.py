"""Estimate the log evidence and swap rates from the log likelihoods of a ladder of power posteriors.

At power t the ladder samples p(D | theta)^t p(theta) / Z_t. The log evidence log Z_1 = log p(D) is the
integral of the mean log likelihood over t from 0 to 1. It is also the log of a product of ratios of
normalisers of neighbouring rungs, the stepping stones. Densities are normalised, logarithms natural.

The ratio r = Z' / Z of two rungs is the mean of exp(u) over the lower rung, the forward stone. It is
also one over the mean of exp(-v) over the upper rung, the reverse stone. If the rungs hardly overlap, a
few draws dominate each mean; the forward stone is then too low and the reverse stone too high. Bennett's
estimate uses draws of both rungs and solves

    mean of s(u - log r) over the lower rung = mean of s(log r - v) over the upper rung,

where u and v are the difference of the powers times the log likelihood, and s is the logistic function.
It is the maximum likelihood estimate from both samples (MBAR of two states), and its terms are bounded.

References:
    Friel and Pettitt 2008, J. R. Stat. Soc. B 70, 589 (thermodynamic integration). Friel, Hurn and
    Wyse 2014, Stat. Comput. 24, 709 (its correction). Hill 1975, Ann. Stat. 3, 1163 (the index of a
    tail). Xie et al. 2011, Syst. Biol. 60, 150 (stepping stones). Bennett 1976, J. Comput. Phys. 22,
    245. Shirts and Chodera 2008, J. Chem. Phys. 129, 124105.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
# Share of the variance of the chains' means that is added to the Monte Carlo variance, which already
# contains it. If a rung moves slowly, runs are too short to estimate their autocorrelation time. In 40
# runs of four chains the root mean square of error / stderr is 1.1 with it, and 1.3 without.
_BETWEEN = 0.5


def stepping_stones(steps: Array, log_likelihood: Array) -> tuple[float, float]:
    """Return the log evidence and its standard error, from Bennett's estimates of all stones.

    The error has two parts. One is the Monte Carlo error, to first order, of a sum over all stones per
    draw. It accounts for autocorrelation, for draws that swaps correlate between rungs, and for chains
    that disagree, whose spread is partly counted once more. The other part is half the distance of each
    stone from the nearer of its forward and its reverse stone, if it lies between them. This part shows
    first when rungs are too far apart.

    Args:
        steps: Differences of the powers [m - 1].
        log_likelihood: Draws at all rungs [C, S, m].

    Returns:
        (value, stderr). stderr is NaN with fewer than four draws per chain. Both are NaN if no draw of a
        rung has a likelihood above zero.
    """
    upwards, downwards = log_likelihood[..., :-1] * steps, -log_likelihood[..., 1:] * steps
    # Occurs for a rung without likelihood, or one so far above the next that s is 1 for all draws.
    with np.errstate(invalid="ignore", divide="ignore"):
        forward, reverse = _log_mean_exp(upwards), -_log_mean_exp(downwards)
        level, terms = _bennett(upwards, downwards, 0.5 * (forward + reverse))
        gaps = np.minimum(level - forward, reverse - level)
    disagreement = _DISAGREEMENT * np.linalg.norm(np.maximum(gaps, 0.0))
    return float(level.sum()), float(np.hypot(_monte_carlo(terms.sum(axis=-1)), disagreement))


def _monte_carlo(terms: Array) -> float:
    """Return the standard error of the mean of terms [C, S]."""
    num_chains = len(terms)
    between = terms.mean(axis=1).var(ddof=1) / num_chains if num_chains > 1 else 0.0
    return float(np.sqrt(mcse_mean(terms) ** 2 + _BETWEEN * between))


def _bennett(upwards: Array, downwards: Array, level: Array) -> tuple[Array, Array]:
    """Compute Bennett's estimates of all stones, by Newton's method between bounds.

    Args:
        upwards: u [C, S, m - 1].
        downwards: -v [C, S, m - 1].
        level: First values of log r [m - 1].

    Returns:
        (log r [m - 1], contribution of each draw to its error, to first order [C, S, m - 1]).
    """
    low, high = np.full_like(level, -np.inf), np.full_like(level, np.inf)
    for _ in range(_MAX_ITERATIONS):
        lower_mean, lower_weights, lower_slope = _side(upwards, level)
        upper_mean, upper_weights, upper_slope = _side(downwards, -level)
        excess = lower_mean - upper_mean  # decreases with the level at the rate `slope`
        slope = lower_slope + upper_slope
        low, high = np.where(excess > 0, level, low), np.where(excess > 0, high, level)
        ahead = level + np.divide(excess, slope, out=np.zeros_like(level), where=excess != 0)
        inside = (low <= ahead) & (ahead <= high)
        # A step outside the bounds is replaced by bisection: the bound ahead is finite, the other one is
        # the level.
        new = np.where(inside, ahead, 0.5 * (low + high))
        if not np.any(np.abs(new - level) > _TOLERANCE):
            break
        level = new
    return level, (lower_weights - upper_weights) / slope


def _side(gains: Array, level: Array) -> tuple[Array, Array, Array]:
    """Compute one side of Bennett's equation.

    Returns:
        (Log of the mean of s over the draws [m - 1], s over its mean [C, S, m - 1], minus the
        derivative of the former by the level [m - 1]).
    """
    # Computed in logarithms, because s underflows for all draws if rungs do not overlap.
    logs = -np.logaddexp(0.0, level - gains)
    log_mean = _log_mean_exp(logs)
    weights = np.exp(logs - log_mean)
    return log_mean, weights, np.mean(weights * -np.expm1(logs), axis=(0, 1))


def _log_mean_exp(values: Array) -> Array:
    """Return the log of the mean of exp(values) over all draws, [C, S, ...] -> [...]."""
    largest = values.max(axis=(0, 1))
    return largest + np.log(np.mean(np.exp(values - largest), axis=(0, 1)))


_POOR_SWAPS = 0.1
_LARGE_ERROR = 1.0
# A tail of this index or above has no mean.
_NO_MEAN = 1.0


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error. NaN if it is undefined, or has too few draws for an error."""

    value: float
    stderr: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "undefined"
        return f"{self.value:.6g} +- {self.stderr:.2g}"


@dataclass(frozen=True)
class LogEvidence:
    """Two estimates of log p(D) from the same draws, pooled over chains.

    D are the targets as the network sees them, after `y_transform` and without its Jacobian.

    Attributes:
        thermodynamic: Estimate by the corrected trapezoid rule. Its error combines in quadrature the Monte
            Carlo error and the difference from the stepping stones, which have no integration error. NaN if
            the log likelihood has no mean under the prior, as for a learned noise scale whose prior has
            density at zero, the default.
        stepping_stone: Estimate by ratios of neighbouring rungs, with forward and reverse stones combined.
            Its error includes their disagreement.
    """

    thermodynamic: Estimate
    stepping_stone: Estimate

    def __str__(self) -> str:
        return (
            f"{self.stepping_stone} by stepping stones, {self.thermodynamic} by thermodynamic "
            "integration"
        )

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """Return plain numbers for JSON, None for numbers that are not finite."""
        return {
            name: {
                key: float(number) if np.isfinite(number) else None
                for key, number in vars(estimate).items()
            }
            for name, estimate in vars(self).items()
        }


@dataclass(frozen=True, eq=False)
class Ladder:
    """Evidence and swaps of a ladder.

    Attributes:
        temperatures: Powers of the likelihood [m], rising from 0 to 1.
        log_evidence: LogEvidence.
        swap_acceptance: Acceptance of swaps between neighbouring rungs [m - 1].
    """

    temperatures: tuple[float, ...]
    log_evidence: LogEvidence
    swap_acceptance: Array

    @classmethod
    def measure(
        cls, temperatures: tuple[float, ...], log_likelihood: Array | None
    ) -> "Ladder | None":
        """Measure a ladder from log likelihoods [C, S, m]; return None without draws of a ladder."""
        if log_likelihood is None or not log_likelihood.size:
            return None
        return cls(
            temperatures,
            log_evidence(temperatures, log_likelihood),
            swap_acceptance(temperatures, log_likelihood),
        )

    def notes(self) -> Iterator[str]:
        """Yield sentences on problems of the ladder and their remedies."""
        worst = int(np.argmin(self.swap_acceptance))
        if self.swap_acceptance[worst] < _POOR_SWAPS:
            low, high = self.temperatures[worst : worst + 2]
            yield (
                f"Swaps between the rungs at t = {low:.3g} and {high:.3g} are accepted with "
                f"{self.swap_acceptance[worst]:.2g}, below {_POOR_SWAPS}: the ladder hardly passes "
                "states on there, and the evidence may be wrong by more than its error says. Raise "
                "num_temperatures, or change power, to bring them closer."
            )
        thermodynamic = self.log_evidence.thermodynamic
        if np.isnan(thermodynamic.value):
            yield (
                "Thermodynamic integration is undefined: the log likelihood has no mean under the "
                "prior, as where a noise scale is learned and its prior has density at zero. Use the "
                "stepping stones."
            )
        elif thermodynamic.stderr > _LARGE_ERROR:
            yield (
                f"Thermodynamic integration is uncertain by {thermodynamic.stderr:.2g}, because the "
                "mean log likelihood changes too fast from rung to rung. Use the stepping stones, or "
                "raise num_temperatures."
            )


def log_evidence(temperatures: Sequence[float], log_likelihood: Array) -> LogEvidence:
    """Estimate the LogEvidence of a ladder.

    The errors account for autocorrelation, for chains that disagree, and for draws that swaps correlate
    between rungs. Each is the Monte Carlo error of one sum over the rungs per draw, to first order.

    Args:
        temperatures: Powers of the likelihood [m], rising from 0 to 1.
        log_likelihood: Draws at all rungs [C, S, m].
    """
    steps, log_likelihood = np.diff(temperatures), np.asarray(log_likelihood)
    stones = Estimate(*stepping_stones(steps, log_likelihood))
    return LogEvidence(_thermodynamic(steps, log_likelihood, stones.value), stones)


def _thermodynamic(steps: Array, log_likelihood: Array, stones: float) -> Estimate:
    """Integrate by the trapezoid rule minus sum dt^2 (V_i+1 - V_i) / 12, V_i the variance at rung i."""
    if not _tail_index(-log_likelihood[..., 0]) < _NO_MEAN:
        return Estimate(np.nan, np.nan)
    mean_weights = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
    curvature = steps**2 / 12.0
    variance_weights = np.append(curvature, 0.0) - np.append(0.0, curvature)
    squares = (log_likelihood - log_likelihood.mean(axis=(0, 1))) ** 2
    # The mean of `terms` is the estimate: means of log likelihoods and of squared deviations.
    terms = log_likelihood @ mean_weights + squares @ variance_weights
    value = terms.mean()
    return Estimate(float(value), float(np.hypot(mcse_mean(terms), value - stones)))


def _tail_index(values: Array) -> float:
    """Return Hill's index of the upper tail, above the median: 1 / a if P(> v) falls as v^-a.

    It is 0 if the values are fewer than 40, or so many equal that the tail begins at the median: too
    few to tell. The mean exists below 1. For a linear model with a learned noise scale the index is
    above 1 in 95 % of samples of 40 draws. It is below 1 in 99 % if the scale is known, with 100 draws
    in all.
    """
    if not np.isfinite(values).all():
        return np.inf
    ordered = np.sort(values, axis=None) - np.median(values)
    count = int(np.ceil(min(0.2 * ordered.size, 3.0 * np.sqrt(ordered.size))))
    if ordered.size < 40 or ordered[-count - 1] == 0.0:
        return 0.0
    return float(np.mean(np.log(ordered[-count:] / ordered[-count - 1])))


def swap_acceptance(temperatures: Sequence[float], log_likelihood: Array) -> Array:
    """Estimate the acceptance of swaps between neighbouring rungs [m - 1] from the kept draws [C, S, m].

    The acceptance probability is averaged over draws, which varies less than counting swaps.
    """
    gains = np.diff(log_likelihood, axis=-1) * -np.diff(temperatures)
    return np.asarray(np.exp(np.minimum(gains, 0.0)).mean(axis=(0, 1)))
