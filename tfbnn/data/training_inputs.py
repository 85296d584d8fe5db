"""Range of the training inputs, and trust levels of new inputs relative to it.

The levels are GAMBIT's trust levels: fine, questionable, do not trust. They judge only the inputs,
on the scale the network sees, and make no statement about the error there. If the data have holes
or lie on a curved surface, more is "inside" than is covered.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from tfbnn.system.arrays import Array, by_rows, row_slices

INSIDE, EDGE, OUTSIDE = 1, 0, -1

# How far beyond the training data the edge reaches, as a share of each input's range and of the
# largest distance. A network still interpolates a little past its last row; 10 % is convention.
MARGIN = 0.1
# With more inputs, a D x D matrix would be larger than the draws.
MAX_COVARIANCE_INPUTS = 1000

# Quantiles of the training distances that are kept: 99 % and the largest.
_LEVELS = (0.99, 1.0)
# Least variance of a direction, relative to the mean variance, for inputs that depend on others.
_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, eq=False)
class TrainingInputs:
    """Range, mean, covariance and distances of the training inputs on the scale the network sees.

    Attributes:
        low, high: Smallest and largest value of each input [D].
        mean: Mean of each input [D].
        covariance: Mean product of deviations from the mean [D, D]; for more than 1000 inputs only
            the variances [D, 1].
        distances: The 99 % quantile and the largest `distance` of the training inputs [2]. Both are
            multiplied by a factor for new rows (`_growth_of_new_rows`), unless only variances are kept.
    """

    low: Array
    high: Array
    mean: Array
    covariance: Array
    distances: Array

    def distance(self, x: Array) -> Array:
        """Compute the Mahalanobis distance from the mean of the training inputs: x [N, D] -> [N].

        Some directions hardly vary, because inputs depend on each other. They count as if the
        variance (of inputs scaled to variance 1) was 1e-6 there. Constant inputs do not count; the
        check of their range covers them.
        """
        return _distance(self.mean, self._whitening, x)

    @property
    def whitening_matrix(self) -> Array:
        """Matrix [D, D] that maps a deviation from the mean to a vector as long as `distance`."""
        scales, matrix = self._whitening
        return np.diag(scales) if matrix is None else (scales[:, None] * matrix).T

    @cached_property
    def _whitening(self) -> tuple[Array, Array | None]:
        return _whitening_factors(self.covariance)


def summarise_inputs(x: Array, weights: Array | None = None) -> TrainingInputs:
    """Summarise the transformed training inputs.

    Args:
        x: Inputs [N, D] on the scale the network sees; of many rows they may be float32.
        weights: Number of rows that each row stands for [N]; default one.

    Returns:
        TrainingInputs.

    Raises:
        ValueError: For numbers so large that their covariance overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if weights is None:
            mean = x.mean(axis=0, dtype=np.float64)
        else:
            mean = np.average(x, axis=0, weights=weights)
        low, high = (end.astype(np.float64) for end in (x.min(axis=0), x.max(axis=0)))
        mean = np.where(low == high, low, mean)  # rounding would give a constant input a variance
        products = [
            _products(x[rows] - mean, None if weights is None else weights[rows])
            for rows in row_slices(len(x))
        ]
        covariance: Array = sum(products[1:], products[0])
        num_rows = len(x) if weights is None else weights.sum()
        covariance /= num_rows
    if not np.isfinite(covariance).all():
        raise ValueError(
            "x is so large that its covariance overflows, received values up to "
            f"{np.abs(x).max():.3g} after its transform. Use x_transform='standardize'."
        )
    distances = by_rows(partial(_distance, mean, _whitening_factors(covariance)), x)
    growth = 1.0
    if covariance.shape[0] == covariance.shape[1]:
        squares = float(distances @ (distances if weights is None else weights * distances))
        growth = _growth_of_new_rows(round(squares / num_rows), num_rows)
    # The quantile is one of the distances, so that at least the stated share of rows is within it.
    if weights is None:
        distances = np.quantile(distances, _LEVELS, method="inverted_cdf", overwrite_input=True)
    else:
        order = np.argsort(distances)
        shares = np.cumsum(weights[order])
        indices = np.searchsorted(shares, np.multiply(_LEVELS, shares[-1]))
        distances = distances[order][indices]
    return TrainingInputs(low, high, mean, covariance, growth * distances)


