"""The mass under a density of which there are draws, by another one of which there are, too."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfbnn.diagnostics.statistics import geyer_ess
from tfbnn.system.arrays import Array

# Fewer draws than these in the overlap of both densities tell no error, not even their own.
FEWEST_IN_OVERLAP = 20.0
_MOST_STEPS, _TOLERANCE = 1000, 1e-10


class Bridge(NamedTuple):
    """A log mass.

    Attributes:
        value: Natural logarithm.
        stderr: Its standard error.
        overlap: Effective number of draws in the overlap of the two densities, the smaller of both.
    """

    value: float
    stderr: float
    overlap: float

    @property
    def is_reliable(self) -> bool:
        """Whether value and standard error mean something."""
        is_finite = np.isfinite(self.value) and np.isfinite(self.stderr)
        return bool(is_finite and self.overlap >= FEWEST_IN_OVERLAP)


def bridge(of_target: Array, of_proposal: Array) -> Bridge:
    """The log mass under a target density, by draws of it and of a normalised proposal.

    The optimal bridge function of Meng and Wong 1996, Statistica Sinica 6, 831, found by iteration;
    the error is the relative mean square error of Fruehwirth-Schnatter 2004, Econometrics Journal 7,
    143, with the autocorrelation of the target's draws in it.

    Args:
        of_target: Log target less log proposal density at draws of the target [S], in their order.
        of_proposal: The same at independent draws of the proposal [M], minus infinity where the
            target is zero.
    """
    size = effective_size(of_target)
    share = size / (size + len(of_proposal))
    # Differences are taken from one place, or they would overflow.
    origin = float(np.median(of_target))
    target, proposal = of_target - origin, of_proposal - origin
    value = 0.0
    for _ in range(_MOST_STEPS):
        last = value
        above, below = _terms(target, proposal, value, share)
        value += _log_mean(above) - _log_mean(below)
        if not np.isfinite(value):
            return Bridge(np.nan, np.inf, 0.0)
        if abs(value - last) < _TOLERANCE:
            break
    # Their sizes do not matter, but the largest must not be rounded to zero.
    above, below = (np.exp(terms - terms.max()) for terms in _terms(target, proposal, value, share))
    error = _relative_variance(above) / len(above)
    error += _relative_variance(below) / effective_size(below)
    overlap = min(_weight(above), _weight(below) * size / len(below))
    return Bridge(origin + value, float(np.sqrt(error)), overlap)


def _terms(target: Array, proposal: Array, value: float, share: float) -> tuple[Array, Array]:
    """Logarithms of target over mixture at the proposal's draws, of proposal over it at the target's."""
    above = proposal - value - _log_mixture(proposal - value, share)
    return above, -_log_mixture(target - value, share)


def _log_mixture(ratio: Array, share: float) -> Array:
    """log(share r + 1 - share) of log r."""
    mixture: Array = np.logaddexp(np.log(share) + ratio, np.log1p(-share))
    return mixture


def _log_mean(logs: Array) -> float:
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))


def _relative_variance(values: Array) -> float:
    return float(values.var() / np.square(values.mean()))


def _weight(values: Array) -> float:
    """How many equal values have the same mean and variance of the mean."""
    return float(np.square(values.sum()) / np.square(values).sum())


def effective_size(values: Array) -> float:
    """Effective number of draws that a chain of numbers [S] stands for: 1 to S, 1 where it stands."""
    found = float(geyer_ess(values[None]))
    return float(np.clip(found, 1.0, len(values))) if np.isfinite(found) else 1.0
