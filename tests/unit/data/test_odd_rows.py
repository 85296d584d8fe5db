"""Rows that are odd but usable."""

import warnings

import numpy as np
import pytest

import tfbnn
from tests.support.entries import NUM_ROWS, X, Y, fake_fit
from tfbnn import BayesianMLP, DataWarning

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("sizes", [[2, 50, 1], [1, 5, 1]], ids=str)
@pytest.mark.parametrize("num_rows", [1, 2])
def test_few_rows_are_enough(sizes, num_rows, engine):
    model = BayesianMLP(sizes)
    # The first two rows differ in every column.
    x, y = X[:num_rows, : sizes[0]], Y[:num_rows]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fake_fit(model, x, y)
    assert any("only one row" in str(entry.message) for entry in caught) == (num_rows == 1)
    assert np.isfinite(model.predict(X[:, : sizes[0]]).mean).all()
    assert np.isfinite(np.asarray(engine.data.x)).all()


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::tfbnn.DataWarning")
def test_one_row_is_enough_for_the_real_engine():
    model = BayesianMLP([1, 3, 1])
    run = model.fit_posterior(
        [[2.0]],
        [3.0],
        kernel=tfbnn.kernels.HMC(num_leapfrog_steps=2),
        num_chains=1,
        num_results=5,
        num_burnin_steps=5,
        pretraining=tfbnn.Pretraining(epochs=2, newton_iterations=3),
        jit_compile=False,
        verbose=0,
    )
    assert run.num_results == 5
    assert np.isfinite(model.predict([[0.0], [2.0]]).mean).all()


def test_a_constant_column_is_named_and_predictions_stay_finite(engine):
    model = BayesianMLP([2, 5, 1])
    with pytest.warns(DataWarning, match=r"Columns \[1\] of x are constant"):
        fake_fit(model, np.column_stack([X[:, 0], np.full(NUM_ROWS, 0.3)]))
    assert np.isfinite(np.asarray(engine.data.x)).all()
    assert np.isfinite(model.predict(X).mean).all()


@pytest.mark.filterwarnings("ignore::tfbnn.DataWarning")
def test_constant_targets_are_named_and_predictions_stay_finite(engine):
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, y=np.full(NUM_ROWS, 3.0))
    assert np.isfinite(np.asarray(engine.data.y)).all()
    assert np.isfinite(model.predict(X).mean).all()


@pytest.mark.parametrize(
    "scales", [[1e30, 1.0], [1e-300, 1.0], [1e12, 1e-12], [1.0, 1e100]], ids=str
)
def test_columns_of_any_scale_reach_the_network_standardised(scales, engine):
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, X * scales, Y * scales[0])
    # Standardised in float64, then rounded once to float32.
    np.testing.assert_allclose(np.std(engine.data.rows().x, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.std(engine.data.rows().y, axis=1), 1.0, rtol=1e-6)
    assert np.isfinite(model.predict(X * scales).mean).all()


@pytest.mark.parametrize(("dtype", "largest"), [("float32", 1e39), ("float64", None)])
def test_values_that_do_not_fit_the_dtype_are_refused_by_column(dtype, largest, engine):
    model = BayesianMLP([2, 5, 1], x_transform=None, y_transform=None, dtype=dtype)
    x = X * [1.0, largest or 1e39]
    if largest is None:
        fake_fit(model, x)
        assert len(engine.calls) == 1
        return
    with pytest.raises(ValueError, match="x does not fit into float32.*column 1"):
        fake_fit(model, x)
    assert engine.calls == []


@pytest.mark.parametrize(("name", "unit"), [("x", 1e-50), ("y", 1e-40), ("noise_scale", 1e-40)])
def test_values_too_small_for_the_dtype_are_refused_as_large_ones_are(name, unit, engine):
    rows = {"x": X, "y": Y, "noise_scale": np.full(Y.shape, 0.1)}
    rows[name] = rows[name] * unit
    model = BayesianMLP([2, 5, 1], x_transform=None, y_transform=None)
    with pytest.raises(ValueError, match=f"{name} does not fit into float32.*row 0, column 0"):
        model.fit_posterior(**rows)
    assert engine.calls == []
    double = BayesianMLP([2, 5, 1], x_transform=None, y_transform=None, dtype="float64")
    fake_fit(double, **rows)
    assert len(engine.calls) == 1


def test_zeros_fit_every_dtype(engine):
    rows = np.where(X > 0, X, 0.0)
    model = BayesianMLP([2, 5, 1], x_transform=None, y_transform=None)
    fake_fit(model, rows)
    assert (np.asarray(engine.data.x) == 0).any()
    assert np.isfinite(model.predict(np.zeros((1, 2))).mean).all()


def test_a_constant_column_of_any_size_becomes_zeros(engine):
    constant = np.full(len(X), 1e-30 / 3.0)  # whose mean of twelve is rounded
    model = BayesianMLP([2, 5, 1])
    with pytest.warns(DataWarning, match="constant"):
        fake_fit(model, np.column_stack([X[:, 0], constant]))
    np.testing.assert_array_equal(engine.data.x[1], 0.0)


def test_large_inputs_that_fit_give_finite_predictions(fitted):
    assert np.isfinite(fitted.predict(X * 1e30).mean).all()
