"""Limits that chains must keep before their draws can be used for error bars.

The limits 1.01 for R-hat and 400 for the effective sample sizes are those of Vehtari, Gelman,
Simpson, Carpenter and Burkner (2021), arXiv:1903.08008. Among the many reference outputs one in
twenty may have a larger R-hat, up to 1.03: with 200 of them some exceed 1.01 by chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.diagnostics import statistics
from tfbnn.diagnostics.diagnosis import defined, upper
from tfbnn.system.arrays import Array

RHAT_LIMIT = 1.01
ESS_LIMIT = 400
GAP_LIMIT = 1 / 3
_FEW = 0.05


class Agreement(NamedTuple):
    """Numbers that measure the agreement of chains; undefined ones are NaN.

    Attributes:
        rhat, bulk_ess, tail_ess: R-hat and effective sample sizes of the function values
            [N_ref, K].
        rhat_log_prob: R-hat of the log density.
    """

    rhat: Array
    bulk_ess: Array
    tail_ess: Array
    rhat_log_prob: float

    @classmethod
    def measure(
        cls, function_draws: Array, log_probs: ArrayLike, superchains: Array | None = None
    ) -> Agreement:
        """Compute the numbers for function values [C, S, N_ref, K] and log densities [C, S].

        See `statistics.rhat` for superchains.
        """
        return cls(
            statistics.rhat(function_draws, superchains),
            statistics.bulk_ess(function_draws),
            statistics.tail_ess(function_draws),
            float(statistics.rhat(log_probs, superchains)),
        )

    @property
    def smallest_ess(self) -> float:
        """The smallest bulk or tail ESS, infinite if none is defined."""
        sizes = np.concatenate([self.bulk_ess, self.tail_ess], axis=None)
        return float(np.min(defined(sizes), initial=np.inf))

    def are_unlike(self, rhat: float = RHAT_LIMIT) -> bool:
        """Return whether R-hat shows that chains disagree on the function."""
        return are_many(self.rhat > rhat) or upper(self.rhat)["max"] > largest_rhat(rhat)

    def differ_in_density(self, rhat: float = RHAT_LIMIT) -> bool:
        """Return whether R-hat shows that chains disagree on the log density."""
        return self.rhat_log_prob > largest_rhat(rhat)

    def is_enough(self, ess: float = ESS_LIMIT, rhat: float = RHAT_LIMIT) -> bool:
        """Return whether all numbers are defined and keep these limits.

        Means that are apart show in an R-hat above 1.01. A larger limit accepts such means, too.
        """
        return not (
            np.isnan(self.rhat).any()
            or self.are_unlike(rhat)
            or self.smallest_ess < ess
            or self.differ_in_density(rhat)
        )

    def decisive_rhat(self, rhat: float = RHAT_LIMIT) -> float:
        """Return the R-hat that decides: that of 95 % of the outputs, or the largest if it is too large."""
        found = upper(self.rhat)
        return float(found["q95"] if found["max"] <= largest_rhat(rhat) else found["max"])

    def text(self, rhat: float = RHAT_LIMIT) -> str:
        """Return the numbers that decide, such as "ESS 412 and R-hat 1.006", and other failures."""
        size, found = self.smallest_ess, self.decisive_rhat(rhat)
        ess = f"ESS {size:.0f}" if np.isfinite(size) else "an ESS that is not defined"
        parts = [f"{ess} and R-hat {found:.4g}" if np.isfinite(found) else f"{ess}, nor an R-hat"]
        if self.differ_in_density(rhat):
            parts.append(f"R-hat {self.rhat_log_prob:.4g} of the log density")
        return ", ".join(parts)


def largest_rhat(rhat: float = RHAT_LIMIT) -> float:
    """Return the limit for all reference outputs, if 95 % of them have to keep `rhat`."""
    return 1.0 + 3.0 * (rhat - 1.0)


def are_many(exceed: Array) -> bool:
    """Return whether more than one in twenty of the reference outputs exceed a limit."""
    return float(np.mean(exceed)) > _FEW


def mean_gaps(function_draws: Array) -> Array:
    """Compute the range of the chains' means over the standard deviation of all draws [N_ref, K].

    A single chain is split into halves. The result is NaN if the draws are constant, not finite or
    too few.
    """
    if function_draws.shape[1] < 2:
        return np.full(function_draws.shape[2:], np.nan)
    if len(function_draws) == 1:
        half = function_draws.shape[1] // 2
        function_draws = np.stack([function_draws[0, :half], function_draws[0, -half:]])
    with np.errstate(all="ignore"):
        means, stddev = function_draws.mean(axis=1), function_draws.std(axis=(0, 1))
        return np.where(stddev > 0, np.ptp(means, axis=0) / stddev, np.nan)
