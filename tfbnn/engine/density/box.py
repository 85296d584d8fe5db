"""The box to which Uniform priors confine the weights."""

import numpy as np

from tfbnn.spec.model_spec import ModelSpec
from tfbnn.system.arrays import Array


def support(spec: ModelSpec) -> tuple[Array, Array]:
    """Lower and upper limits of theta, float64 [P] each; infinite where there are none."""
    low = np.full(spec.layout.num_parameters, -np.inf)
    high = -low
    for slot, layer in zip(spec.layout.layers, spec.priors):
        for prior, place in ((layer.kernel, slot.kernel), (layer.bias, slot.bias)):
            low[place], high[place] = prior.limits
    return low, high
