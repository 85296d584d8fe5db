"""The Jacobian of the network outputs in the parameters, by hand: one back-propagation per output.

A taped Jacobian of the same rows takes about ten times as long.
"""

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.network import weight_scales
from tfbnn.spec.activations import ACTIVATIONS


def output_jacobian(spec, theta, x):
    """Derivatives of the outputs in theta, and the outputs.

    Args:
        spec: ModelSpec.
        theta: Parameters [P].
        x: Transformed inputs [D, n] in the dtype of theta.

    Returns:
        (Jacobian [num_outputs, P, n], outputs [num_outputs, n]).
    """
    layers, outputs = _forward(spec, theta, x)
    count = outputs.shape[0]
    back = tf.broadcast_to(tf.eye(count, dtype=x.dtype)[:, :, None], [count, *outputs.shape])
    columns, scale_columns = [], {}
    for slot, layer in zip(reversed(spec.layout.layers), reversed(layers)):
        received, effective_kernel, factors, slope = layer
        if slope is not None:
            back = back * slope
        kernel = factors[0] * received[None, :, None, :] * back[:, None]
        kernel = tf.reshape(kernel, [count, -1, x.shape[-1]])
        bias = factors[1] * back
        columns = [kernel, bias, *columns]
        if spec.is_ntk:
            # In ntk a sampled prior scale s multiplies the weights: d/d log s = sum of w d/dw.
            scales = (slot.kernel_scale, slot.bias_scale)
            for part, where, place in zip((kernel, bias), (slot.kernel, slot.bias), scales):
                if place is not None:
                    scale_columns[place] = tf.einsum("kpn,p->kn", part, theta[where])[:, None]
        back = tf.matmul(effective_kernel, back)
    nothing = tf.zeros([count, 1, x.shape[-1]], x.dtype)
    scales = range(spec.layout.num_weights, theta.shape[0])
    columns += [scale_columns.get(place, nothing) for place in scales]
    return tf.concat(columns, axis=1), outputs


def _forward(spec, theta, x):
    """Layers as (input, effective kernel, factors of kernel and bias, slope), and the last sum."""
    layers, hidden = [], x
    for index, slot in enumerate(spec.layout.layers):
        factors = tf.ones([2], x.dtype)
        if spec.is_ntk:
            kernel_scale, bias_scale = weight_scales(spec, theta[None], index)
            factors = tf.stack([kernel_scale[0, 0] / slot.num_inputs**0.5, bias_scale[0, 0]])
        kernel = factors[0] * tf.reshape(theta[slot.kernel], [slot.num_inputs, slot.num_outputs])
        total = tf.matmul(kernel, hidden, transpose_a=True) + factors[1] * theta[slot.bias][:, None]
        received, slope = hidden, None
        if index < len(spec.activations):
            with tf.GradientTape() as tape:
                tape.watch(total)
                hidden = ACTIVATIONS[spec.activations[index]].tensorflow(tf, total)
            slope = tape.gradient(hidden, total)
        layers.append((received, kernel, factors, slope))
    return layers, total
