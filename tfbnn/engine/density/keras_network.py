"""The forward pass of Keras models, laid out as that of perceptrons: [C, units, rows].

Networks follow each other, as a chain has a program of its own on a CPU; with all networks at once
convolutions and recurrent layers would be slow, or not there at all.
"""

from typing import Any

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.prior_scales import group_scales, per_weight
from tfbnn.engine.keras.jacobian import row_jacobians
from tfbnn.engine.keras.network import build, network_of
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.system.arrays import Array


def keras_outputs(spec, theta, x):
    """Outputs [C, K, n] of networks theta [C, P] at x [D, n] or [C, D, n]."""
    network = network_of(spec, theta.dtype.name)

    def of_network(theta, x):
        return network.outputs(effective_values(spec, theta), x)

    return _of_each(of_network, theta, x)


def keras_hidden_units(spec, theta, x):
    """What the readout receives: [C, units, n]. Arguments as in `keras_outputs`."""
    network, kernel = network_of(spec, theta.dtype.name), spec.sampled[spec.facts.readout].index

    def of_network(theta, x):
        return network.features(effective_values(spec, theta), x, kernel)

    return _of_each(of_network, theta, x)


def keras_jacobian(spec, theta, x):
    """As `tfbnn.engine.density.gauss_newton.output_jacobian`."""
    network = network_of(spec, theta.dtype.name)
    return row_jacobians(
        lambda theta, x: network.outputs(effective_values(spec, theta), x), theta, x
    )


def model_of_draw(spec: KerasSpec, theta: Array) -> Any:
    """A Keras model of its own with the weights of one network theta [P]."""
    frozen = {one.index: one.array for one in spec.frozen}
    values = effective_values(spec, tf.constant(theta, spec.dtype))
    values = frozen | {index: value.numpy() for index, value in values.items()}
    shape = spec.facts.input_shape
    return build(spec.architecture, shape, spec.layer_classes, spec.dtype, values)


def effective_values(spec, theta):
    """Values of the sampled variables of one network theta [P], by their places in the model."""
    values = {}
    for variable, slot in spec.slots:
        weights = theta[slot.weights]
        if spec.is_ntk:
            scales = group_scales(variable.prior, slot.scales, theta[None])[0]
            weights = weights * per_weight(scales, weights.shape[0]) / variable.fan_in**0.5
        values[variable.index] = tf.reshape(weights, variable.shape)
    return values


def _of_each(function, theta, x):
    """function(theta [P], x [D, n]) of every network [C, P], one after the other."""
    has_own_rows = x.shape.rank == 3
    if theta.shape[0] == 1:
        return function(theta[0], x[0] if has_own_rows else x)[None]
    if has_own_rows:
        both = (theta, x)
        return tf.map_fn(lambda one: function(*one), both, fn_output_signature=theta.dtype)
    return tf.map_fn(lambda one: function(one, x), theta, fn_output_signature=theta.dtype)
