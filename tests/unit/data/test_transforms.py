"""Transforms: inverse, derivative, columns that cannot be standardised, JSON."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tfbnn.data.transforms import (
    Log10,
    Pipeline,
    Standardize,
    checked_forward,
    fit_pipeline,
    parse_names,
)
from tfbnn.exceptions import DataWarning
from tfbnn.spec.distributions import normal_quantile

NAMES = [(), ("standardize",), ("log10",), ("log10", "standardize")]
AFFINE = [(), ("standardize",)]

each_pipeline = pytest.mark.parametrize("names", NAMES, ids="+".join)
quick = settings(max_examples=30, deadline=None, derandomize=True)


def positive_matrix(low=-30.0, high=30.0):
    """Matrices of two to six rows whose entries spread over 10^low .. 10^high."""
    shapes = st.tuples(st.integers(2, 6), st.integers(1, 3))
    exponents = st.floats(low, high, allow_nan=False)
    return shapes.flatmap(lambda shape: hnp.arrays(float, shape, elements=exponents)).map(
        lambda exponent: 10.0**exponent
    )


def fit_quietly(names, values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return fit_pipeline(names, values, "y")


@each_pipeline
@quick
@given(values=positive_matrix())
def test_inverse_undoes_forward(names, values):
    pipeline = fit_quietly(names, values)
    back = pipeline.inverse(pipeline.forward(values))
    # Shifting by the mean rounds at 1e-16 of the largest value of a column; a logarithm of up to
    # 30 rounds at 4e-15, which the power turns into 1e-14 of the value.
    largest = values.max(axis=0)
    tolerance = 1e-15 * largest if names in AFFINE else 1e-12 * values
    assert np.all(np.abs(back - values) <= tolerance + 1e-12 * values)


@each_pipeline
@quick
@given(values=positive_matrix(-5.0, 5.0))
def test_derivative_agrees_with_finite_differences(names, values):
    pipeline = fit_quietly(names, values)
    step = 1e-5 * values
    expected = (pipeline.forward(values + step) - pipeline.forward(values - step)) / (2 * step)
    found = pipeline.derivative(values)
    assert found.shape == values.shape
    # Truncation is step^2 / 3 = 3e-11; rounding of forward, over the step, is what dominates.
    size = np.abs(pipeline.forward(values)) + np.abs(found) * values.max(axis=0)
    np.testing.assert_array_less(np.abs(found - expected), 1e-9 * found + 1e-14 * size / step)


@quick
@given(values=positive_matrix(-1.0, 1.0), exponents=st.lists(st.integers(-300, 300), min_size=3))
def test_standardised_columns_have_mean_zero_and_unit_scale(values, exponents):
    """Each column by its own scale, also where squares leave the range of numbers."""
    values = values * 10.0 ** np.array(exponents[: values.shape[1]])
    spread = np.ptp(values, axis=0) > 1e-3 * values.max(axis=0)
    result = fit_quietly(("standardize",), values).forward(values)[:, spread]
    # The mean is rounded at 1e-16 of the values, which are up to 1e3 spreads large.
    np.testing.assert_allclose(result.mean(axis=0), 0.0, atol=1e-11)
    np.testing.assert_allclose(result.std(axis=0), 1.0, rtol=1e-11)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e30, 1e-300, 12345.678])
def test_a_constant_column_is_shifted_and_named_in_a_warning(value):
    values = np.column_stack([np.arange(7.0), np.full(7, value)])
    with pytest.warns(DataWarning, match=r"Columns \[1\] of x are constant"):
        pipeline = fit_pipeline(("standardize",), values, "x")
    assert pipeline.steps[0].scale[1] == 1.0
    # The mean of equal numbers is one rounding away from them.
    np.testing.assert_allclose(pipeline.forward(values)[:, 1], 0.0, atol=1e-15 * abs(value))


def test_large_integers_that_differ_are_scaled():
    values = 2.0**53 - np.arange(1000.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline = fit_pipeline(("standardize",), values, "x")
    assert pipeline.forward(values).std() == pytest.approx(1.0, rel=1e-3)


def test_a_column_whose_mean_overflows_is_refused_by_number():
    values = np.array([[1.0, 1.7e308], [2.0, 1.6e308]])
    with pytest.raises(ValueError, match=r"Columns \[1\] of x are too large"):
        fit_pipeline(("standardize",), values, "x")


@pytest.mark.parametrize("bad", [0.0, -3.0])
def test_log10_refuses_what_is_not_positive(bad):
    values = np.array([[1.0], [2.0], [bad]])
    with pytest.raises(ValueError, match=r"y must be positive.*\(-?[03].*row 2"):
        fit_pipeline(("log10",), values, "y")
    fitted = fit_pipeline(("log10", "standardize"), np.array([[1.0], [2.0]]), "y")
    with pytest.raises(ValueError, match="y must be positive"):
        checked_forward(fitted, values, "y")


def test_steps_act_in_the_order_given():
    values = np.array([[1.0], [10.0], [100.0]])
    pipeline = fit_pipeline(("log10", "standardize"), values, "y")
    expected = (np.array([[0.0], [1.0], [2.0]]) - 1.0) / np.sqrt(2.0 / 3.0)
    np.testing.assert_allclose(pipeline.forward(values), expected, rtol=1e-15, atol=1e-15)


@each_pipeline
def test_only_pipelines_without_logarithm_are_affine(names):
    values = np.array([[1.0], [2.0], [5.0]])
    assert fit_pipeline(names, values, "y").is_affine == (names in AFFINE)


@each_pipeline
@quick
@given(values=positive_matrix())
def test_json_round_trip_is_exact(names, values):
    pipeline = fit_quietly(names, values)
    text = json.dumps(pipeline.to_json(), allow_nan=False)
    assert Pipeline.from_json(json.loads(text)) == pipeline


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "exec"},
        {"name": "standardize", "mean": [0.0], "scale": [0.0]},
        {"name": "standardize", "mean": [0.0], "scale": [-1.0]},
        {"name": "standardize", "mean": [0.0], "scale": [float("nan")]},
        {"name": "standardize", "mean": [float("inf")], "scale": [1.0]},
        {"name": "standardize", "mean": [0.0, 1.0], "scale": [1.0]},
        {"name": "standardize", "mean": 0.0, "scale": [1.0]},
        "log10",
    ],
    ids=str,
)
def test_json_that_describes_no_pipeline_is_refused(entry):
    with pytest.raises((TypeError, ValueError)):
        Pipeline.from_json([entry])


def test_names_are_given_as_none_a_name_or_a_list():
    names = ("log10", "standardize")
    for value, expected in ((None, ()), ("log10", names[:1]), ([*names], names)):
        assert parse_names(value, "y_transform") == expected
    for value in ("standardise", ["log"], 3, [None]):
        error = ValueError if value in ("standardise", ["log"]) else TypeError
        with pytest.raises(error, match="y_transform must .*log10.*standardize"):
            parse_names(value, "y_transform")


@pytest.mark.parametrize("before", [(), (Standardize((3.0,), (2.0,)),)])
@pytest.mark.parametrize("behind", [(), (Standardize((0.5,), (0.7,)),)])
def test_moments_of_normal_noise_behind_a_logarithm_are_those_of_quantiles(before, behind):
    pipeline = Pipeline((*before, Log10(), *behind))
    levels = (np.arange(200_000) + 0.5) / 200_000
    t, scale = np.array([0.3, -1.0]), np.array([0.1, 0.3])
    points = pipeline.inverse(t + scale * normal_quantile(levels)[:, None])
    mean, stddev = pipeline.moments_of_normal(t, scale)
    np.testing.assert_allclose(mean, points.mean(axis=0), rtol=3e-4)
    np.testing.assert_allclose(stddev, points.std(axis=0), rtol=3e-3)
    assert Pipeline((Log10(), Log10())).moments_of_normal(t, scale) is None
    affine = Pipeline((*before, *behind)).moments_of_normal(t, scale)[1]
    np.testing.assert_allclose(
        affine, np.diff(Pipeline((*before, *behind)).inverse(np.stack([t, t + scale])), axis=0)[0]
    )
