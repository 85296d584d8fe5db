"""`Misfit`: how far scores of the rows of the fit lie around each input, by what a network can change.

A row i becomes exact by delta_i = A^-1 phi_i r_i / h_i, the smallest change of the weights in the norm
of A, where phi_i are the derivatives of the network's output in its weights, A their Gauss-Newton
precision and h_i = phi_i' A^-1 phi_i the row's leverage: pointwise optimal parameter sets, POPS
(Swinburne and Perez 2025, Mach. Learn.: Sci. Technol., arXiv:2402.01810). At an input x it moves the
prediction by phi(x)' delta_i, far where the features of a badly fitted row are active. The mean over
rows of those squares grows with the leverage of x, which a posterior's standard deviation has in
it already; so it is divided by what it would be if all rows missed by one standard deviation:

    m(x)^2 = sum_i h_i (phi(x)' delta_i)^2 / sum_i h_i (phi(x)' delta_i / z_i)^2

with scores z_i in place of residuals, each of a row left out, and rows weighted by leverage, as those
with little of it would take absurd changes to become exact. What remains of the weights,
(phi(x)' A^-1 phi_i)^2 / h_i, is the squared correlation under the posterior of the function at x and at
the row, but for a factor of x. benchmarks/results/pops.md compares this with other forms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfbnn.system.arrays import Array, read_only

# Of the weight that all rows have together at a typical input: what the mean over all rows counts, so
# that nothing is divided by zero where no row is near.
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class Misfit:
    """Both sums as quadratic forms of the features of x, on common axes, per network and target.

    Attributes:
        directions: Columns are the axes: [M, K, P, P] in the dtype of the model, for M networks and P
            features. Squared components of features along them add up to the sum below, 1 at a
            typical input.
        squares: Mean squared scores along each axis [M, K, P], which weigh them in the sum above.
    """

    directions: Array
    squares: Array

    def __post_init__(self) -> None:
        for name in ("directions", "squares"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def mean_square(
        self, features: Array, network: int, target: int, own: tuple[Array, Array] | None = None
    ) -> Array:
        """Mean squared score around inputs [n], above 0.

        Args:
            features: Theirs of one network and target [P, n].
            network, target: Which.
            own: For rows of the fit, their own terms in the sums above and below [n], to be left out.
        """
        directions, squares = self.directions[network, target], self.squares[network, target]
        # In C order as in `with_ones`, and for the same reason.
        features = features.astype(directions.dtype, order="C")
        components = np.square(directions.T @ features).astype(np.float64)
        above, below = squares @ components, components.sum(axis=0)
        if own is not None:
            above, below = (
                np.maximum(sums - terms, 0.0) for sums, terms in zip((above, below), own)
            )
        usual = max(float(squares.mean()), np.finfo(np.float64).tiny)
        result: Array = (above + _LEAST_WEIGHT * usual) / (below + _LEAST_WEIGHT)
        return result
