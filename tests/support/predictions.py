"""Ensembles of every kind of model, rows for them, and predictions side by side."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.builders import make_rows
from tfbnn.likelihoods import Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.posterior.ensemble import Readouts
from tfbnn.posterior.prediction_frame import Prediction
from tfbnn.priors import ARD, HierarchicalNormal, Laplace, Normal, Uniform

LOG = ["log10", "standardize"]
# Of a first layer.
ARD_FIRST = {"kernel": ARD(), "bias": HierarchicalNormal()}

CONFIGURATIONS = {
    "plain": {},
    "two targets": {"layer_sizes": (2, 4, 2), "y_transform": LOG},
    "deep": {"layer_sizes": (2, 4, 5, 3, 1), "activation": ["relu", "gelu", "sin"]},
    "linear": {"layer_sizes": (2, 1), "x_transform": None, "y_transform": None},
    "logarithm": {"y_transform": LOG},
    "raw inputs": {"x_transform": None, "y_transform": LOG},
    "fixed noise": {"likelihood": Gaussian([0.2, 0.5]), "layer_sizes": (2, 5, 2)},
    "Student-t": {"likelihood": StudentT(3.5)},
    "heteroscedastic": {"likelihood": HeteroscedasticGaussian(), "layer_sizes": (2, 5, 4)},
    "uniform": {"prior": Uniform(-2.0, 2.0)},
    "hierarchical": {"prior": HierarchicalNormal()},
    "ntk": {"parameterization": "ntk", "layer_sizes": (3, 6, 4, 2)},
    "ntk, priors apart": {
        "parameterization": "ntk",
        "prior": [{"kernel": Normal(2.0), "bias": Laplace(0.3)}, Normal(0.7)],
    },
    "ntk, hierarchical": {
        "parameterization": "ntk",
        "prior": [{"kernel": HierarchicalNormal(), "bias": Normal(0.5)}, HierarchicalNormal()],
    },
    "ARD": {"layer_sizes": (3, 4, 1), "prior": [ARD_FIRST, Normal(0.7)]},
    "ntk, ARD": {
        "parameterization": "ntk",
        "layer_sizes": (3, 4, 2),
        "prior": [ARD_FIRST, HierarchicalNormal()],
    },
    "weighted chains": {"num_chains": 3, "chain_weights": [0.2, 0.7, 0.1]},
}
each_configuration = pytest.mark.parametrize(
    "configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS
)
# What the distributions of targets differ by.
NOISES = ("plain", "logarithm", "two targets", "fixed noise", "Student-t", "heteroscedastic")
REGRESSIONS = {name: CONFIGURATIONS[name] for name in NOISES}
SCORED = REGRESSIONS | {"no transform": {"y_transform": None}}
SCORED["weighted chains"] = CONFIGURATIONS["weighted chains"]


def rows_for(ensemble, num_rows=7, seed=5):
    x, y = make_rows(num_rows, ensemble.spec.num_inputs, ensemble.spec.num_targets, seed)
    return x, y


def assert_same(found, expected, rtol):
    """Equal to `rtol` of the largest entry."""
    for a, b in ((found.mean, expected.mean), (found.stddev, expected.stddev)):
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * np.abs(b).max())
    if expected.quantiles is not None:
        size = np.abs(expected.quantiles).max()
        np.testing.assert_allclose(found.quantiles, expected.quantiles, rtol=0, atol=rtol * size)


def pick(prediction, rows):
    quantiles = None if prediction.quantiles is None else prediction.quantiles[:, rows]
    return Prediction(prediction.mean[rows], prediction.stddev[rows], quantiles)


def with_readouts(ensemble, num_groups=1, seed=0):
    """A synthetic ensemble whose readouts are drawn anew from normals that it then knows."""
    spec = ensemble.spec
    kernel, bias = spec.layout.layers[-1]
    size, num_outputs = spec.layer_sizes[-2] + 1, spec.layer_sizes[-1]
    generator = np.random.default_rng(seed)
    shape = (ensemble.num_chains, ensemble.num_results)
    mean = generator.normal(size=(*shape, size * num_outputs))
    factor = 0.5 * generator.normal(size=(*shape, num_groups, size * (size + 1) // 2))
    readouts = Readouts(mean, factor)
    normals = generator.normal(size=(ensemble.num_draws, size, num_outputs))
    factors = np.broadcast_to(readouts.factors(size), (ensemble.num_draws, num_outputs, size, size))
    deviation = np.einsum("skij,sjk->sik", factors, normals)
    draws = ensemble.draws.copy()
    draws[..., kernel.weights.start : bias.weights.stop] = mean + deviation.reshape(mean.shape)
    return replace(ensemble, draws=draws, readouts=readouts)
