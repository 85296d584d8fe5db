"""Predictions of draws whose readouts have a known distribution: moments in closed form."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import tfbnn
from tests.support.marks import statistics_but
from tests.support.predictions import with_readouts
from tfbnn.posterior.ensemble import Readouts
from tfbnn.posterior.forward import network_outputs
from tfbnn.posterior.function_moments import moment_networks
from tfbnn.posterior.prediction import function_draws
from tfbnn.priors import HierarchicalNormal, Normal


def closed_form(ensemble, x):
    """Mean and spread of the function at transformed inputs, transformed."""
    networks = moment_networks(ensemble, "transformed")
    assert networks.in_closed_form
    return networks.moments(x)


@pytest.mark.parametrize(
    ("parameterization", "num_groups"),
    statistics_but([("standard", 1), ("ntk", 2)], list(product(("standard", "ntk"), (1, 2)))),
)
def test_moments_are_those_of_normal_readouts(synthetic_ensemble, parameterization, num_groups):
    """The readout of each draw is m + L z, on the features that its hidden layers make."""
    plain = synthetic_ensemble(
        (2, 5, 2),
        parameterization=parameterization,
        prior=[Normal(0.8), HierarchicalNormal()],
        chain_weights=[0.7, 0.3],
    )
    x = np.random.default_rng(5).normal(size=(4, 2))
    ensemble = with_readouts(plain, num_groups)
    mean, stddev = closed_form(ensemble, x)
    means = ensemble.readouts.mean.reshape(-1, 6, 2)
    units = ensemble.input_scales(1)[:, None] * np.broadcast_to(np.eye(6), (len(means), 6, 6))
    features = network_outputs(ensemble, x, [*ensemble.stacked_weights[:-1], units])
    factors = np.broadcast_to(ensemble.readouts.factors(6), (len(means), 2, 6, 6))
    f = np.einsum("sik,sin->snk", means, features)
    variance = np.square(np.einsum("skij,sin->snkj", factors, features)).sum(axis=-1)
    expected = np.einsum("s,snk->nk", ensemble.draw_weights, f)
    square = np.einsum("s,snk->nk", ensemble.draw_weights, variance + (f - expected) ** 2)
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    np.testing.assert_allclose(stddev, np.sqrt(square), rtol=1e-9)


def test_prediction_uses_the_closed_form(synthetic_ensemble):
    ensemble = with_readouts(synthetic_ensemble((2, 5, 1)))
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    x = np.random.default_rng(5).normal(size=(7, 2))
    mean, stddev = closed_form(ensemble, ensemble.x_pipeline.forward(x))
    prediction = model.predict(x, space="transformed")
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(prediction.stddev, stddev, rtol=1e-12)
    original, scale = model.predict(x), 1.0 / ensemble.y_pipeline.derivative(np.ones(1))
    np.testing.assert_allclose(original.mean, ensemble.y_pipeline.inverse(mean), rtol=1e-12)
    np.testing.assert_allclose(original.stddev, scale * stddev, rtol=1e-12)
    noisy = model.predict(x, include_noise=True, space="transformed")
    noise = ensemble.draw_weights @ np.exp(2 * ensemble.log_noise_scale)
    np.testing.assert_allclose(noisy.stddev**2, stddev**2 + noise, rtol=1e-9)
    np.testing.assert_allclose(
        model.evaluate(x, x[:, 0])["rmse"],
        np.sqrt(np.mean((original.mean[:, 0] - x[:, 0]) ** 2)),
    )


def test_without_factors_the_spread_is_that_of_the_drawn_readouts(synthetic_ensemble):
    """The mean is the same, and every draw counts with its mirror image."""
    ensemble = with_readouts(synthetic_ensemble((2, 5, 1)))
    bare = replace(ensemble, readouts=Readouts(ensemble.readouts.mean))
    x = np.random.default_rng(5).normal(size=(7, 2))
    transformed = ensemble.x_pipeline.forward(x)
    mean, _ = closed_form(ensemble, transformed)
    prediction = tfbnn.BayesianMLP.from_ensemble(bare).predict(x, space="transformed")
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-12)
    drawn = function_draws(ensemble, transformed)
    images = function_draws(bare.mirrored, transformed).reshape(2, 2, -1, 7, 1)[:, 1]
    images = images.reshape(drawn.shape)
    variance = np.mean(0.5 * ((drawn - mean) ** 2 + (images - mean) ** 2), axis=0)
    np.testing.assert_allclose(prediction.stddev**2, variance, rtol=1e-10)


@pytest.mark.parametrize("keep", [True, False])
def test_chains_without_weight_do_not_count(synthetic_ensemble, keep):
    ensemble = with_readouts(synthetic_ensemble((2, 5, 1)))
    if not keep:
        ensemble = replace(ensemble, readouts=Readouts(ensemble.readouts.mean))
    x = np.random.default_rng(5).normal(size=(7, 2))
    one = ensemble.with_chain_weights([0.0, 1.0])
    alone = replace(
        ensemble,
        draws=ensemble.draws[1:],
        sample_stats={name: v[1:] for name, v in ensemble.sample_stats.items()},
        chain_weights=np.ones(1),
        readouts=ensemble.readouts.of_chains([1]),
    )
    for a, b in zip(*(tfbnn.BayesianMLP.from_ensemble(e).predict(x) for e in (one, alone))):
        np.testing.assert_array_equal(a, b)
