"""The sampled density and its gradient at given parameters, outside of any run."""

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.network import network_tiles
from tfbnn.engine.density.potential import Potential, make_data
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.system.arrays import Array


def log_prob_terms(
    spec: ModelSpec, theta: Array, x: Array, y: Array, row_noise: Array | None
) -> dict[str, Array]:
    """Terms of the log density.

    Args:
        spec: The model.
        theta: [M, P].
        x, y, row_noise: Transformed rows [N, D], [N, K], [N, K] or None.

    Returns:
        Dict with log_prior and log_likelihood, float64 [M] each.
    """
    potential, data = Potential(spec), make_data(x, y, row_noise, spec.dtype)
    terms: dict[str, list[Array]] = {"log_prior": [], "log_likelihood": []}
    for tile in network_tiles(spec, theta, len(x)):
        tile = tf.constant(tile, spec.dtype)
        terms["log_prior"].append(potential.log_prior(tile).numpy())
        terms["log_likelihood"].append(potential.log_likelihood(tile, data).numpy())
    return {name: np.concatenate(parts) for name, parts in terms.items()}


def log_prob_gradients(
    spec: ModelSpec, theta: Array, x: Array, y: Array, row_noise: Array | None
) -> Array:
    """Gradient of the log density at every theta [M, P]: [M, P], in the dtype of the model."""
    potential, data = Potential(spec), make_data(x, y, row_noise, spec.dtype)
    gradients = [
        potential.value_and_gradient(tf.constant(tile, spec.dtype), data)[1].numpy()
        for tile in network_tiles(spec, theta, len(x))
    ]
    return np.concatenate(gradients)
