"""Networks drawn from the prior, in NumPy."""

from __future__ import annotations

import numpy as np

from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array


def draw_parameters(spec: NetworkSpec, generator: np.random.Generator) -> Array:
    """One draw of all parameters theta [P] from their prior, in the sampled coordinates."""
    layout = spec.layout
    theta = np.zeros(layout.num_parameters)
    for prior, place, scale_place in spec.weight_groups():
        count = place.stop - place.start
        if prior.scale_prior is not None:
            num_scales = scale_place.stop - scale_place.start
            scales = prior.scale_prior.sample(generator, num_scales)
            theta[scale_place] = np.log(scales)
            in_theta = 1.0 if spec.is_ntk else np.repeat(scales, count // num_scales)
            theta[place] = prior.sample(generator, count, in_theta)  # type: ignore[call-arg]
        else:
            weights = prior.sample(generator, count)
            theta[place] = weights / prior.scale if spec.is_ntk and prior.scale else weights
    if layout.num_noise and spec.noise_prior is not None:
        scales = spec.noise_prior.sample(generator, layout.num_noise)
        theta[layout.log_noise_scale] = np.log(scales)
    return theta
