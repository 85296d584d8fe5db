"""Prior scales of weights, fixed or sampled, as tensors."""

from tfbnn.engine.basis.libraries import tf


def layer_scales(slot, prior, theta):
    """Prior scales of one layer: of the kernel [C or 1, inputs or 1], of the bias [C or 1, 1].

    Args:
        slot: LayerSlot.
        prior: LayerPrior.
        theta: [C, P].
    """
    kernel_scales = group_scales(prior.kernel, slot.kernel_scales, theta)
    return kernel_scales, group_scales(prior.bias, slot.bias_scales, theta)


def group_scales(prior, place, theta):
    """Prior scales of the weights that share a prior: [C or 1, their number]."""
    if prior.scale_prior is None:
        return tf.constant(prior.scale, theta.dtype, shape=[1, 1])
    return tf.exp(theta[:, place])


def per_weight(values, count):
    """One number per scale [..., m] -> one per weight [..., count], see `tfbnn.spec.layout`.

    A single one is left alone [..., 1]: it broadcasts, and XLA sums its gradient in one pass.
    """
    *batch, num_scales = values.shape
    if num_scales == 1:
        return values
    wide = tf.broadcast_to(values[..., None], [*batch, num_scales, count // num_scales])
    return tf.reshape(wide, [*batch, count])
