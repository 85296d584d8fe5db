"""Starts of networks of infinite width: around the maximum of the posterior density of their scales."""

from __future__ import annotations

import time
from typing import cast

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.density_of import density_of
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient
from tfbnn.run.config import Starts
from tfbnn.run.counters import Seconds
from tfbnn.run.options import Sampling
from tfbnn.run.progress import Notifier
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.system.arrays import Array

# Searches, from scales around these, the logarithms of which have this standard deviation: units that hardly
# bend, as those that bend at every row explain nothing and stay there.
_NUM_SEARCHES, _SCALE, _NOISE, _SPREAD = 3, 0.7, 0.1, 0.5
# Log scales stay between these, and iterations below this.
_LOW, _HIGH, _MOST_ITERATIONS = -12.0, 6.0, 300
# Where a covariance has no factor; no other density is as low.
_NOWHERE = 1e12


def starts_at_maximum(
    spec: InfiniteSpec, data: Data, sampling: Sampling, notify: Notifier
) -> Starts:
    """Draws of the normal distribution at the best of three maxima, one for each chain.

    Args:
        spec: InfiniteSpec.
        data: Data of the rows that theta is sampled on.
        sampling: The seed and the number of chains.
        notify: True, and its `stopped`, end the search.
    """
    began = time.perf_counter()
    maxima: list[tuple[float, Array]] = []
    for number in range(_NUM_SEARCHES):
        generator = seeds.generator(sampling.seed, "evidence", number)
        maxima.append(_maximum(spec, data, generator))
        if notify.stopped:
            break
    value, mode = max(maxima, key=lambda found: found[0])
    scales, of_scales = np.exp(mode), cast(Potential, density_of(spec).for_chains)
    precision = of_scales.curvature(scales, data)
    root = np.linalg.cholesky(np.linalg.inv(precision))
    normals = [
        seeds.generator(sampling.seed, "start", chain).standard_normal(len(mode))
        for chain in range(sampling.num_chains)
    ]
    found = ", ".join(f"{one:.4g}" for one, _ in maxima)
    return Starts(
        np.log(np.abs(scales + np.stack(normals) @ root.T)),
        f"draws around the maximum of the evidence, log density {value:.4g}, the best of {found}",
        Seconds(pretraining=time.perf_counter() - began),
        notify.stopped,
    )


def _maximum(spec: InfiniteSpec, data: Data, generator: np.random.Generator) -> tuple[float, Array]:
    """(Log density, theta [P]) where a search ends, by L-BFGS of SciPy."""
    from scipy.optimize import minimize

    value_and_gradient = make_value_and_gradient(density_of(spec), data)

    def minus(theta: Array) -> tuple[float, Array]:
        value, gradient = (array[0] for array in value_and_gradient(theta[None]))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return _NOWHERE, np.zeros_like(theta)
        return -float(value), -gradient

    first = np.log(_SCALE) + _SPREAD * generator.standard_normal(spec.num_parameters)
    first[spec.layout.log_noise_scale] = np.log(_NOISE)
    found = minimize(
        minus,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(_LOW, _HIGH)] * len(first),
        options={"maxiter": _MOST_ITERATIONS},
    )
    return -float(found.fun), found.x
