"""Good rows in every disguise: the same bits, and the caller's arrays are left alone."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from tests.support import entries as at
from tests.support.entries import NOISE, THETA, X, Y, fake_fit, name_of, read_only
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
    "NumPy scalars": lambda v, _: np.array([[np.float32(e) for e in row] for row in v], object),
    "frame": lambda v, _: pd.DataFrame(v),
    "frame with an index": lambda v, _: pd.DataFrame(v, index=range(50, 50 + len(v))),
    "frame of float16 and float64": lambda v, _: pd.DataFrame(v).astype({0: "f2"}),
    "nullable frame": lambda v, _: pd.DataFrame(v).astype("Float64"),
    "anything with __array__": lambda v, _: HasArray(v),
}
# What all entries take, to show that they read rows by one function.
FEW = {name: DISGUISES[name] for name in ("nested lists", "read-only", "nullable frame")}


def content(value):
    """Return what a value holds, for comparison before and after."""
    array = np.asarray(value)
    return array.dtype, array.shape, array.strides, array.flags.writeable, array.tolist()


def result_bits(entry, model, engine, **rows):
    """Everything an entry point answers, as bytes."""
    if entry is at.fit:
        fake_fit(model, rows.get("x", X), rows.get("y", Y), noise_scale=rows.get("noise"))
        values = [part for part in engine.data if part is not None]
        digest = model.posterior.provenance.data_sha256
        return [np.asarray(part).tobytes() for part in values] + [digest]
    if entry is at.validate:
        data = (rows.get("x", X), rows.get("y", Y), rows.get("noise"))
        fake_fit(model, validation_data=data)
        return model.posterior.x_reference.tobytes()
    result = entry(model, **rows)
    if entry is at.predict:
        return [part.tobytes() for part in (*result, result.quantiles)]
    if entry is at.diagnose:
        return result.rhat_function.tobytes()
    if entry is at.stack:
        return [result.weights.tobytes(), result.log_score_uniform, result.log_score_stacked]
    return repr(result) if entry is at.evaluate else np.asarray(result).tobytes()


# One target may be a vector, as row noise is.
FLAT = {
    "vector": lambda v, _: v,
    "column": lambda v, _: v[:, None],
    "list": lambda v, _: v.tolist(),
    "float16": lambda v, _: v.astype("f2"),
    "series": lambda v, _: pd.Series(v),
}
FEW_FLAT = {name: FLAT[name] for name in ("column", "series")}
GOOD = {"x": X, "y": Y, "flat y": Y[:, 0], "noise": NOISE}


@pytest.mark.parametrize(
    ("argument", "entry", "disguises"),
    [
        *(("x", entry, DISGUISES if entry is at.predict else FEW) for entry in at.TAKE_X),
        *(("y", entry, DISGUISES if entry is at.evaluate else FEW) for entry in at.TAKE_Y),
        *((flat, at.evaluate, FLAT) for flat in ("flat y", "noise")),
        *((flat, at.fit, FEW_FLAT) for flat in ("flat y", "noise")),
    ],
    ids=lambda value: name_of(value) if callable(value) else str(value)[:6],
)
def test_any_disguise_gives_the_same_bits(argument, entry, disguises, fitted, engine, tmp_path):
    """And what was passed is left alone."""
    good, argument = GOOD[argument], argument.removeprefix("flat ")
    expected = result_bits(entry, fitted, engine, **{argument: good.copy()})
    for name, disguise in disguises.items():
        rows = disguise(good, tmp_path)
        before = content(rows)
        assert result_bits(entry, fitted, engine, **{argument: rows}) == expected, name
        assert content(rows) == before, name


def test_a_fit_keeps_copies_of_its_rows(engine):
    """Later changes of the caller's arrays do not reach the model."""
    x, y = X.copy(), Y.copy()
    assert not np.shares_memory(as_matrix(x, "x"), x)
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, x, y, noise_scale=NOISE)
    x[:], y[:] = np.nan, np.nan
    rows = model._training_rows
    for found, expected in ((rows.x, X), (rows.y, Y), (model.posterior.x_reference, X)):
        np.testing.assert_array_equal(found, expected)


def test_integers_are_numbers(fitted):
    rows = np.arange(24).reshape(12, 2)
    expected = fitted.predict(rows.astype(float)).mean
    for dtype in (int, np.int8, np.uint64):
        np.testing.assert_array_equal(fitted.predict(rows.astype(dtype)).mean, expected)


def test_theta_is_left_alone(fitted):
    theta = read_only(np.stack([THETA, -THETA]))
    assert fitted.log_prob(theta, X, Y).shape == (2,)
