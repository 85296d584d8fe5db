"""The Gauss-Newton matrix of the potential: J^T Lambda J + prior curvature, in blocks of rows.

J is the Jacobian of the network outputs and Lambda the Fisher information of the likelihood in
them; noise scales and prior scales add their Fisher information on the diagonal. The matrix is
positive semi-definite by construction, and positive definite where every prior has curvature.
Layers are differentiated by hand, one back-propagation per output; everything is float64, because
the eigenvalues on nearly noise-free data run from 1 to more than 1e9.

References:
    Schraudolph 2002, Neural Computation 14, 1723. Martens 2020, arXiv:1412.1193.
"""

from functools import lru_cache

import numpy as np
import tensorflow as tf

from tfbnn import likelihoods, priors
from tfbnn.activations import ACTIVATIONS
from tfbnn.engine.compile import compiled
from tfbnn.engine.network import weight_scales
from tfbnn.engine.potential import Data

__all__ = ["gauss_newton_matrix", "prior_curvature"]

_BLOCK_ROWS = 1024


def gauss_newton_matrix(spec, theta, data):
    """Curvature of minus the log density at one network.

    Args:
        spec: ModelSpec.
        theta: Parameters [P].
        data: Data.

    Returns:
        Symmetric matrix [P, P], float64.
    """
    add_block = _make_block(spec)
    theta = tf.constant(theta, tf.float64)
    num_rows = data.x.shape[-1]
    total = tf.zeros([spec.layout.num_parameters] * 2, tf.float64)
    # Blocks of nearly equal length: at most two shapes to trace.
    edges = np.linspace(0, num_rows, -(-num_rows // _BLOCK_ROWS) + 1).astype(int)
    for first, last in zip(edges[:-1], edges[1:]):
        rows = Data(*(None if a is None else tf.cast(a[:, first:last], tf.float64) for a in data))
        total = add_block(theta, rows, total)
    return total.numpy() + np.diag(prior_curvature(spec, theta.numpy()))


def prior_curvature(spec, theta):
    """Diagonal [P] of the prior's curvature, float64.

    Laplace and Uniform priors enter with the precision of the normal of equal variance. A sampled
    scale has the Fisher information 2 per weight that depends on it in the prior.
    """
    layout, curvature = spec.layout, np.zeros(spec.layout.num_parameters)
    for slot, layer in zip(layout.layers, spec.priors):
        for prior, place, scale_place in (
            (layer.kernel, slot.kernel, slot.kernel_scale),
            (layer.bias, slot.bias, slot.bias_scale),
        ):
            log_scale = None if scale_place is None else theta[scale_place]
            curvature[place] = _weight_precision(spec, prior, log_scale)
            if scale_place is not None:
                curvature[scale_place] = _scale_curvature(prior.scale_prior, log_scale)
                if not spec.is_ntk:
                    curvature[scale_place] += 2.0 * (place.stop - place.start)
    for place in range(layout.log_noise_scale.start, layout.log_noise_scale.stop):
        curvature[place] = _scale_curvature(spec.likelihood.scale_prior, theta[place])
    return curvature


def _weight_precision(spec, prior, log_scale):
    if isinstance(prior, priors.Uniform):
        return 12.0 / (prior.high - prior.low) ** 2
    if isinstance(prior, priors.HierarchicalNormal):
        return 1.0 if spec.is_ntk else np.exp(-2.0 * log_scale)
    scale = 1.0 if spec.is_ntk else prior.scale
    return 0.5 / scale**2 if isinstance(prior, priors.Laplace) else 1.0 / scale**2


def _scale_curvature(prior, log_scale):
    """Minus the second derivative of the log density of log(s)."""
    if isinstance(prior, priors.LogNormal):
        return 1.0 / prior.scale**2
    if isinstance(prior, priors.InverseGamma):
        return 4.0 * prior.scale * np.exp(-2.0 * log_scale)
    ratio = np.exp(2.0 * log_scale) / prior.scale**2
    return 2.0 * ratio if isinstance(prior, priors.HalfNormal) else 4.0 * ratio / (1 + ratio) ** 2


@lru_cache(maxsize=32)
def _make_block(spec):
    """Function (theta [P], Data of some rows, matrix [P, P]) -> matrix with these rows added."""

    def add_block(theta, rows, total):
        jacobian, outputs = _jacobian(spec, theta, rows.x)
        log_noise_scale = theta[spec.layout.log_noise_scale]
        weights, noise = _information(spec.likelihood, outputs, log_noise_scale, rows.row_noise)
        scaled = jacobian * tf.sqrt(weights)[:, None, :]
        flat = tf.reshape(tf.transpose(scaled, [1, 0, 2]), [theta.shape[0], -1])
        total += tf.matmul(flat, flat, transpose_b=True)
        padding = [[spec.layout.num_weights, theta.shape[0] - spec.layout.log_noise_scale.stop]]
        return total + tf.linalg.diag(tf.pad(noise, padding))

    # XLA on a CPU has no fast product of float64 matrices this large.
    return compiled(add_block, jit_compile=False)


def _jacobian(spec, theta, x):
    """Derivatives of the outputs in theta [outputs, P, n], and the outputs [outputs, n]."""
    layers = _forward(spec, theta, x)
    outputs = layers[-1]["sum"]
    count = outputs.shape[0]
    back = tf.broadcast_to(tf.eye(count, dtype=x.dtype)[:, :, None], [count, *outputs.shape])
    columns, scale_columns = [], {}
    for slot, layer in zip(reversed(spec.layout.layers), reversed(layers)):
        if layer["slope"] is not None:
            back = back * layer["slope"]
        kernel = layer["kernel_factor"] * layer["input"][None, :, None, :] * back[:, None]
        kernel = tf.reshape(kernel, [count, -1, x.shape[-1]])
        bias = layer["bias_factor"] * back
        columns = [kernel, bias, *columns]
        if spec.is_ntk:
            # In ntk a sampled prior scale s multiplies the weights: d/d log s = sum of w d/dw.
            for part, place, where in (
                (kernel, slot.kernel_scale, slot.kernel),
                (bias, slot.bias_scale, slot.bias),
            ):
                if place is not None:
                    scale_columns[place] = tf.einsum("kpn,p->kn", part, theta[where])[:, None]
        back = tf.matmul(layer["kernel"], back)
    num_scales = theta.shape[0] - spec.layout.num_weights
    nothing = tf.zeros([count, 1, x.shape[-1]], x.dtype)
    first = spec.layout.num_weights
    columns += [scale_columns.get(first + i, nothing) for i in range(num_scales)]
    return tf.concat(columns, axis=1), outputs


def _forward(spec, theta, x):
    """Per layer: input, effective kernel, weighted sum, and the slope of its activation."""
    layers, hidden = [], x
    for index, slot in enumerate(spec.layout.layers):
        factors = tf.ones([2], x.dtype)
        if spec.is_ntk:
            kernel_scale, bias_scale = weight_scales(spec, theta[None], index)
            factors = tf.stack([kernel_scale[0, 0] / slot.num_inputs**0.5, bias_scale[0, 0]])
        kernel = factors[0] * tf.reshape(theta[slot.kernel], [slot.num_inputs, slot.num_outputs])
        total = tf.matmul(kernel, hidden, transpose_a=True) + factors[1] * theta[slot.bias][:, None]
        layer = {
            "input": hidden,
            "kernel": kernel,
            "kernel_factor": factors[0],
            "bias_factor": factors[1],
            "sum": total,
            "slope": None,
        }
        if index < len(spec.activations):
            with tf.GradientTape() as tape:
                tape.watch(total)
                hidden = ACTIVATIONS[spec.activations[index]].tensorflow(tf, total)
            layer["slope"] = tape.gradient(hidden, total)
        layers.append(layer)
    return layers


def _information(likelihood, outputs, log_noise_scale, row_noise):
    """Fisher information in the outputs [outputs, n] and in the log noise scales [their number]."""
    known = 0.0 if row_noise is None else row_noise**2
    if isinstance(likelihood, likelihoods.HeteroscedasticGaussian):
        raw = outputs[outputs.shape[0] // 2 :]
        learned = tf.nn.softplus(raw) ** 2
        variance = learned + known
        spread = 2.0 * learned * tf.sigmoid(raw) ** 2 / variance**2
        return tf.concat([1.0 / variance, spread], axis=0), tf.zeros([0], outputs.dtype)
    if likelihood.noise_scale == likelihoods.LEARNED:
        learned = tf.exp(2.0 * log_noise_scale)[:, None]
        variance = tf.broadcast_to(learned + known, outputs.shape)
    else:
        learned = tf.zeros([0, 1], outputs.dtype)
        fixed = tf.reshape(tf.constant(likelihood.noise_scale, outputs.dtype), [-1, 1])
        variance = tf.broadcast_to(fixed**2 if row_noise is None else known, outputs.shape)
    location, scale = 1.0, 2.0
    if isinstance(likelihood, likelihoods.StudentT):
        # Lange, Little and Taylor 1989, JASA 84, 881; noise_scale^2 is the variance.
        df = likelihood.df
        location, scale = (df + 1) / (df + 3) * df / (df - 2), 2.0 * df / (df + 3)
    if not log_noise_scale.shape[0]:
        return location / variance, tf.zeros([0], outputs.dtype)
    return location / variance, scale * tf.reduce_sum((learned / variance) ** 2, axis=1)
