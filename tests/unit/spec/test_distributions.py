"""Distribution functions against SciPy's."""

import numpy as np
import pytest
from scipy import special

from tfbnn.spec.distributions import normal_cdf, normal_quantile, student_t_cdf, student_t_quantile

# Of the sizes that 4096 points of noise and a million draws have.
LEVELS = np.concatenate([(np.arange(4097) + 0.37) / 4097, [1e-7, 1.0 - 1e-7, 0.5]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_normal_distribution_function_is_that_of_scipy(dtype):
    x = np.concatenate([np.linspace(-45.0, 45.0, 20_001), [-1e30, 1e30, 0.0]]).astype(dtype)
    found = normal_cdf(x)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, special.ndtr(x.astype(np.float64)), rtol=0, atol=1e-15)


def test_far_out_the_normal_distribution_function_is_exactly_zero_and_one():
    """A wild draw times its distribution function must not become something."""
    np.testing.assert_array_equal(normal_cdf(np.array([-1e30, -50.0, 50.0, 1e30])), [0, 0, 1, 1])
    assert np.isnan(normal_cdf(np.array([np.nan]))).all()


def test_normal_quantiles_are_those_of_scipy():
    levels = LEVELS.reshape(-1, 4)
    np.testing.assert_allclose(normal_quantile(levels), special.ndtri(levels), rtol=1e-14)


@pytest.mark.parametrize("df", [2.001, 2.5, 3.0, 4.0, 7.3, 30.0, 1e4, 1e15])
def test_student_t_quantiles_are_those_of_scipy(df):
    found = student_t_quantile(LEVELS, df)
    # SciPy's own inverse is off by 2e-12 in the middle; its distribution function is not.
    np.testing.assert_allclose(found, special.stdtrit(df, LEVELS), rtol=1e-12, atol=4e-12)
    np.testing.assert_allclose(special.stdtr(df, found), LEVELS, rtol=3e-13)


def test_student_t_quantiles_of_two_degrees_of_freedom_in_closed_form():
    levels = LEVELS.reshape(4, -1)
    expected = (2.0 * levels - 1.0) / np.sqrt(2.0 * levels * (1.0 - levels))
    np.testing.assert_allclose(student_t_quantile(levels, 2.0), expected, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("df", [1.0, 2.5, 4.0, 30.0, 300.0])
def test_the_student_t_distribution_function_is_that_of_scipy(df):
    t = np.concatenate([np.linspace(-40.0, 40.0, 4001), [-1e6, 1e6, -1e-3]]).reshape(4, -1)
    found = student_t_cdf(t, df)
    np.testing.assert_allclose(found, special.stdtr(df, t), rtol=1e-12, atol=1e-30)
    assert np.isnan(student_t_cdf(np.array([np.nan]), df)).all()
