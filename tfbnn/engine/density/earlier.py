"""Density and curvature of a `FunctionPrior`, the part of the prior that earlier rows have made."""

from __future__ import annotations

from math import log, pi

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.network import network_outputs
from tfbnn.spec.network_spec import NetworkSpec


def earlier_log_prob(spec: NetworkSpec, theta: Tensor) -> Tensor:
    """Log of the factor at theta [C, P], up to a constant: [C], float64."""
    parts = _log_components(spec, theta)
    return parts[0] if len(parts) == 1 else tf.reduce_logsumexp(tf.stack(parts), axis=0)


def likeliest_component(spec: NetworkSpec, theta: Tensor) -> Tensor:
    """Number of the component that theta [P] most likely belongs to."""
    parts = _log_components(spec, theta[None])
    return tf.argmax(tf.stack([part[0] for part in parts]))


def _log_components(spec: NetworkSpec, theta: Tensor) -> list[Tensor]:
    """Logs of the weighted components at theta [C, P]: [C] each."""
    prior = spec.earlier
    x = tf.constant(prior.inputs.values.T, theta.dtype)
    found = network_outputs(spec, theta, x)  # [C, K, M]
    flat = tf.cast(tf.reshape(tf.linalg.matrix_transpose(found), [theta.shape[0], -1]), tf.float64)
    log_noise = tf.cast(theta[:, spec.layout.log_noise_scale], tf.float64)
    parts = []
    for index, weight in enumerate(prior.weights.values):
        lines = tf.matmul(flat, prior.lines.values[index], transpose_b=True)
        lines -= prior.offsets.values[index]
        scale = prior.log_noise_scale.values[index]
        of_noise = (log_noise - prior.log_noise.values[index]) / scale
        constant = np.log(weight) - np.log(scale).sum() - 0.5 * scale.size * log(2.0 * pi)
        squares = tf.reduce_sum(lines**2, axis=1) + tf.reduce_sum(of_noise**2, axis=1)
        parts.append(constant - 0.5 * squares)
    return parts
