"""Rows that are odd but usable."""

import warnings

import numpy as np
import pytest

from tests.support.entries import NUM_ROWS, X, Y, fake_fit
from tfbnn import BayesianMLP, DataWarning
from tfbnn.spec.rows import rows_to_fit

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


def test_an_input_that_counts_the_rows_is_told():
    rng, spec = np.random.default_rng(0), BayesianMLP([2, 5, 1]).spec
    x, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    for first in (0, 1):
        counted = np.column_stack([x[:, 0], first + np.arange(50)])
        with pytest.warns(DataWarning, match="Column 1 of x numbers the rows"):
            rows_to_fit(spec, counted, y, None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows_to_fit(spec, counted[::-1], y, None, None)
        rows_to_fit(spec, counted[:10], y[:10], None, None)
        rows_to_fit(BayesianMLP([1, 5, 1]).spec, counted[:, 1:], y, None, None)


def test_many_copies_of_rows_are_told():
    rng, spec = np.random.default_rng(0), BayesianMLP([2, 5, 1]).spec
    x, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    many, few = np.arange(110) % 100, np.arange(105) % 100

    def check(x, y, groups=None):
        rows_to_fit(spec, x, y, None, None, groups=groups)

    with pytest.warns(DataWarning, match="9% of the rows repeat another row"):
        check(x[many], y[many])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(x[few], y[few])
        check(x[many], rng.normal(size=110))  # settings that were measured twice
        check(x[many], y[many], groups=many)
        check(*(rng.integers(4, size=shape) for shape in ((100, 2), 100)))  # equal by chance


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::tfbnn.DataWarning")
def test_one_row_is_enough_for_the_real_engine(tiny_fit):
    model = BayesianMLP([1, 3, 1])
    run = model.fit_posterior([[2.0]], [3.0], **tiny_fit, verbose=0)
    assert run.num_results == 40
    assert np.isfinite(model.predict([[0.0], [2.0]]).mean).all()


@pytest.mark.filterwarnings("ignore::tfbnn.DataWarning")
def test_constant_columns_are_named_and_become_zeros(engine):
    constant = np.full(NUM_ROWS, 1e-30 / 3.0)  # whose mean of twelve is rounded
    model = BayesianMLP([2, 5, 1])
    with pytest.warns(DataWarning, match=r"Columns \[1\] of x are constant"):
        fake_fit(model, np.column_stack([X[:, 0], constant]), np.full(NUM_ROWS, 3.0))
    np.testing.assert_array_equal(engine.data.x[1], 0.0)
    assert np.isfinite(np.asarray(engine.data.y)).all()
    assert np.isfinite(model.predict(X).mean).all()


@pytest.mark.parametrize("scales", [[1e30, 1.0], [1e-300, 1.0], [1e12, 1e-12], [1.0, 1e100]])
def test_columns_of_any_scale_reach_the_network_standardised(scales, engine):
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, X * scales, Y * scales[0])
    # Standardised in float64, then rounded once to float32.
    np.testing.assert_allclose(np.std(engine.data.rows().x, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.std(engine.data.rows().y, axis=1), 1.0, rtol=1e-6)
    assert np.isfinite(model.predict(X * scales).mean).all()


@pytest.mark.parametrize(
    ("name", "unit", "column"),
    [("x", [1.0, 1e39], 1), ("x", 1e-50, 0), ("y", 1e-40, 0), ("noise_scale", 1e-40, 0)],
)
def test_values_that_do_not_fit_the_dtype_are_refused_by_column(name, unit, column, engine):
    rows = {"x": X, "y": Y, "noise_scale": np.full(Y.shape, 0.1)}
    rows[name] = rows[name] * unit
    settings = {"x_transform": None, "y_transform": None}
    words = f"{name} does not fit into float32.*row 0, column {column}"
    with pytest.raises(ValueError, match=words):
        BayesianMLP([2, 5, 1], **settings).fit_posterior(**rows)
    assert engine.calls == []
    fake_fit(BayesianMLP([2, 5, 1], dtype="float64", **settings), **rows)
    assert len(engine.calls) == 1


def test_zeros_fit_every_dtype(engine):
    rows = np.where(X > 0, X, 0.0)
    model = BayesianMLP([2, 5, 1], x_transform=None, y_transform=None)
    fake_fit(model, rows)
    assert (np.asarray(engine.data.x) == 0).any()
    assert np.isfinite(model.predict(np.zeros((1, 2))).mean).all()


def test_large_inputs_that_fit_give_finite_predictions(fitted):
    assert np.isfinite(fitted.predict(X * 1e30).mean).all()
