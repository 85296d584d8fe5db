"""Starts of networks of infinite width: around the maximum of the posterior density of their scales."""

from __future__ import annotations

import time

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.process import maximum
from tfbnn.run.config import Starts
from tfbnn.run.counters import Seconds
from tfbnn.run.options import Sampling
from tfbnn.spec.infinite_spec import InfiniteSpec


def starts_at_maximum(spec: InfiniteSpec, data: Data, sampling: Sampling) -> Starts:
    """Draws of the normal distribution at the maximum, one for each chain.

    Args:
        spec: InfiniteSpec.
        data: Data of the rows that theta is sampled on.
        sampling: The seed and the number of chains.
    """
    began, found = time.perf_counter(), maximum(spec, data)
    root = np.linalg.cholesky(np.linalg.inv(found.curvature))
    normals = [
        seeds.generator(sampling.seed, "start", chain).standard_normal(len(root))
        for chain in range(sampling.num_chains)
    ]
    others = ", ".join(f"{one:.4g}" for one in found.others)
    return Starts(
        found.theta + np.stack(normals) @ root.T,
        f"draws around the maximum of the evidence, log density {found.log_prob:.4g}; others {others}",
        Seconds(pretraining=time.perf_counter() - began),
    )