def _growth_of_new_rows(num_directions: int, num_rows: float) -> float:
    """Compute how much farther new rows are than the rows that made mean and covariance.

    The factor is that of generalised cross-validation, 1 / (1 - K / (N - 1)), with K the mean squared
    distance, which is the number of directions that vary. One row far from all others does not change
    it. With 100 rows of 30 normal inputs, 44 % of new rows are beyond the 99 % quantile, and .5 % are beyond
    1.43 times the quantile; in eight sizes from 33 x 30 to 5000 x 10 at most 2.2 % are.

    Args:
        num_directions: K.
        num_rows: N.

    Returns:
        The factor, or 1 if N is not above K + 1: then each new row is far.
    """
    share = num_directions / max(num_rows - 1, 1)
    return 1.0 / (1.0 - share) if share < 1 else 1.0


def _products(deviation: Array, weights: Array | None) -> Array:
    """Sum products of deviations [N, D] over rows: [D, D], or squares [D, 1] of many inputs."""
    if weights is not None:
        deviation = deviation * np.sqrt(weights)[:, None]
    if deviation.shape[1] > MAX_COVARIANCE_INPUTS:
        squares: Array = np.sum(deviation**2, axis=0)
        return squares[:, None]
    return deviation.T @ deviation


def trust_levels(training_inputs: TrainingInputs, x: Array, rounding: npt.ArrayLike = 0.0) -> Array:
    """Compute trust levels of transformed inputs.

    - Inside: no input is beyond its range, and the Mahalanobis distance from the mean is within the
      99 % quantile (`TrainingInputs.distances`). The distance matters because the corners of the box
      are empty if inputs are correlated.
    - Outside: some input is beyond its range by more than 10 % of that range, or the distance is
      more than 10 % beyond the largest in `TrainingInputs.distances`.
    - Edge: everything else.

    About 1 % of new rows like the training rows are at the edge by their distance, and about 2 D /
    N of them because N rows do not reach the ends of the range. Hardly any is outside if there are
    many rows for each input; with 100 rows of 30 normal inputs 15 % are, by their range.

    Args:
        training_inputs: TrainingInputs.
        x: Inputs [N, D] on the scale the network sees.
        rounding: Errors that inputs may have beyond their range [D], as constant ones; default 0.

    Returns:
        Integers [N]: INSIDE, EDGE or OUTSIDE.
    """
    low, high = training_inputs.low, training_inputs.high
    beyond = np.maximum(low - x, x - high) - rounding
    distance, (usual, largest) = training_inputs.distance(x), training_inputs.distances
    inside = np.all(beyond <= 0, axis=1) & (distance <= usual)
    outside = np.any(beyond > MARGIN * (high - low), axis=1)
    outside |= distance > (1 + MARGIN) * largest
    return np.select([inside, outside], [INSIDE, OUTSIDE], EDGE)


def _whitening_factors(covariance: Array) -> tuple[Array, Array | None]:
    """Compute factors of deviations from the mean: (scales [D], matrix [D, D] or None)."""
    only_variances = covariance.shape[0] != covariance.shape[1]
    variances = covariance[:, 0] if only_variances else np.diagonal(covariance)
    varied = variances > 0
    scales = np.where(varied, 1.0 / np.sqrt(np.where(varied, variances, 1.0)), 0.0)
    if only_variances:
        return scales, None
    values, vectors = np.linalg.eigh(covariance * scales * scales[:, None])
    return scales, vectors / np.sqrt(np.maximum(values, _LEAST_VARIANCE))


def _distance(mean: Array, whitening: tuple[Array, Array | None], x: Array) -> Array:
    scales, matrix = whitening
    deviation = (x - mean) * scales
    if matrix is not None:
        deviation = deviation @ matrix
    squares: Array = np.sum(deviation**2, axis=1)
    return np.sqrt(squares)
