"""Networks with hidden units in another order and signs turned: the same functions."""

import numpy as np

from tfbnn.spec.symmetries import _hidden_layers

__all__ = ["random_copies"]


def random_copies(spec, theta, generator):
    """Each network in a copy drawn at random: the same functions and log densities.

    Args:
        spec: NetworkSpec.
        theta: Parameters [M, P].
        generator: NumPy's.

    Returns:
        [M, P].
    """
    theta = theta.copy()
    for layer in _hidden_layers(spec, theta):
        shape = layer.bias[:, 0].shape
        order = generator.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)
        signs = generator.choice([-1.0, 1.0], size=shape) if layer.turns else np.ones(shape)
        layer.move(order, signs.astype(theta.dtype))
    return theta
