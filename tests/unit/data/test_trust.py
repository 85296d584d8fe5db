"""Trust levels: what is inside, at the edge and outside, and what share of like rows is which."""

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows, synthetic_ensemble
from tfbnn import BayesianMLP
from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.data.transforms import fit_pipeline
from tfbnn.exceptions import DataWarning
from tfbnn.trust import EDGE, INSIDE, OUTSIDE, trust_levels


def correlated(num_rows, seed):
    """Three inputs, two of them with a correlation of 0.99, one with heavy tails."""
    generator = np.random.default_rng(seed)
    first, other = generator.normal(size=(2, num_rows))
    third = generator.standard_t(5, size=num_rows)
    return np.column_stack([first, 0.99 * first + 0.14 * other, third])


def shares(levels):
    return {level: np.mean(levels == level) for level in (INSIDE, EDGE, OUTSIDE)}


@pytest.fixture(scope="module")
def training():
    return summarise_inputs(correlated(4000, 0))


def test_the_distance_is_the_mahalanobis_distance(training):
    x = correlated(20, 1)
    deviation = x - training.mean
    expected = [np.sqrt(d @ np.linalg.solve(training.covariance, d)) for d in deviation]
    np.testing.assert_allclose(training.distance(x), expected)


def test_the_kept_distances_are_those_of_the_training_rows(training):
    distances = np.sort(training.distance(correlated(4000, 0)))
    np.testing.assert_allclose(training.distances * (1 - 3 / 3999), distances[[3959, 3999]])


@pytest.mark.parametrize("alone", ["a flag", "an outlier"])
def test_one_row_of_its_own_does_not_hide_others(alone):
    x = correlated(90, 5)
    if alone == "a flag":
        x = np.column_stack([x, np.eye(90, 1)])
    else:
        x[0] = 1e3, -1e3, 0.0
    probe = np.append([[2.0, -2.0, 0.0]], np.zeros((1, x.shape[1] - 3)), axis=1)
    training = summarise_inputs(x)
    assert training.distances[1] < 1.1 * training.distance(x).max()
    assert alone == "an outlier" or trust_levels(training, probe).tolist() == [OUTSIDE]


def test_with_fewer_rows_than_inputs_each_new_row_is_far():
    first, fresh = np.random.default_rng(9).normal(size=(2, 30, 40))
    assert (trust_levels(summarise_inputs(first), fresh) == OUTSIDE).all()


def test_rows_like_few_training_rows_are_within_the_distances():
    first, fresh = np.random.default_rng(9).normal(size=(2, 100, 30))
    training = summarise_inputs(first)
    # Without the factor for new rows, 42 and 9 of 100 rows are beyond.
    assert np.sum(training.distance(fresh) > training.distances[0]) <= 5
    assert np.sum(training.distance(fresh) > 1.1 * training.distances[1]) == 0


def test_rows_like_the_training_rows_are_inside(training):
    own = shares(trust_levels(training, correlated(4000, 0)))
    assert own[INSIDE] == 0.99025 and own[OUTSIDE] == 0  # almost 1 % are at the edge
    fresh = shares(trust_levels(training, correlated(20_000, 2)))
    # Expected 0.9896 and 0.0003; four standard deviations of the quantile of 4000 rows are 0.0065.
    assert 0.982 < fresh[INSIDE] < 0.996 and fresh[OUTSIDE] < 0.002


def test_an_empty_corner_of_the_box_is_outside(training):
    corner = np.array([[1.5, -1.5, 0.0]])
    assert np.all((training.low < corner) & (corner < training.high))
    assert trust_levels(training, corner).tolist() == [OUTSIDE]


def test_the_edge_is_a_tenth_of_the_range():
    training = summarise_inputs(np.linspace(0.0, 10.0, 5)[:, None])
    x = np.array([[-1.01], [-0.99], [0.0], [5.0], [10.0], [10.4], [11.01]])
    assert trust_levels(training, x).tolist() == [-1, 0, 1, 1, 1, 0, -1]


