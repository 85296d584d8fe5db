"""The sampled density at given parameters, for `model.log_prob`."""

import numpy as np
import tensorflow as tf

from tfbnn.engine.potential import Potential, make_data

__all__ = ["log_prob_terms"]

_HIDDEN_VALUES = 50_000_000


def log_prob_terms(spec, theta, x, y, row_noise):
    """Terms of the log density.

    Args:
        spec: ModelSpec.
        theta: [M, P].
        x, y, row_noise: Transformed rows [N, D], [N, K], [N, K] or None.

    Returns:
        Dict with log_prior and log_likelihood, float64 [M] each.
    """
    potential, data = Potential(spec), make_data(x, y, row_noise, spec.dtype)
    step = max(1, _HIDDEN_VALUES // (len(x) * max(spec.layer_sizes)))
    terms = {"log_prior": [], "log_likelihood": []}
    for start in range(0, max(len(theta), 1), step):
        tile = tf.constant(theta[start : start + step], spec.dtype)
        terms["log_prior"].append(potential.log_prior(tile).numpy())
        terms["log_likelihood"].append(potential.log_likelihood(tile, data).numpy())
    return {name: np.concatenate(parts) for name, parts in terms.items()}
