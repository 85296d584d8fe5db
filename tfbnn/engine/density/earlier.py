"""The likelihood of earlier rows, the part of the prior that they make."""

from __future__ import annotations

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data, make_data
from tfbnn.engine.density.densities import row_log_likelihood
from tfbnn.engine.density.network import network_outputs
from tfbnn.spec.network_spec import NetworkSpec


def earlier_data(spec: NetworkSpec, dtype: str) -> Data:
    """The earlier rows of a spec that has some."""
    kept = spec.earlier
    noise = None if kept.noise is None else kept.noise.values
    return make_data(kept.x.values, kept.y.values, noise, dtype, kept.weights.values)


def earlier_log_prob(spec: NetworkSpec, theta: Tensor) -> Tensor:
    """Log likelihood of the earlier rows at theta [C, P]: [C], float64."""
    rows = earlier_data(spec, theta.dtype.name)
    outputs = network_outputs(spec, theta, rows.x)
    log_noise = theta[:, spec.layout.log_noise_scale]
    terms = row_log_likelihood(spec.likelihood, outputs, log_noise, rows.y, rows.row_noise)
    return tf.reduce_sum(rows.counted(tf.cast(terms, tf.float64)), axis=-1)
