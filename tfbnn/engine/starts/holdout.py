"""Held-out rows judge the starts of chains: how good they are, and how small their noise may be.

By log density a start with many weights is the better the closer it follows its rows, and its noise
scale goes to zero with the residuals: chains that begin there stay for thousands of transitions where
predictions are worse than a straight line's. Rows that took no part do not follow.
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

# A noise scale may be this share of what held-out rows show: the rest may be misfit that more rows,
# or the average over many networks, take away.
_LEAST_SHARE = 0.5
# Fewer held-out rows than these say too little; groups of rows may leave too few to fit.
_FEWEST_ROWS = 4
_LARGEST_SHARE = 0.5


class HoldoutScore:
    """Scores networks by held-out rows.

    Args:
        spec: NetworkSpec.
        rows: WeightedRows that are held out.
    """

    def __init__(self, spec: NetworkSpec, rows: WeightedRows) -> None:
        self.data = rows.data(spec.dtype)
        self._spec, self._rows = spec, self.data.cast("float64")
        self._log_likelihoods = compiled_log_likelihoods(Potential(spec))

    def score(self, theta: Array) -> float:
        """Return the mean log likelihood per row at theta [P], with the noise scale that these rows ask for."""
        theta = self.settled(np.asarray(theta, np.float64)[None])
        found = self._log_likelihoods(tf.constant(theta[None]), tf.constant(1), self._rows)
        value = float(found[0, 0])
        return value / self._rows.total_weight if np.isfinite(value) else -np.inf

    def settled(self, theta: Array) -> Array:
        """Return starts [C, P] with their noise scales at what these rows ask for, in their dtype."""
        rows = self._rows if theta.dtype == np.float64 else self.data
        return with_residual_noise(self._spec, theta, rows)

    def noise_floor(self, theta: Array) -> Array:
        """Return the smallest log noise scales [K] that the rows leave a start theta [P]."""
        noise = self._spec.layout.log_noise_scale
        return self.settled(np.asarray(theta, np.float64)[None])[0, noise] + np.log(_LEAST_SHARE)


def split_rows(
    rows: WeightedRows, share: float, seed: int, groups: Array | None = None
) -> tuple[WeightedRows, WeightedRows | None]:
    """Return (rows to fit, rows to judge by), None for the latter where they are too few.

    Args:
        rows: WeightedRows.
        share: How many of them are held out, from 0 to below 1.
        seed: Of the run; the same rows are held out whenever it is the same.
        groups: Which rows belong together [N], numbered from 0, and so are on one side; or None.
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
