"""The readout, the last layer: where theta has it, and how its entries follow from v.

v is the readout in units of its prior scales, as the regression of `tfbnn.engine.density.regression`
has it: [C, G, p, J], with J targets in each of the G groups of outputs that share a noise scale.
"""

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.densities import layer_scales, per_weight
from tfbnn.spec.network_spec import NetworkSpec, Readout
from tfbnn.system.arrays import Array


def readout_of(spec: NetworkSpec) -> Readout:
    """The readout of a network that has one.

    Raises:
        ValueError: Of one that has none.
    """
    if spec.readout is None:
        raise ValueError(
            "A readout is a last layer that is linear, with a bias, and sampled, received "
            f"{spec.architecture_text}, which ends in none. End the model with Dense(units), without "
            "an activation."
        )
    return spec.readout


def is_conjugate(spec: NetworkSpec) -> bool:
    """Whether the readout's posterior given all else is normal in closed form."""
    prior = readout_of(spec).prior
    if spec.earlier is not None:
        return False
    return spec.likelihood.is_conjugate and prior.kernel.is_normal and prior.bias.is_normal


def num_features(spec: NetworkSpec) -> int:
    """p, the readout's inputs and its bias."""
    return readout_of(spec).slot.num_inputs + 1


def readout_place(spec: NetworkSpec) -> slice:
    """Where theta has the readout: kernel, then bias, so [p, number of outputs] row by row."""
    slot = readout_of(spec).slot
    return slice(slot.kernel.start, slot.bias.stop)


def all_but_readout(spec: NetworkSpec) -> Array:
    """The entries of theta that are not the readout's: integers [P']."""
    return np.delete(np.arange(spec.layout.num_parameters), np.r_[readout_place(spec)])


def with_readout(spec: NetworkSpec, theta: Tensor, readout: Tensor) -> Tensor:
    """Theta [C, P] with other entries of the readout [C, p * outputs]."""
    place = readout_place(spec)
    return tf.concat([theta[:, : place.start], readout, theta[:, place.stop :]], axis=1)


def grouped(spec: NetworkSpec, readout: Tensor, num_groups: int) -> Tensor:
    """Entries of theta [C, p * outputs] as [C, G, p, J]."""
    matrix = tf.reshape(readout, [readout.shape[0], -1, spec.num_outputs])
    if num_groups == 1:
        return matrix[:, None]
    return tf.linalg.matrix_transpose(matrix)[..., None]


def ungrouped(v: Tensor) -> Tensor:
    """The inverse of `grouped`."""
    matrix = v[:, 0] if v.shape[1] == 1 else tf.linalg.matrix_transpose(v[..., 0])
    return tf.reshape(matrix, [v.shape[0], -1])


def entries(spec: NetworkSpec, theta: Tensor, v: Tensor) -> Tensor:
    """v [C, G, p, J] as entries of theta [C, p * outputs]."""
    return entry_scales(spec, theta) * tf.cast(ungrouped(v), theta.dtype)


def entry_scales(spec: NetworkSpec, theta: Tensor) -> Tensor:
    """Entries of the readout per unit of v [C, p * outputs]: prior scales, or 1 in ntk."""
    count, slot = theta.shape[0], readout_of(spec).slot
    if spec.is_ntk:
        return tf.ones([count, slot.num_parameters], theta.dtype)
    widths = (slot.num_inputs * slot.num_outputs, slot.num_outputs)
    wide = [
        tf.broadcast_to(per_weight(scales, width), [count, width])
        for scales, width in zip(prior_scales(spec, theta), widths)
    ]
    return tf.concat(wide, axis=1)


def prior_scales(spec: NetworkSpec, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Prior scales of the readout as of `weight_scales`; of a prior that has none, 1."""
    slot, prior = readout_of(spec)
    if not (prior.kernel.has_scale and prior.bias.has_scale):
        return (tf.ones([1, 1], theta.dtype),) * 2
    return layer_scales(slot, prior, theta)
