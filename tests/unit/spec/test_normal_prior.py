"""`Normal` with a mean and with arrays: settings, files, draws, and what refuses them."""

import json

import numpy as np
import pytest

import tfbnn
from tests.support.copies import random_copies
from tfbnn import priors
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import REGISTRY, draw_parameters
from tfbnn.spec.priors import FrozenArray
from tfbnn.spec.settings_json import settings_from_json, settings_to_json

KERNEL = np.array([[0.5, -1.0, 1e-3], [2.0, 1 / 3, 7.0]])
ARRAYS = {"kernel": priors.Normal(0.1, loc=KERNEL), "bias": priors.Normal([0.1, 0.2, 0.3])}


def model(prior, **settings):
    settings = {"x_transform": None, "y_transform": None} | settings
    return tfbnn.BayesianMLP([2, 3, 1], prior=prior, **settings)


def test_files_that_know_of_no_mean_say_and_read_the_same():
    assert settings_to_json(priors.Normal(2.0)) == {"name": "Normal", "scale": 2.0}
    assert settings_from_json({"name": "Normal", "scale": 2.0}, REGISTRY) == priors.Normal(2.0)
    assert repr(priors.Normal(2.0)) == "Normal(scale=2.0)"


def test_a_spec_with_arrays_comes_back_from_json_to_the_bit():
    spec = model([ARRAYS, priors.Normal(1.0, loc=-0.1)]).spec
    again = ModelSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec and hash(again) == hash(spec)
    assert np.array_equal(again.priors[0].kernel.loc.values, KERNEL)
    assert again.priors[1].kernel.loc == -0.1


def test_the_array_is_a_copy_that_nobody_can_change():
    given = KERNEL.copy()
    prior = priors.Normal(loc=given)
    given[:] = 0
    assert np.array_equal(prior.loc.values, KERNEL)
    with pytest.raises(ValueError, match="read-only"):
        prior.loc.values[0] = 1
    assert prior == priors.Normal(loc=KERNEL) != priors.Normal(loc=2 * KERNEL)
    assert "shape [2, 3]" in repr(prior) and len(repr(prior)) < 80


def test_draws_have_the_means_and_spreads_of_the_arrays():
    spec = model([ARRAYS, priors.Normal(1.0, loc=5.0)]).spec
    generator = np.random.default_rng(0)
    draws = np.stack([draw_parameters(spec, generator) for _ in range(4000)])
    kernel, bias = spec.layout.kernels_and_biases(draws)[0]
    # Four standard errors of 4000 draws.
    assert np.abs(kernel.mean(axis=0) - KERNEL).max() < 4 * 0.1 / 4000**0.5
    assert np.abs(bias.std(axis=0) / [0.1, 0.2, 0.3] - 1).max() < 4 / 8000**0.5
    assert np.abs(draws[:, spec.layout.layers[1].kernel.weights].mean() - 5) < 4 / 12000**0.5


@pytest.mark.parametrize(
    "prior, message",
    [
        (priors.Normal(loc=KERNEL), r"'layer 1 bias' has shape \[3\], received .* \[2, 3\]"),
        (
            [priors.Normal(), {"kernel": priors.Normal([1, 1, 1]), "bias": priors.Normal()}],
            r"\[3, 1\]",
        ),
    ],
)
def test_arrays_of_another_shape_are_refused(prior, message):
    with pytest.raises(ValueError, match=message):
        model(prior)


@pytest.mark.parametrize("prior", [priors.Normal(loc=0.5), [ARRAYS, priors.Normal()]])
def test_ntk_needs_one_scale_about_zero(prior):
    with pytest.raises(ValueError, match="has no scale that the ntk .*'standard'"):
        model(prior, parameterization="ntk")


@pytest.mark.parametrize(
    "settings, error, message",
    [
        ({"scale": [1.0, 0.0]}, ValueError, "scale must be above 0 everywhere, received 0"),
        ({"loc": [np.nan]}, ValueError, "loc must hold finite numbers"),
        ({"loc": "zero"}, TypeError, "loc must be a number"),
        ({"scale": []}, ValueError, "scale must hold finite numbers"),
        ({"scale": [1.0, 2.0], "loc": [0.0]}, ValueError, "scale and loc must have one shape"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, error, message):
    with pytest.raises(error, match=message):
        priors.Normal(**settings)


@pytest.mark.parametrize("shape, data", [((3,), "AAAA"), ((-1,), ""), ((1,), "AAAAAAAA8H8=")])
def test_crafted_arrays_are_refused(shape, data):
    with pytest.raises(ValueError, match="array|shape"):
        FrozenArray(shape, data)


def test_signs_of_units_are_not_turned_under_a_prior_with_a_mean():
    even, located = model(priors.Normal()).spec, model([ARRAYS, priors.Normal()]).spec
    assert even.priors[0].kernel.is_even and not located.priors[0].kernel.is_even


def test_the_summary_names_the_arrays_by_their_shape():
    lines = []
    model([ARRAYS, priors.Normal()]).summary(lines.append)
    assert "Normal(0.1, array of shape [2, 3])" in lines[0]


def test_units_are_not_alike_where_weights_have_priors_of_their_own():
    """But where they all have one mean they are, with other signs aside."""
    generator = np.random.default_rng(0)
    own, shifted = model([ARRAYS, priors.Normal()]).spec, model(priors.Normal(1.0, loc=0.5)).spec
    theta = generator.normal(size=(20, own.num_parameters))
    assert np.array_equal(random_copies(own, theta, generator), theta)
    moved = random_copies(shifted, theta[:, : shifted.num_parameters], generator)
    assert not np.array_equal(moved, theta)
    assert np.array_equal(np.sort(moved, axis=1), np.sort(theta, axis=1))


def test_an_array_without_axes_is_a_number():
    prior = priors.Normal(np.array(0.5))
    assert prior == priors.Normal(0.5) and hash(prior) == hash(priors.Normal(0.5))
