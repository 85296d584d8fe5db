"""How much the gradients of batches differ at draws of the posterior: a table of `sms_ubu.py`."""

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.whitened_target import Target
from tfbnn.engine.sampling.linear_map import as_tensors, whitening_map
from tfbnn.kernels import SMSUBU

__all__ = ["noise_row"]


def noise_row(model, x, y, start, draws):
    """Root mean squares per whitened coordinate, of the noise by control variates and of the gradient.

    Args:
        model: A fitted model, for its transforms.
        x, y: Rows.
        start: Where batches are compared and coordinates whitened [P].
        draws: Theta of some draws [M, P].
    """
    posterior = model.posterior
    x, y = (
        pipeline.forward(rows)
        for pipeline, rows in ((posterior.x_pipeline, x), (posterior.y_pipeline, y[:, None]))
    )
    potential, data = Potential(model.spec), make_data(x, y, None, "float32")
    start = np.asarray(start, np.float32)[None]
    linear_map = whitening_map(start, potential.curvature(start[0], data)[None])
    target = Target(potential, data, as_tensors(linear_map), tf.zeros([1], tf.float64), (1.0,))
    positions = [linear_map.inverse(draw[None].astype(np.float32)) for draw in draws]
    found = {}
    for name in ("none", "gradient", "hessian"):
        kernel = SMSUBU(control_variates=name).build(target, tf.zeros([1, 1]))
        noise, gradient = measured(kernel, target, linear_map.inverse(start), positions)
        found[name] = float(f"{noise:.3g}")
    return found | {"gradient of all rows": float(f"{gradient:.3g}")}


def measured(kernel, target, centre, positions):
    """(root mean squares of the noise of batches, and of the mean of their gradients)."""
    gradient = tf.function(target.parts(SMSUBU.num_batches).gradient, autograph=False)
    correction = tf.function(kernel.bootstrap_results, autograph=False)(
        tf.constant(centre)
    ).correction
    noise, mean = [], []
    for z in positions:
        z = tf.constant(z)
        parts = np.stack(
            [
                correction.added(gradient(z, index), z, index)[0]
                for index in map(tf.constant, range(SMSUBU.num_batches))
            ]
        )
        mean.append(parts.mean(axis=0))
        noise.append(parts - mean[-1])
    return np.sqrt(np.mean(np.square(noise))), np.sqrt(np.mean(np.square(mean)))