def test_a_constant_input_must_stay_what_it_was():
    x = np.column_stack([np.linspace(0, 1, 50), np.full(50, 0.1)])
    levels = trust_levels(summarise_inputs(x), np.array([[0.5, 0.1], [0.5, 0.1 + 1e-5]]))
    assert levels.tolist() == [INSIDE, OUTSIDE]


@pytest.mark.parametrize("transform", [None, "standardize"])
@pytest.mark.parametrize("value", [0.1, 13.6, 1234.567, 1e7 / 3.0, 1e-12 / 3.0])
def test_float32_rounds_constant_inputs(transform, value):
    x = np.column_stack([np.linspace(0, 1, 50), np.full(50, value)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        pipeline = fit_pipeline((transform,) if transform else (), x, "x")
    inputs = summarise_inputs(pipeline.forward(x))
    ensemble = replace(synthetic_ensemble(), x_pipeline=pipeline, training_inputs=inputs)
    rounded = x.astype(np.float32).astype(float)
    assert (ensemble.trust(pipeline.forward(rounded)) == INSIDE)[1:-1].all()
    rounded[:, 1] *= 1.0 + 1e-4
    assert (ensemble.trust(pipeline.forward(rounded)) == OUTSIDE).all()


def test_inputs_that_depend_on_each_other_must_go_on_doing_so():
    first = np.random.default_rng(3).uniform(-1, 1, 200)
    training = summarise_inputs(np.column_stack([first, 1e4 * first]))
    levels = trust_levels(training, np.array([[0.3, 3000.0], [0.3, 3100.0]]))
    assert levels.tolist() == [INSIDE, OUTSIDE]


def test_with_very_many_inputs_the_variances_alone_count():
    x = np.random.default_rng(4).normal(size=(30, 1200))
    training = summarise_inputs(x)
    expected = np.sqrt(np.sum((x - x.mean(axis=0)) ** 2 / x.var(axis=0), axis=1))
    np.testing.assert_allclose(training.distance(x), expected)
    assert (trust_levels(training, x) == INSIDE).sum() == 30
    assert (trust_levels(training, 3 * x) == OUTSIDE).all()


def test_predictions_carry_trust_only_when_asked(fitted, tmp_path):
    x = np.vstack([make_rows(50, 2, 1)[0], [[50.0, 0.0]]])  # those it was made with, and one more
    assert fitted.predict(x).trust is None
    fitted.save(tmp_path / "model.h5")
    for model in (fitted, tfbnn.load(tmp_path / "model.h5")):
        prediction = model.predict(x, return_trust=True)
        assert (prediction.trust[:-1] == INSIDE).sum() >= 49 and prediction.trust[-1] == OUTSIDE
        np.testing.assert_array_equal(prediction.mean, model.predict(x).mean)


def test_distance_is_on_the_scale_the_network_sees(synthetic_ensemble):
    ensemble = synthetic_ensemble()
    x = ensemble.x_reference * 3.0 + 7.0
    scaled = replace(ensemble, training_inputs=summarise_inputs(ensemble.x_pipeline.forward(x)))
    trust = BayesianMLP.from_ensemble(scaled).predict(x, return_trust=True).trust
    assert (trust == INSIDE).all()


@pytest.mark.realdata
def test_held_out_cross_sections_are_inside():
    path = Path(os.environ["TFBNN_DATA"]) / "nlo_neutralino" / "chi10chi10.csv"
    table = np.loadtxt(path, delimiter=",", skiprows=1, usecols=[*range(1, 6), 8])
    x, split = table[:, :-1], table[:, -1]
    x = x / x[split == 0].std(axis=0)
    found = shares(trust_levels(summarise_inputs(x[split == 0]), x[split == 2]))
    assert 0.98 < found[INSIDE] < 1 and found[OUTSIDE] == 0
