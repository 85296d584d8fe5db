"""Targets in units of any size: predictions and scores carry the unit, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.builders import make_rows
from tests.support.predictions import LOG
from tfbnn import BayesianMLP
from tfbnn.data.transforms import Log10, Pipeline, Standardize
from tfbnn.posterior.averages import moments, root_mean_square

QUANTILES = [0.16, 0.5, 0.84]
# Powers of two, so that units change no digit where they should not: about 1e-300, 1e-170, 1e300.
each_unit = pytest.mark.parametrize("unit", [2.0**-996, 2.0**-565, 2.0**532, 2.0**996])


def in_units(ensemble, unit):
    """The ensemble of the same networks for targets in other units."""
    *first, step = ensemble.y_pipeline.steps
    mean, scale = step.mean[0], step.scale[0]
    if first:
        step = Standardize((mean + np.log10(unit),), (scale,))
    else:
        step = Standardize((mean * unit,), (scale * unit,))
    return replace(ensemble, y_pipeline=Pipeline((*first, step)))


def assert_the_same_in_units(one, other, x, unit, rtol):
    for settings in ({}, {"include_noise": True}):
        expected = BayesianMLP.from_ensemble(one).predict(x, quantiles=QUANTILES, **settings)
        found = BayesianMLP.from_ensemble(other).predict(x, quantiles=QUANTILES, **settings)
        for name in ("mean", "stddev", "quantiles"):
            value, wanted = getattr(found, name) / unit, getattr(expected, name)
            np.testing.assert_allclose(value, wanted, rtol=rtol, err_msg=name)


@each_unit
@pytest.mark.parametrize("settings", [{}, {"y_transform": LOG}], ids=["affine", "logarithm"])
def test_predictions_carry_the_unit(synthetic_ensemble, settings, unit):
    ensemble = synthetic_ensemble(**settings)
    if settings:  # log10 of the unit is rounded, and the spread kept below 1e8, the end of numbers
        ensemble = replace(ensemble, draws=0.2 * ensemble.draws)
        assert isinstance(ensemble.y_pipeline.steps[0], Log10)
    x = make_rows(7, 2, 1, seed=5)[0]
    rtol = 1e-10 if settings else 1e-13
    assert_the_same_in_units(ensemble, in_units(ensemble, unit), x, unit, rtol)


@each_unit
def test_scores_carry_the_unit(synthetic_ensemble, unit):
    ensemble = synthetic_ensemble()
    x, y = make_rows(20, 2, 1, seed=5)
    expected = BayesianMLP.from_ensemble(ensemble).evaluate(x, y)
    found = BayesianMLP.from_ensemble(in_units(ensemble, unit)).evaluate(x, y * unit)
    for name in ("rmse", "crps", "interval_score"):
        np.testing.assert_allclose(found.pop(name) / unit, expected.pop(name), rtol=1e-12)
    shift = found.pop("log_predictive_density") + np.log(unit)
    np.testing.assert_allclose(shift, expected.pop("log_predictive_density"), rtol=1e-12)
    for name, value in expected.items():
        if isinstance(value, dict):
            assert found[name] == value
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-12, err_msg=name)


def test_moments_have_the_digits_of_the_plain_formula():
    generator = np.random.default_rng(0)
    values, weights = generator.normal(3.0, 2.0, size=(50, 4, 3)), generator.dirichlet(np.ones(50))
    mean, stddev = moments(values, weights)
    plain = np.sqrt(np.einsum("s,snk->nk", weights, np.square(values - mean)))
    np.testing.assert_array_equal(stddev, plain)


def test_root_mean_squares_of_zeros_and_of_the_smallest_and_largest_numbers():
    smallest, largest = np.finfo(float).smallest_subnormal, np.finfo(float).max
    values = np.array([[0.0, smallest, -largest, 1.0]] * 2)
    found = root_mean_square(values, np.full(2, 0.5))
    np.testing.assert_allclose(found, [0.0, smallest, largest, 1.0], rtol=1e-15)
    assert np.isposinf(root_mean_square(np.array([[np.inf], [1.0]]), np.full(2, 0.5)))
