"""Normal mixtures as priors of all parameters, with their covariances written out."""

import numpy as np

from tests.support.builders import plain_spec
from tfbnn.spec.priors import NormalMixture


def make_mixture(size, rank, seed=3, weights=(0.3, 0.7)):
    """(Mixture, covariances [B, P, P])."""
    generator = np.random.default_rng(seed)
    count = len(weights)
    directions = np.linalg.qr(generator.normal(size=(count, size, size)))[0][:, :, :rank]
    scale = generator.uniform(0.3, 2.0, size=(count, size))
    stretch = generator.uniform(0.1, 3.0, size=(count, rank))
    loc = generator.normal(size=(count, size))
    mixture = NormalMixture.of(np.array(weights), loc, scale, directions, stretch)
    along = directions * (stretch**2 - 1)[:, None]
    shaped = np.eye(size) + along @ directions.transpose(0, 2, 1)
    return mixture, scale[:, :, None] * shaped * scale[:, None]


def spec_under_mixture(rank=None, weights=(0.3, 0.7), **settings):
    """(ModelSpec of a small network with such a prior, covariances)."""
    spec = plain_spec([2, 3, 1], dtype="float64", **settings)
    size = spec.num_parameters
    mixture, covariances = make_mixture(size, size if rank is None else rank, weights=weights)
    return spec.with_joint_prior(mixture), covariances
