"""Networks of infinite width conditioned on the rows of a fit: a Gaussian process for each draw.

Given a draw theta, the function is a Gaussian process, conditioned on the rows of the fit in closed
form (Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, chapters 2 and 5). N
rows take N^3 / 3 products once for each draw, and N^2 for each point. NumPy alone is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tfbnn.spec.infinite_spec import InfiniteSpec, LayerVariances
from tfbnn.spec.limit_kernels import covariance
from tfbnn.system.arrays import Array, ReadOnlyArrays, keep_freed_memory, row_slices
from tfbnn.system.triangular import triangular_inverse, triangular_product

# Most draws in an average, each of which is a whole distribution, and most bytes of their matrices.
MOST_AVERAGED, _MOST_BYTES = 64, 2e9
# Points at a time: with fewer each takes longer, as the factor of a thousand rows leaves the cache.
_POINTS = 512


@dataclass(frozen=True, eq=False)
class GivenRows(ReadOnlyArrays):
    """The rows of a fit that predictions are conditioned on, on the scale that the network sees.

    Attributes:
        x: [N, D].
        y: [N, K].
        noise: Known standard deviations [N, K], or None.
    """

    x: Array
    y: Array
    noise: Array | None = None

    def taken(self, indices: Array) -> GivenRows:
        """Return the rows at these positions."""
        noise = None if self.noise is None else self.noise[indices]
        return GivenRows(self.x[indices], self.y[indices], noise)

    def indices_of(self, x: Array, y: Array, noise: Array | None) -> Array:
        """Return the positions of rows among these; equal rows have positions of their own.

        Raises:
            ValueError: If a row is not among them.
        """
        places: dict[tuple[bytes, ...], list[int]] = {}
        for index, key in enumerate(_keys(self.x, self.y, self.noise)):
            places.setdefault(key, []).append(index)
        found = []
        for key in _keys(x, y, noise):
            if key not in places:
                raise ValueError(
                    "Leaving out rows of a network of infinite width needs rows of its fit, received "
                    "others."
                )
            copies = places[key]
            found.append(copies[0])
            copies.append(copies.pop(0))  # the next of these rows has the next position
        return np.array(found)


def _keys(x: Array, y: Array, noise: Array | None) -> Iterator[tuple[bytes, ...]]:
    parts = (x, y) if noise is None else (x, y, noise)
    return (tuple(part.tobytes() for part in row) for row in zip(*parts))


class Conditioned(NamedTuple):
    """A draw conditioned on the rows of the fit.

    Attributes:
        layers: LayerVariances of the draw.
        roots: For each target the inverse of the Cholesky factor L of the covariance, noise
            included [N, N].
        white: L^-1 y of each target [K, N].
    """

    layers: Sequence[LayerVariances]
    roots: list[Array]
    white: Array


def conditioned(spec: InfiniteSpec, theta: Array, given: GivenRows) -> Conditioned:
    """Condition a draw theta [P] on the rows."""
    keep_freed_memory()
    layers = spec.layer_variances(theta)
    prior = covariance(spec.activations, layers, given.x, given.x).c
    roots, white = [], np.empty((spec.num_targets, len(given.x)))
    scales = spec.noise_scales(theta[None], given.noise, len(given.x))[0]
    for target in range(spec.num_targets):
        noisy = prior.copy()
        noisy[np.diag_indices(len(noisy))] += scales[:, target] ** 2
        roots.append(triangular_inverse(np.linalg.cholesky(noisy)))
        white[target] = roots[-1] @ given.y[:, target]
    return Conditioned(layers, roots, white)


def moments(spec: InfiniteSpec, draw: Conditioned, given: GivenRows, x: Array) -> Array:
    """Compute means, then standard deviations, of the functions at transformed x [n, D]: [2 K, n]."""
    found = np.empty((2 * spec.num_targets, len(x)))
    for points in row_slices(len(x), _POINTS):
        prior = covariance(spec.activations, draw.layers, given.x, x[points])
        for target, root in enumerate(draw.roots):
            across = triangular_product(root, prior.c)
            found[target, points] = draw.white[target] @ across
            left = prior.b - np.einsum("ij,ij->j", across, across)
            found[spec.num_targets + target, points] = np.sqrt(np.maximum(left, 0.0))
    return found


def num_averaged(num_rows: int, num_targets: int) -> int:
    """Return the number of draws that averages are taken over, so that memory holds their matrices."""
    return max(1, min(MOST_AVERAGED, int(_MOST_BYTES / (8.0 * num_targets * num_rows**2 + 1.0))))
