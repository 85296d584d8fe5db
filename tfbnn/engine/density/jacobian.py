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
