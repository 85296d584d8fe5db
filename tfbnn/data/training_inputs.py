"""Where the training inputs lie: what tells later whether a new input is near them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

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

    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    distances: np.ndarray

    def distance(self, x):
        """Mahalanobis distance from the mean of the training inputs: x [N, D] -> [N].

        Directions in which inputs hardly vary, as they depend on each other, count as if the
        variance (of inputs scaled to variance 1) was 1e-6 there. Constant inputs do not count:
        their range says more.
        """
        return _distance(self.mean, self._whitening, x)

    @cached_property
    def _whitening(self):
        return _whitening_factors(self.covariance)


def summarise_inputs(x):
    """Summarises the transformed training inputs.

    Args:
        x: Inputs [N, D] on the scale the network sees, float64.

    Returns:
        TrainingInputs.

    Raises:
        ValueError: For numbers so large that their covariance overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = x.mean(axis=0)
        deviation = x - mean
        if x.shape[1] > MAX_COVARIANCE_INPUTS:
            covariance = np.mean(deviation**2, axis=0)[:, None]
        else:
            covariance = deviation.T @ deviation / len(x)
    if not np.isfinite(covariance).all():
        raise ValueError(
            "x is so large that its covariance overflows, received values up to "
            f"{np.abs(x).max():.3g} after its transform. Use x_transform='standardize'."
        )
    distances = _distance(mean, _whitening_factors(covariance), x)
    # One of the distances themselves, so that the share of rows within is not less than it says.
    distances = np.quantile(distances, _LEVELS, method="inverted_cdf")
    return TrainingInputs(x.min(axis=0), x.max(axis=0), mean, covariance, distances)


def _whitening_factors(covariance):
    """What deviations from the mean are multiplied by: (scales [D], matrix [D, D] or None)."""
    only_variances = covariance.shape[0] != covariance.shape[1]
    variances = covariance[:, 0] if only_variances else np.diagonal(covariance)
    varied = variances > 0
    scales = np.where(varied, 1.0 / np.sqrt(np.where(varied, variances, 1.0)), 0.0)
    if only_variances:
        return scales, None
    values, vectors = np.linalg.eigh(covariance * scales * scales[:, None])
    return scales, vectors / np.sqrt(np.maximum(values, _LEAST_VARIANCE))


def _distance(mean, whitening, x):
    scales, matrix = whitening
    deviation = (x - mean) * scales
    if matrix is not None:
        deviation = deviation @ matrix
    return np.sqrt(np.sum(deviation**2, axis=1))
