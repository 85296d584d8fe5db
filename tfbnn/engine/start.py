"""Where chains start: the check that a chain can move at all, with the cause named if not."""

import numpy as np
import tensorflow as tf

from tfbnn.engine.compile import compiled
from tfbnn.engine.potential import Potential
from tfbnn.exceptions import StartError

__all__ = ["check_start", "make_value_and_gradient"]


def make_value_and_gradient(spec, data, jit_compile):
    """NumPy function theta [C, P] -> (log density [C] in float64, gradient [C, P])."""
    function = compiled(Potential(spec).value_and_gradient, jit_compile=jit_compile)

    def value_and_gradient(theta):
        value, gradient = function(tf.convert_to_tensor(theta), data)
        return value.numpy(), gradient.numpy()

    return value_and_gradient


def check_start(spec, data, theta, value, gradient):
    """Refuses starts [C, P] whose log density [C] or gradient [C, P] is not finite.

    A kernel would reject every proposal from such a point in silence.

    Raises:
        StartError: Names the chain, and the row or parameter at fault.
    """
    for chain in range(len(theta)):
        if not np.isfinite(theta[chain]).all():
            index = int(np.flatnonzero(~np.isfinite(theta[chain]))[0])
            raise StartError(
                f"Chain {chain} starts with {spec.layout.parameter_name(index)} = "
                f"{theta[chain, index]}. Lower Pretraining.learning_rate, or use pretraining=None."
            )
        if not np.isfinite(value[chain]):
            raise StartError(_why_value(spec, data, theta[chain : chain + 1], chain))
        if not np.isfinite(gradient[chain]).all():
            index = int(np.flatnonzero(~np.isfinite(gradient[chain]))[0])
            raise StartError(
                f"The gradient of the log density is not finite where chain {chain} starts: "
                f"{gradient[chain, index]} at {spec.layout.parameter_name(index)} = "
                f"{theta[chain, index]}. Use dtype='float64' or a narrower prior."
            )


def _why_value(spec, data, theta, chain):
    from tfbnn.engine.network import network_outputs

    theta = tf.convert_to_tensor(theta)
    log_prior = float(Potential(spec).log_prior(theta)[0])
    if not np.isfinite(log_prior):
        return (
            f"The log prior is {log_prior} where chain {chain} starts. With a Uniform prior, "
            "pretraining may have left the box: use pretraining=None or a wider box."
        )
    outputs = network_outputs(spec, theta, data.x).numpy()[0]
    rows = np.flatnonzero(~np.isfinite(outputs).all(axis=0))
    if len(rows):
        return (
            f"The network's output is not finite for {len(rows)} training rows where chain {chain} "
            f"starts, first for row {rows[0]}. Use x_transform='standardize', a narrower prior or "
            "dtype='float64'."
        )
    return (
        f"The log likelihood is not finite where chain {chain} starts, though every output is. "
        "Use y_transform='standardize', a larger noise_scale or dtype='float64'."
    )
