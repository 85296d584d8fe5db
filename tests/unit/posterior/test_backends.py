"""Predictions by NumPy and by TensorFlow, and who chooses."""

import sys
from functools import partial

import numpy as np
import pytest

from tests.support.linearised import linearised_ensemble
from tests.support.predictions import (
    CONFIGURATIONS,
    assert_same,
    each_configuration,
    pick,
    rows_for,
)
from tfbnn import BayesianMLP
from tfbnn.posterior.forward import network_outputs

pytestmark = pytest.mark.tensorflow


def is_transposed(factor):
    """Return whether the lines of a factor lie across memory, as BLAS is told of them."""
    return min(factor.shape[-2:]) > 1 and factor.strides[-2] < factor.strides[-1]


@pytest.mark.filterwarnings("ignore:The draws of this model are not sampled")
@each_configuration
@pytest.mark.parametrize("make", [None, linearised_ensemble], ids=["networks", "linearised"])
def test_no_product_has_two_transposed_factors(
    synthetic_ensemble, configuration, make, monkeypatch
):
    """BLAS may get such float32 products wrong that several threads make, see `with_ones`."""
    ensemble = (make or synthetic_ensemble)(dtype="float32", **configuration)
    model, (x, _) = BayesianMLP.from_ensemble(ensemble), rows_for(ensemble)
    factors, multiply = [], np.matmul
    monkeypatch.setattr(
        np, "matmul", lambda *both, **options: factors.append(both) or multiply(*both, **options)
    )
    model.predict(np.asfortranarray(x))
    if make is None:
        model.predict_gradient(x)
    assert factors
    assert not [both for both in factors if all(map(is_transposed, both))]


@pytest.fixture
def with_gpu(monkeypatch):
    """A GPU, as far as predictions can see, and every batch is large enough for it."""
    pytest.importorskip("tensorflow")  # which has to be there before
    monkeypatch.setattr("tfbnn.engine.basis.compile.has_gpu", lambda: True)
    return lambda: monkeypatch.setattr("tfbnn.posterior.forward._GPU_VALUES", 1)


def test_tensorflow_agrees_with_numpy(synthetic_ensemble, with_gpu):
    """In float64 and without a hidden layer; test_potential.py holds all others to NumPy."""
    ensemble = synthetic_ensemble(**CONFIGURATIONS["linear"])
    model, (x, _) = BayesianMLP.from_ensemble(ensemble), rows_for(ensemble, num_rows=11)
    options = {"quantiles": [0.1, 0.9], "include_noise": True}
    expected = model.predict(x, **options)
    with_gpu()
    assert_same(model.predict(x, **options), expected, rtol=1e-5)


def test_few_programs_are_compiled_and_draws_are_tiled(single, monkeypatch, with_gpu):
    from tfbnn.engine.export import tensorflow_forward

    model, x = single
    expected = model.predict(x)
    monkeypatch.setattr(
        "tfbnn.engine.density.network._HIDDEN_VALUES", 8 * 64 * 30
    )  # 30 draws of 80, then 20
    tensorflow_forward._compiled_outputs.cache_clear()
    with_gpu()
    for num_rows in (60, 33, 40, 64, 50):
        found = model.predict(x[:num_rows])
        assert_same(found, pick(expected, slice(num_rows)), rtol=1e-5)
    function = tensorflow_forward._compiled_outputs(model.posterior.spec)
    assert function.experimental_get_tracing_count() == 2


def test_a_gpu_gets_large_batches_only(single, monkeypatch, with_gpu):
    model, x = single
    used = []
    monkeypatch.setattr(
        "tfbnn.engine.export.tensorflow_forward.make_forward",
        lambda ensemble: used.append(1) or partial(network_outputs, ensemble),
    )
    model.predict(x)
    assert not used
    monkeypatch.setattr("tfbnn.posterior.forward._GPU_VALUES", len(x) * model.posterior.num_draws)
    model.predict(x)
    assert used


def test_numpy_predicts_large_batches_where_tensorflow_is_forbidden(single, monkeypatch):
    model, x = single
    expected = model.predict(x).mean
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.setattr("tfbnn.posterior.forward._GPU_VALUES", 1)
    np.testing.assert_array_equal(model.predict(x).mean, expected)
