"""Copies of a network that are the same function."""

import numpy as np
import pytest

from tests.support.builders import plain_spec, synthetic_ensemble
from tests.support.copies import random_copies
from tfbnn.posterior.prediction import function_draws
from tfbnn.priors import Uniform
from tfbnn.spec.symmetries import aligned

X = np.random.default_rng(5).normal(size=(7, 2))


@pytest.mark.parametrize(
    "settings",
    [
        {"activation": ["tanh", "sin"]},
        {"activation": "relu"},
        {"activation": "sigmoid", "parameterization": "ntk"},
        {"prior": Uniform(-2.0, 3.0)},
    ],
    ids=str,
)
def test_copies_are_the_same_function(settings):
    ensemble = synthetic_ensemble((2, 4, 3, 1), **settings)
    theta = ensemble.draws.reshape(-1, ensemble.draws.shape[-1])
    copies = random_copies(ensemble.spec, theta, np.random.default_rng(0))
    assert np.mean(copies != theta) > 0.3
    np.testing.assert_allclose(
        function_draws(ensemble.with_draws(copies[None]), X), function_draws(ensemble, X), rtol=1e-9
    )
    assert np.all(np.sort(np.abs(copies), axis=1) == np.sort(np.abs(theta), axis=1))


@pytest.mark.parametrize(
    "settings, turns",
    [
        ({"activation": "tanh"}, True),
        ({"activation": "relu"}, False),
        ({"activation": "tanh", "prior": Uniform(-1.0, 1.0)}, True),
        ({"activation": "tanh", "prior": Uniform(-1.0, 2.0)}, False),
    ],
    ids=str,
)
def test_signs_turn_where_activation_and_priors_allow_it(settings, turns):
    spec = plain_spec((2, 30, 1), **settings)
    theta = np.abs(np.random.default_rng(1).normal(size=(1, spec.layout.num_parameters)))
    copies = random_copies(spec, theta, np.random.default_rng(2))
    assert (copies[:, : spec.layout.num_weights] < 0).any() == turns


def test_all_copies_of_a_network_come_back_to_one():
    spec = plain_spec((2, 5, 4, 1))
    generator = np.random.default_rng(3)
    reference = generator.normal(size=spec.layout.num_parameters)
    copies = random_copies(spec, np.tile(reference, (20, 1)), generator)
    found, has_moved = aligned(spec, copies, reference)
    np.testing.assert_array_equal(found, np.tile(reference, (20, 1)))
    assert has_moved.all() and not aligned(spec, found, reference)[1].any()


def test_copies_of_any_network_come_to_one_beside_a_reference():
    spec = plain_spec((2, 5, 4, 1))
    generator = np.random.default_rng(4)
    reference, other = generator.normal(size=(2, spec.layout.num_parameters))
    copies = random_copies(spec, np.tile(other, (20, 1)), generator)
    found, _ = aligned(spec, copies, reference)
    np.testing.assert_array_equal(found, np.tile(found[0], (20, 1)))
    found, has_moved = aligned(spec, np.vstack([reference, copies]), reference)
    for index, network in enumerate((reference, *copies)):
        alone = aligned(spec, network[None], reference)
        np.testing.assert_array_equal(found[index], alone[0][0])
        assert has_moved[index] == alone[1][0] == (index > 0)
