"""The log evidence from the log likelihoods of a ladder of power posteriors, and its swaps.

At power t the ladder samples p(D | theta)^t p(theta) / Z_t, and log Z_1 = log p(D) is the integral of
the mean log likelihood over t from 0 to 1. Densities are normalised, logarithms natural.

References:
    Friel and Pettitt 2008, J. R. Stat. Soc. B 70, 589 (thermodynamic integration). Friel, Hurn and
    Wyse 2014, Stat. Comput. 24, 709 (its correction). Xie et al. 2011, Syst. Biol. 60, 150
    (stepping stones).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tfbnn.diagnostics.statistics import mcse_mean
from tfbnn.system.arrays import Array

_POOR_SWAPS = 0.1
_LARGE_ERROR = 1.0


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error; NaN where there are too few draws for one."""

    value: float
    stderr: float

    def __str__(self) -> str:
        return f"{self.value:.6g} +- {self.stderr:.2g}"


@dataclass(frozen=True)
class LogEvidence:
    """Two estimates of log p(D), pooled over chains, from the same draws.

    D are the targets as the network sees them, after `y_transform` and without its Jacobian.

    Attributes:
        thermodynamic: By the corrected trapezoid rule; the correction, a measure of the error of the
            rule, is added to the Monte Carlo error in quadrature.
        stepping_stone: By products of ratios of neighbouring rungs, without error from the ladder.
    """

    thermodynamic: Estimate
    stepping_stone: Estimate

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """Plain numbers for JSON, None for what is not finite."""
        return {
            name: {
                key: float(number) if np.isfinite(number) else None
                for key, number in vars(estimate).items()
            }
            for name, estimate in vars(self).items()
        }


@dataclass(frozen=True, eq=False)
class Ladder:
    """What a run says about its ladder.

    Attributes:
        temperatures: Powers of the likelihood [m], rising from 0 to 1.
        log_evidence: LogEvidence.
        swap_acceptance: Acceptance of swaps between neighbouring rungs [m - 1].
    """

    temperatures: tuple[float, ...]
    log_evidence: LogEvidence
    swap_acceptance: Array

    @classmethod
    def measure(cls, temperatures: tuple[float, ...], log_likelihood: Array) -> "Ladder":
        """Of log likelihoods [C, S, m]."""
        return cls(
            temperatures,
            log_evidence(temperatures, log_likelihood),
            swap_acceptance(temperatures, log_likelihood),
        )

    def notes(self) -> Iterator[str]:
        """Sentences on what is wrong with it and what to do."""
        worst = int(np.argmin(self.swap_acceptance))
        if self.swap_acceptance[worst] < _POOR_SWAPS:
            low, high = self.temperatures[worst : worst + 2]
            yield (
                f"Swaps between the rungs at t = {low:.3g} and {high:.3g} are accepted with "
                f"{self.swap_acceptance[worst]:.2g}, below {_POOR_SWAPS}: the ladder hardly passes "
                "states on there. Raise num_temperatures, or change power, to bring them closer."
            )
        if self.log_evidence.thermodynamic.stderr > _LARGE_ERROR:
            yield (
                "Thermodynamic integration is uncertain by "
                f"{self.log_evidence.thermodynamic.stderr:.2g}, because the mean log likelihood "
                "changes too fast from rung to rung (with a learned noise scale it may be infinite "
                "under the prior). Use the stepping stones, or raise num_temperatures."
            )


def log_evidence(temperatures: Sequence[float], log_likelihood: Array) -> LogEvidence:
    """LogEvidence of a ladder.

    The errors know of autocorrelation, of chains that disagree, and of draws that swaps correlate
    between rungs: each is the Monte Carlo error of one sum over the rungs per draw, to first order.

    Args:
        temperatures: Powers of the likelihood [m], rising from 0 to 1.
        log_likelihood: Draws at all rungs [C, S, m].
    """
    steps = np.diff(temperatures)
    return LogEvidence(
        _thermodynamic(steps, np.asarray(log_likelihood)),
        _stepping_stone(steps, np.asarray(log_likelihood)),
    )


def _thermodynamic(steps: Array, log_likelihood: Array) -> Estimate:
    """Trapezoid rule minus sum dt^2 (V_i+1 - V_i) / 12, V_i the variance at rung i."""
    mean_weights = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
    curvature = steps**2 / 12.0
    variance_weights = np.append(curvature, 0.0) - np.append(0.0, curvature)
    with np.errstate(invalid="ignore"):  # a log likelihood of minus infinity
        squares = (log_likelihood - log_likelihood.mean(axis=(0, 1))) ** 2
    # The mean of `terms` is the estimate: means of log likelihoods and of squared deviations.
    correction = squares @ variance_weights
    terms = log_likelihood @ mean_weights + correction
    stderr = np.hypot(mcse_mean(terms), correction.mean())
    return Estimate(float(terms.mean()), float(stderr))


def _stepping_stone(steps: Array, log_likelihood: Array) -> Estimate:
    """Sum over rungs of log E_t exp((t' - t) log likelihood), t' the next power."""
    logs = log_likelihood[..., :-1] * steps
    largest = logs.max(axis=(0, 1))
    ratios = np.exp(logs - largest)
    means = ratios.mean(axis=(0, 1))
    value = np.sum(largest + np.log(means))
    # d log(mean) = d mean / mean, summed over the rungs.
    stderr = mcse_mean(np.sum(ratios / means, axis=-1))
    return Estimate(float(value), float(stderr))


def swap_acceptance(temperatures: Sequence[float], log_likelihood: Array) -> Array:
    """Acceptance of swaps between neighbouring rungs, as the kept draws [C, S, m] expect it: [m - 1].

    Averages the acceptance probability over draws, which varies less than counting swaps.
    """
    gains = np.diff(log_likelihood, axis=-1) * -np.diff(temperatures)
    return np.asarray(np.exp(np.minimum(gains, 0.0)).mean(axis=(0, 1)))
