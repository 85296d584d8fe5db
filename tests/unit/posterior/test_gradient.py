"""Derivatives of predictions: against differences of predictions, for all that stands in between."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import infinite
from tests.support.builders import make_rows, synthetic_ensemble
from tfbnn import BayesianMLP, likelihoods
from tfbnn.posterior import process_predictions
from tfbnn.posterior.ensemble import Readouts

STEP = 1e-6


def differences(model, x):
    """Central differences of the mean prediction [N, K, D]."""
    slopes = []
    for column in range(x.shape[1]):
        shift = np.zeros(x.shape[1])
        shift[column] = STEP
        ends = [model.predict(x + sign * shift).columns.mean for sign in (1.0, -1.0)]
        slopes.append((ends[0] - ends[1]) / (2.0 * STEP))
    return np.stack(slopes, axis=-1)


def held_to_differences(ensemble, x):
    model = BayesianMLP.from_ensemble(ensemble)
    found = model.predict_gradient(x)
    expected = differences(model, x)
    np.testing.assert_allclose(
        found.mean.reshape(expected.shape), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max()
    )
    assert np.all(found.stddev > 0)
    return found


@pytest.mark.parametrize(
    ("layers", "settings"),
    [
        ((3, 1), {}),
        ((2, 5, 2), dict(y_transform=["log10", "standardize"])),
        ((2, 5, 1), dict(x_transform=None, parameterization="ntk")),
        ((2, 5, 2), dict(likelihood=likelihoods.HeteroscedasticGaussian())),
        ((2, 5, 3), dict(likelihood=likelihoods.Categorical(), y_transform=None)),
        ((2, 5, 2), dict(likelihood=likelihoods.Bernoulli(), y_transform=None)),
        ((2, 5, 1), dict(likelihood=likelihoods.Poisson(), y_transform=None)),
        ((2, 5, 1), dict(chain_weights=[0.8, 0.2])),
        ((2, 4, 3, 1), dict(activation=["relu", "sin"], y_transform=None)),
    ],
    ids=str,
)
def test_transforms_links_weights_and_activations(layers, settings):
    ensemble = synthetic_ensemble(layers, **settings)
    held_to_differences(ensemble, make_rows(7, layers[0], 1, seed=3)[0])


def test_collapsed_readouts_have_the_gradient_of_their_means():
    ensemble = synthetic_ensemble((2, 4, 1), y_transform="standardize")
    means = ensemble.draws[..., -6:-1] + 0.3  # the readout, before one log noise scale
    ensemble = replace(ensemble, readouts=Readouts(means, None))
    held_to_differences(ensemble, make_rows(7, 2, 1, seed=3)[0])


def gradient_of_draw(ensemble, draw, x):
    alone = ensemble.picked(lambda values: values[:, draw : draw + 1])
    return BayesianMLP.from_ensemble(alone).predict_gradient(x).mean


def test_the_spread_is_that_over_draws_and_rows_come_in_tiles(monkeypatch):
    ensemble = synthetic_ensemble((2, 4, 1), vector_target=True)
    x = make_rows(9, 2, 1, seed=3)[0]
    found = BayesianMLP.from_ensemble(ensemble).predict_gradient(x)
    assert found.mean.shape == found.stddev.shape == (9, 2)
    one_chain = replace(ensemble.picked(lambda values: values[:1]), chain_weights=np.ones(1))
    single = [gradient_of_draw(one_chain, draw, x) for draw in range(ensemble.num_results)]
    one_chain = BayesianMLP.from_ensemble(one_chain)
    np.testing.assert_allclose(one_chain.predict_gradient(x).stddev, np.std(single, axis=0))
    monkeypatch.setattr("tfbnn.posterior.gradient._TILE_VALUES", 1)
    again = BayesianMLP.from_ensemble(ensemble).predict_gradient(x)
    np.testing.assert_allclose(again, found, rtol=1e-12)


def test_gradients_of_infinite_width_take_bounded_memory(monkeypatch):
    model, sizes = BayesianMLP.from_ensemble(infinite.ensemble()), []
    original = process_predictions.input_slopes

    def recorded(names, layers, x, z, stages):
        sizes.append(x.size * len(z))
        return original(names, layers, x, z, stages)

    x = np.random.default_rng(0).normal(size=(60, 2))
    expected = model.predict_gradient(x)
    monkeypatch.setattr(process_predictions, "input_slopes", recorded)
    monkeypatch.setattr("tfbnn.posterior.gradient._TILE_VALUES", 500)
    np.testing.assert_allclose(model.predict_gradient(x), expected, rtol=1e-9)
    assert max(sizes) <= 500
