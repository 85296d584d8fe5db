"""The readout, the last layer: where theta has it, and how its entries follow from v.

v is the readout in units of its prior scales, as the regression of `tfbnn.engine.density.regression`
has it: [C, G, p, J], with J targets in each of the G groups of outputs that share a noise scale.
"""

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.network import per_weight, weight_scales
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.system.arrays import Array


def is_conjugate(spec: ModelSpec) -> bool:
    """Whether the readout's posterior given all else is normal in closed form."""
    readout = spec.priors[-1]
    if spec.earlier is not None:
        return False
    return spec.likelihood.is_conjugate and readout.kernel.is_normal and readout.bias.is_normal


def num_features(spec: ModelSpec) -> int:
    """p, the readout's inputs and its bias."""
    return spec.layer_sizes[-2] + 1


def readout_place(spec: ModelSpec) -> slice:
    """Where theta has the readout: kernel, then bias, so [p, number of outputs] row by row."""
    slot = spec.layout.layers[-1]
    return slice(slot.kernel.start, slot.bias.stop)


def all_but_readout(spec: ModelSpec) -> Array:
    """The entries of theta that are not the readout's: integers [P']."""
    return np.delete(np.arange(spec.layout.num_parameters), np.r_[readout_place(spec)])


def with_readout(spec: ModelSpec, theta: Tensor, readout: Tensor) -> Tensor:
    """Theta [C, P] with other entries of the readout [C, p * outputs]."""
    place = readout_place(spec)
    return tf.concat([theta[:, : place.start], readout, theta[:, place.stop :]], axis=1)


def grouped(spec: ModelSpec, readout: Tensor, num_groups: int) -> Tensor:
    """Entries of theta [C, p * outputs] as [C, G, p, J]."""
    matrix = tf.reshape(readout, [readout.shape[0], -1, spec.layer_sizes[-1]])
    if num_groups == 1:
        return matrix[:, None]
    return tf.linalg.matrix_transpose(matrix)[..., None]


def ungrouped(v: Tensor) -> Tensor:
    """The inverse of `grouped`."""
    matrix = v[:, 0] if v.shape[1] == 1 else tf.linalg.matrix_transpose(v[..., 0])
    return tf.reshape(matrix, [v.shape[0], -1])


def entries(spec: ModelSpec, theta: Tensor, v: Tensor) -> Tensor:
    """v [C, G, p, J] as entries of theta [C, p * outputs]."""
    return entry_scales(spec, theta) * tf.cast(ungrouped(v), theta.dtype)


def entry_scales(spec: ModelSpec, theta: Tensor) -> Tensor:
    """Entries of the readout per unit of v [C, p * outputs]: prior scales, or 1 in ntk."""
    count, sizes = theta.shape[0], spec.layer_sizes
    if spec.is_ntk:
        return tf.ones([count, (sizes[-2] + 1) * sizes[-1]], theta.dtype)
    widths = (sizes[-2] * sizes[-1], sizes[-1])
    wide = [
        tf.broadcast_to(per_weight(scales, width), [count, width])
        for scales, width in zip(prior_scales(spec, theta), widths)
    ]
    return tf.concat(wide, axis=1)


def prior_scales(spec: ModelSpec, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Prior scales of the readout as of `weight_scales`; of a prior that has none, 1."""
    prior = spec.priors[-1]
    if not (prior.kernel.has_scale and prior.bias.has_scale):
        return (tf.ones([1, 1], theta.dtype),) * 2
    return weight_scales(spec, theta, len(spec.layout.layers) - 1)
