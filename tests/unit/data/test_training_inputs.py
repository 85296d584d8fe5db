"""The summary of the training inputs, and that a fit and a file keep it."""

import numpy as np
import pytest

import tfbnn
from tests.support.entries import fake_fit
from tfbnn.data.training_inputs import MAX_COVARIANCE_INPUTS, summarise_inputs


def test_range_mean_and_covariance():
    x = np.random.default_rng(0).normal(size=(50, 3)) @ [[1, 2, 0], [0, 1, 0], [0, 0, 3]] + 5.0
    found = summarise_inputs(x)
    np.testing.assert_array_equal(found.low, x.min(axis=0))
    np.testing.assert_array_equal(found.high, x.max(axis=0))
    np.testing.assert_allclose(found.mean, x.mean(axis=0))
    np.testing.assert_allclose(found.covariance, np.cov(x, rowvar=False, bias=True))


@pytest.mark.parametrize("num_inputs", [2, MAX_COVARIANCE_INPUTS + 1])
def test_a_row_that_stands_for_three_is_three_rows(num_inputs):
    x, times = np.random.default_rng(2).normal(size=(40, num_inputs)), np.ones(40)
    times[:10] = 3.0
    found, repeated = summarise_inputs(x, times), np.repeat(x, times.astype(int), 0)
    for name, value in vars(summarise_inputs(repeated)).items():
        np.testing.assert_allclose(getattr(found, name), value, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("rows", [1, 2])
def test_few_rows_and_constant_columns(rows):
    found = summarise_inputs(np.full((rows, 2), 0.1))
    assert (found.covariance == 0).all() and (found.low == found.high).all()


def test_inputs_whose_covariance_overflows_are_refused():
    with pytest.raises(ValueError, match=r"up to 1e\+200 after .*standardize"):
        summarise_inputs(np.array([[1e200], [-1e200]]))


@pytest.mark.tensorflow
def test_a_fit_keeps_them_and_the_diagnosis(engine, tiny_data, tmp_path):
    model = tfbnn.BayesianMLP([2, 8, 1])
    fake_fit(model, *tiny_data, num_results=40)
    model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5").posterior
    x = loaded.x_pipeline.forward(tiny_data[0])
    np.testing.assert_allclose(loaded.training_inputs.low, x.min(axis=0), rtol=1e-12)
    np.testing.assert_allclose(loaded.training_inputs.high, x.max(axis=0), rtol=1e-12)
    expected = np.cov(x, rowvar=False, bias=True)
    np.testing.assert_allclose(loaded.training_inputs.covariance, expected, rtol=1e-9)
    assert loaded.diagnostics == model.posterior.diagnostics
    largest = model.diagnose().rhat_function.max()
    assert loaded.diagnostics["function"]["rhat"]["max"] == pytest.approx(largest)
