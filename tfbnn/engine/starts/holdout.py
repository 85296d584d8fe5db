"""Score of chain starts on held-out rows, and a lower limit on their noise scales.

By log density, a start with many weights is the better the closer it fits its rows, and its noise
scale goes to zero with the residuals. Chains from such starts stay for thousands of transitions
where predictions are worse than those of a straight line. Held-out rows are not fitted and reveal
this.
"""

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import WeightedRows
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import compiled_log_likelihoods
from tfbnn.engine.starts.check import with_residual_noise
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

# Smallest noise scale, as a share of the residual scale of held-out rows. The rest may be misfit
# that more rows, or the average over many networks, would remove.
_LEAST_SHARE = 0.5
# Fewer held-out rows say too little; a larger share, possible with groups, leaves too few to fit.
_FEWEST_ROWS = 4
_LARGEST_SHARE = 0.5


class HoldoutScore:
    """Score of networks on held-out rows.

    Args:
        spec: NetworkSpec.
        rows: Held-out WeightedRows.
    """

    def __init__(self, spec: NetworkSpec, rows: WeightedRows) -> None:
        self.data = rows.data(spec.dtype)
        self._spec, self._rows = spec, self.data.cast("float64")
        self._log_likelihoods = compiled_log_likelihoods(Potential(spec))

    def score(self, theta: Array) -> float:
        """Compute the mean log likelihood per row at theta [P], with noise scales from these rows."""
        theta = self.settled(np.asarray(theta, np.float64)[None])
        found = self._log_likelihoods(tf.constant(theta[None]), tf.constant(1), self._rows)
        value = float(found[0, 0])
        return value / self._rows.total_weight if np.isfinite(value) else -np.inf

    def settled(self, theta: Array) -> Array:
        """Return starts [C, P] with noise scales set from the residuals of these rows; keep the dtype."""
        rows = self._rows if theta.dtype == np.float64 else self.data
        return with_residual_noise(self._spec, theta, rows)

    def noise_floor(self, theta: Array) -> Array:
        """Return the smallest log noise scales [K] that these rows allow at a start theta [P]."""
        noise = self._spec.layout.log_noise_scale
        return self.settled(np.asarray(theta, np.float64)[None])[0, noise] + np.log(_LEAST_SHARE)


def split_rows(
    rows: WeightedRows, share: float, seed: int, groups: Array | None = None
) -> tuple[WeightedRows, WeightedRows | None]:
    """Split rows into (rows to fit, held-out rows); the latter are None if they would be too few.

    Args:
        rows: WeightedRows.
        share: Share of the rows that is held out, from 0 to below 1.
        seed: Seed of the run; equal seeds hold out the same rows.
        groups: Group number of each row [N], from 0, or None. Rows of a group stay together.
    """
    count = round(share * len(rows.x))
    if count < _FEWEST_ROWS:
        return rows, None
    generator = seeds.generator(seed, "held out", 0)
    if groups is None:
        order = generator.permutation(len(rows.x))
        held_out, fitted = np.sort(order[:count]), np.sort(order[count:])
    else:
        order = generator.permutation(groups.max() + 1)
        ends = np.cumsum(np.bincount(groups)[order])
        inside = np.isin(groups, order[: 1 + np.argmin(np.abs(ends - count))])
        held_out, fitted = np.flatnonzero(inside), np.flatnonzero(~inside)
        if len(held_out) > max(share, _LARGEST_SHARE) * len(groups):
            return rows, None
    return rows.taken(fitted), rows.taken(held_out)
