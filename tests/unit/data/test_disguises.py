"""Good rows in every disguise: the same bits, and the caller's arrays are left alone."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from tests.support.entries import (
    NOISE,
    TAKE_X,
    TAKE_Y,
    THETA,
    X,
    Y,
    diagnose,
    evaluate,
    fake_fit,
    fit,
    name_of,
    predict,
    read_only,
    stack,
    validate,
)
from tfbnn import BayesianMLP
from tfbnn.data.validation import as_matrix

pytestmark = pytest.mark.tensorflow


class HasArray:
    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def strided(values):
    wide = np.full((2 * len(values), 3 * values.shape[1]), 7.0)
    wide[::2, ::3] = values
    return wide[::2, ::3]


def memmap(values, folder):
    file = folder / "values.npy"
    np.save(file, values)
    return np.load(file, mmap_mode="r")


DISGUISES = {
    "nested lists": lambda v, _: v.tolist(),
    "tuple of arrays": lambda v, _: tuple(v),
    "float16": lambda v, _: v.astype("f2"),
    "float32": lambda v, _: v.astype("f4"),
    "long double": lambda v, _: v.astype(np.longdouble),
    "big-endian": lambda v, _: v.astype(">f8"),
    "big-endian float16": lambda v, _: v.astype(">f2"),
    "Fortran order": lambda v, _: np.asfortranarray(v),
    "strided": lambda v, _: strided(v),
    "negative strides": lambda v, _: v[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda v, _: read_only(v),
    "read-only memmap": memmap,
    "objects": lambda v, _: v.astype(object),
    "Decimal": lambda v, _: [[Decimal(e) for e in row] for row in v.tolist()],
    "Fraction": lambda v, _: [[Fraction(e) for e in row] for row in v.tolist()],
    "NumPy scalars in objects": lambda v, _: np.array(
        [[np.float32(e) for e in row] for row in v], dtype=object
    ),
    "frame": lambda v, _: pd.DataFrame(v),
    "frame with an index": lambda v, _: pd.DataFrame(v, index=range(50, 50 + len(v))),
    "frame of float16 and float64": lambda v, _: pd.DataFrame(v).astype({0: "f2"}),
    "nullable frame": lambda v, _: pd.DataFrame(v).astype("Float64"),
    "anything with __array__": lambda v, _: HasArray(v),
}
# What all entries take, to show that they read rows by one function.
FEW = ["nested lists", "read-only", "nullable frame"]


def each_disguise(entries, first):
    """Every disguise at the entry `first`, and a few at all of them."""
    return pytest.mark.parametrize(
        ("entry", "disguise"),
        [
            pytest.param(entry, disguise, id=f"{name}-{name_of(entry)}")
            for name, disguise in DISGUISES.items()
            for entry in entries
            if entry is first or name in FEW
        ],
    )


def content(value):
    """What a value holds, for comparison before and after."""
    array = np.asarray(value)
    return array.dtype, array.shape, array.strides, array.flags.writeable, array.tolist()


def result_bits(entry, model, engine, **rows):
    """Everything an entry point answers, as bytes."""
    if entry is fit:
        fake_fit(model, rows.get("x", X), rows.get("y", Y), noise_scale=rows.get("noise"))
        values = [part for part in engine.data if part is not None]
        digest = model.posterior.provenance.data_sha256
        return [np.asarray(part).tobytes() for part in values] + [digest]
    if entry is validate:
        data = (rows.get("x", X), rows.get("y", Y), rows.get("noise"))
        fake_fit(model, validation_data=data)
        return model.posterior.x_reference.tobytes()
    result = entry(model, **rows)
    if entry is predict:
        return [part.tobytes() for part in (*result, result.quantiles)]
    if entry is diagnose:
        return result.rhat_function.tobytes()
    if entry is stack:
        return [result.weights.tobytes(), result.log_score_uniform, result.log_score_stacked]
    return repr(result) if entry is evaluate else np.asarray(result).tobytes()


@each_disguise(TAKE_X, predict)
def test_x_in_any_disguise_gives_the_same_bits_and_is_left_alone(
    entry, disguise, fitted, engine, tmp_path
):
    expected = result_bits(entry, fitted, engine, x=X.copy())
    x = disguise(X, tmp_path)
    before = content(x)
    assert result_bits(entry, fitted, engine, x=x) == expected
    assert content(x) == before


@each_disguise(TAKE_Y, evaluate)
def test_y_in_any_disguise_gives_the_same_bits_and_is_left_alone(
    entry, disguise, fitted, engine, tmp_path
):
    expected = result_bits(entry, fitted, engine, y=Y.copy())
    y = disguise(Y, tmp_path)
    before = content(y)
    assert result_bits(entry, fitted, engine, y=y) == expected
    assert content(y) == before


@pytest.mark.parametrize("entry", [fit, evaluate], ids=name_of)
@pytest.mark.parametrize(
    "flat",
    [lambda y: y[:, 0], lambda y: y[:, 0].tolist(), lambda y: pd.Series(y[:, 0])],
    ids=["vector", "list", "series"],
)
def test_one_target_may_be_a_vector(entry, flat, fitted, engine):
    expected = result_bits(entry, fitted, engine, y=Y)
    assert result_bits(entry, fitted, engine, y=flat(Y)) == expected


@pytest.mark.parametrize("entry", [fit, evaluate], ids=name_of)
@pytest.mark.parametrize(
    "disguise",
    [lambda v: v[:, None], lambda v: v.tolist(), lambda v: v.astype("f2"), read_only, pd.Series],
    ids=["column", "list", "float16", "read-only", "series"],
)
def test_row_noise_in_any_disguise_gives_the_same_bits(entry, disguise, fitted, engine):
    noise = disguise(NOISE)
    before = content(noise)
    expected = result_bits(entry, fitted, engine, noise=NOISE.copy())
    assert result_bits(entry, fitted, engine, noise=noise) == expected
    assert content(noise) == before


def test_a_fit_keeps_copies_of_its_rows(engine):
    x, y = X.copy(), Y.copy()
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, x, y, noise_scale=NOISE)
    x[:], y[:] = np.nan, np.nan
    rows = model._training_rows
    np.testing.assert_array_equal(rows.x, X)
    np.testing.assert_array_equal(rows.y, Y)


def test_integers_are_numbers(fitted):
    rows = np.arange(24).reshape(12, 2)
    expected = fitted.predict(rows.astype(float)).mean
    for dtype in (int, np.int8, np.uint64):
        np.testing.assert_array_equal(fitted.predict(rows.astype(dtype)).mean, expected)


def test_rows_are_copied(engine):
    """Later changes of the caller's arrays do not reach the model."""
    x, y = X.copy(), Y.copy()
    assert not np.shares_memory(as_matrix(x, "x"), x)
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, x, y)
    x[:] = 7.0
    np.testing.assert_array_equal(model.posterior.x_reference, X)


def test_theta_is_left_alone(fitted):
    theta = read_only(np.stack([THETA, -THETA]))
    assert fitted.log_prob(theta, X, Y).shape == (2,)
