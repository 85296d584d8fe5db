"""Networks of infinite width by textbook formulas, and a small model of them without a fit."""

import math

import numpy as np

import tfbnn
from tests.support.builders import random_statistics
from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.data.transforms import Pipeline
from tfbnn.posterior.conditioned import GivenRows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.priors import HalfNormal, HierarchicalNormal

FLOOR = 1e-4


def rows(num_rows=25, num_targets=1, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(num_rows, 2))
    direction = np.random.default_rng(9).normal(size=(2, num_targets))
    y = np.sin(x @ direction) + 0.1 * generator.normal(size=(num_rows, num_targets))
    return x, y


def model(num_targets=1, hidden=1, activation="erf", **settings):
    sizes = [2, *[math.inf] * hidden, num_targets]
    given = {"x_transform": None, "y_transform": None, **settings}
    return tfbnn.BayesianMLP(sizes, activation=activation, **given)


def arcsine(x, z, theta, num_noise=1):
    """Covariance of one hidden layer of erf units (Williams 1997, eq. 11), theta as the package has it."""
    *inputs, first, second, last = np.exp(theta[num_noise:])
    scale = np.append(np.array(inputs) / math.sqrt(len(inputs)), first)
    x, z = (np.column_stack([one, np.ones(len(one))]) * scale for one in (x, z))
    found = np.empty((len(x), len(z)))
    for i, one in enumerate(x):
        for j, other in enumerate(z):
            root = math.sqrt((1 + 2 * one @ one) * (1 + 2 * other @ other))
            found[i, j] = 2 / math.pi * math.asin(2 * one @ other / root)
    return second**2 * found + last**2


def ensemble(num_draws=3, num_rows=25, **settings):
    """An Ensemble of two chains around theta = 0, conditioned on `rows`."""
    spec = model(**settings).spec
    x, y = rows(num_rows, spec.num_targets)
    noise = np.random.default_rng(2).normal(size=(2, num_draws, spec.num_parameters))
    draws = 0.3 * noise - np.where(np.arange(spec.num_parameters) < spec.layout.num_noise, 2.0, 0.0)
    return Ensemble(
        spec=spec,
        x_pipeline=Pipeline(),
        y_pipeline=Pipeline(),
        draws=draws,
        sample_stats=random_statistics((2, num_draws), np.random.default_rng(3)),
        chain_weights=np.full(2, 0.5),
        x_reference=x,
        training_inputs=summarise_inputs(x),
        given=GivenRows(x, y),
    )


SCALES = HierarchicalNormal(HalfNormal(1.0))
