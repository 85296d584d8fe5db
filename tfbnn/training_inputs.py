"""Where the training inputs lie: what tells later whether a new input is near them."""

from dataclasses import dataclass

import numpy as np

__all__ = ["MAX_COVARIANCE_INPUTS", "TrainingInputs", "summarise_inputs"]

# A D x D matrix of more inputs than this would outweigh the draws.
MAX_COVARIANCE_INPUTS = 1000


@dataclass(frozen=True, eq=False)
class TrainingInputs:
    """Range, mean and covariance of the training inputs on the scale the network sees.

    Attributes:
        low, high: Smallest and largest value of each input [D].
        mean: Mean of each input [D].
        covariance: Mean product of deviations from the mean [D, D]; of more than 1000 inputs the
            variances alone [D, 1].
    """

    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray


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
    return TrainingInputs(x.min(axis=0), x.max(axis=0), mean, covariance)
