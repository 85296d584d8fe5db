"""Range of the training inputs, and trust levels of others by it.

The levels of that are GAMBIT's trust levels: fine, questionable, do not trust. They are about the
inputs alone, on the scale the network sees, and no statement about the error there; data with holes
or on a curved surface have more "inside" than is covered.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from tfbnn.system.arrays import Array, by_rows, row_slices

INSIDE, EDGE, OUTSIDE = 1, 0, -1

# How far beyond the training data the edge reaches, as a share of each input's range and of the
# largest distance. A network still interpolates a little past its last row; 10 % is convention.
MARGIN = 0.1
# A D x D matrix of more inputs than this would outweigh the draws.
MAX_COVARIANCE_INPUTS = 1000

# The training distances that are kept: their 99 % quantile and the largest.
_LEVELS = (0.99, 1.0)
# Least variance of a direction in units of the mean one, for inputs that depend on each other.
_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, eq=False)
class TrainingInputs:
    """Range, mean, covariance and distances of the training inputs on the scale the network sees.

    Attributes:
        low, high: Smallest and largest value of each input [D].
        mean: Mean of each input [D].
        covariance: Mean product of deviations from the mean [D, D]; of more than 1000 inputs the
            variances alone [D, 1].
        distances: The 99 % quantile and the largest of the training inputs' own `distance` [2].
    """

    low: Array
    high: Array
    mean: Array
    covariance: Array
    distances: Array

    def distance(self, x: Array) -> Array:
        """Mahalanobis distance from the mean of the training inputs: x [N, D] -> [N].

        Directions in which inputs hardly vary, as they depend on each other, count as if the
        variance (of inputs scaled to variance 1) was 1e-6 there. Constant inputs do not count:
        their range says more.
        """
        return _distance(self.mean, self._whitening, x)

    @property
    def whitening_matrix(self) -> Array:
        """Matrix [D, D] whose product with a deviation from the mean has the distance as its length."""
        scales, matrix = self._whitening
        return np.diag(scales) if matrix is None else (scales[:, None] * matrix).T

    @cached_property
    def _whitening(self) -> tuple[Array, Array | None]:
        return _whitening_factors(self.covariance)


def summarise_inputs(x: Array, weights: Array | None = None) -> TrainingInputs:
    """Summarise the transformed training inputs.

    Args:
        x: Inputs [N, D] on the scale the network sees, float64.
        weights: How many rows each stands for [N]; default one.

    Returns:
        TrainingInputs.

    Raises:
        ValueError: For numbers so large that their covariance overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = x.mean(axis=0) if weights is None else np.average(x, axis=0, weights=weights)
        products = [
            _products(x[rows] - mean, None if weights is None else weights[rows])
            for rows in row_slices(len(x))
        ]
        covariance: Array = sum(products[1:], products[0])
        covariance /= len(x) if weights is None else weights.sum()
    if not np.isfinite(covariance).all():
        raise ValueError(
            "x is so large that its covariance overflows, received values up to "
            f"{np.abs(x).max():.3g} after its transform. Use x_transform='standardize'."
        )
    distances = by_rows(partial(_distance, mean, _whitening_factors(covariance)), x)
    # One of the distances themselves, so that the share of rows within is not less than it says.
    if weights is None:
        distances = np.quantile(distances, _LEVELS, method="inverted_cdf", overwrite_input=True)
    else:
        order = np.argsort(distances)
        shares = np.cumsum(weights[order])
        places = np.searchsorted(shares, np.multiply(_LEVELS, shares[-1]))
        distances = distances[order][places]
    return TrainingInputs(x.min(axis=0), x.max(axis=0), mean, covariance, distances)


def _products(deviation: Array, weights: Array | None) -> Array:
    """Return sums over rows of the products of deviations [N, D]: [D, D], of many inputs of squares [D, 1]."""
    if weights is not None:
        deviation = deviation * np.sqrt(weights)[:, None]
    if deviation.shape[1] > MAX_COVARIANCE_INPUTS:
        squares: Array = np.sum(deviation**2, axis=0)
        return squares[:, None]
    return deviation.T @ deviation


def trust_levels(training_inputs: TrainingInputs, x: Array) -> Array:
    """Trust levels of transformed inputs.

    Inside: no input is beyond its range, and the Mahalanobis distance from the mean is within the
    99 % quantile of the training inputs' own, as the corners of the box are empty where inputs
    are correlated. Outside: some input is beyond its range by more than 10 % of that range, or the
    distance is more than 10 % beyond the largest of the training inputs. Else at the edge.

    So about 1 % of new rows like the training rows are at the edge by their distance, about
    2 D / N of them because N rows do not reach the ends of the range, and hardly any is outside.

    Args:
        training_inputs: TrainingInputs.
        x: Inputs [N, D] on the scale the network sees.

    Returns:
        Integers [N].
    """
    low, high = training_inputs.low, training_inputs.high
    beyond = np.maximum(low - x, x - high)
    distance, (usual, largest) = training_inputs.distance(x), training_inputs.distances
    inside = np.all(beyond <= 0, axis=1) & (distance <= usual)
    outside = np.any(beyond > MARGIN * (high - low), axis=1)
    outside |= distance > (1 + MARGIN) * largest
    return np.select([inside, outside], [INSIDE, OUTSIDE], EDGE)


def _whitening_factors(covariance: Array) -> tuple[Array, Array | None]:
    """Factors of deviations from the mean: (scales [D], matrix [D, D] or None)."""
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
