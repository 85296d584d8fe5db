"""Every kind of bad rows at every public entry point."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.support.entries import (
    NOISE,
    NUM_ROWS,
    TAKE_NOISE,
    TAKE_X,
    TAKE_Y,
    X,
    Y,
    diagnose,
    evaluate,
    fake_fit,
    fit,
    name_of,
    objects,
    predict,
    ragged,
    refuses,
    stack,
    validate,
    with_cell,
)
from tfbnn import BayesianMLP
from tfbnn.priors import Normal


def each_at(entries, cases, first, everywhere):
    """Parameters (entry, *case): every case at `first`, and some at all entries.

    All entries hand what they receive to one validation; that they do is what a few cases show.
    """
    return [
        pytest.param(entry, *case, id=f"{name}-{name_of(entry)}")
        for name, case in cases.items()
        for entry in entries
        if entry is first or name in everywhere
    ]


BAD_X = {
    "NaN": (with_cell(np.nan), ValueError, ["finite", "1 NaN", "row 3", "column 1"]),
    "infinity": (with_cell(np.inf), ValueError, ["finite", "row 3", "column 1"]),
    "minus infinity": (with_cell(-np.inf), ValueError, ["finite", "row 3", "column 1"]),
    "None in objects": (objects(None), ValueError, ["finite", "row 3", "column 1"]),
    "NaN in objects": (objects(float("nan")), ValueError, ["finite", "row 3", "column 1"]),
    "no dimension": (np.float64(3.0), ValueError, ["[N, 2]", "[]"]),
    "one dimension": (X[:, 0], ValueError, ["[N, 2]", "[12]", "reshape"]),
    "one row as a vector": (X[0], ValueError, ["[N, 2]", "[2]", "reshape"]),
    "three dimensions": (X[None], ValueError, ["[N, 2]", "[1, 12, 2]"]),
    "no rows": (X[:0], ValueError, ["at least one row", "[0, 2]"]),
    "no columns": (X[:, :0], ValueError, ["at least one", "[12, 0]"]),
    "an empty list": ([], ValueError, ["[N, 2]", "[0]"]),
    "a column too few": (X[:, :1], ValueError, ["2 columns", "1"]),
    "a column too many": (np.hstack([X, X[:, :1]]), ValueError, ["2 columns", "3"]),
    "transposed": (X.T, ValueError, ["2 columns", "12"]),
    "complex": (X + 0j, TypeError, ["complex"]),
    "complex in objects": (objects(1 + 2j), TypeError, ["complex"]),
    "NumPy complex in objects": (objects(np.complex64(1 + 2j)), TypeError, ["complex"]),
    "booleans": (X > 0, TypeError, ["booleans"]),
    "booleans in objects": (objects(True), TypeError, ["booleans"]),
    "NumPy booleans in objects": (objects(np.True_), TypeError, ["booleans"]),
    "dates": (X.astype("M8[D]"), TypeError, ["dates"]),
    "time spans": (X.astype("m8[D]"), TypeError, ["time spans"]),
    "dates in objects": (objects(pd.Timestamp("2024-01-01")), TypeError, ["numbers"]),
    "strings": (X.astype(str), TypeError, ["real numbers", "strings"]),
    "bytes": (X.astype("S8"), TypeError, ["real numbers", "strings"]),
    "strings in objects": (objects("1.0"), TypeError, ["strings in row", "column 1"]),
    "ragged": (ragged(), TypeError, ["rectangular", "different lengths"]),
    "ragged in objects": (objects([1.0, 2.0]), TypeError, ["rectangular"]),
    "records": (np.zeros(NUM_ROWS, "f8,f8"), TypeError, ["real numbers"]),
    "sparse matrix": (sparse.csr_matrix(X), TypeError, ["sparse", "toarray"]),
    "sparse array": (sparse.coo_array(X), TypeError, ["sparse", "toarray"]),
    "masked": (np.ma.masked_less(X, 0), TypeError, ["masked"]),
    "masked, nothing hidden": (np.ma.masked_array(X), TypeError, ["masked"]),
    "a list of masked rows": ([*np.ma.masked_less(X, 0)], TypeError, ["masked"]),
    "a masked entry": ([*X[1:].tolist(), [1.0, np.ma.masked]], TypeError, ["masked"]),
    "an integer beyond all floats": (objects(10**400), ValueError, ["1.8e308"]),
    "time spans of NumPy in objects": (objects(np.timedelta64(3)), TypeError, ["time spans"]),
    "a file name": ("points.csv", TypeError, ["array of numbers", "str"]),
    "a dict": ({"a": [1.0], "b": [2.0]}, TypeError, ["array of numbers", "dict"]),
    "a set": ({1.0, 2.0}, TypeError, ["numbers"]),
    "a generator": ((row for row in X), TypeError, ["numbers"]),
    "frame with text among numbers": (
        pd.DataFrame({"a": X[:, 0], "b": ["u", *X[1:, 1]]}),
        TypeError,
        ["text"],
    ),
    "frame with booleans among numbers": (
        pd.DataFrame({"a": X[:, 0], "b": [True, *X[1:, 1]]}),
        TypeError,
        ["booleans"],
    ),
    "frame with dates": (
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1].astype("M8[s]")}),
        TypeError,
        ["numbers"],
    ),
    "frame with a gap": (
        pd.DataFrame({"a": X[:, 0], "b": [None, *X[1:, 1]]}),
        ValueError,
        ["finite", "row 0", "column 1"],
    ),
    "nullable frame with a gap": (
        pd.DataFrame({"a": X[:, 0], "b": pd.array([None, *X[1:, 1]], dtype="Float64")}),
        (TypeError, ValueError),
        [],
    ),
    "frame with a column too many": (
        pd.DataFrame(np.hstack([X, X])),
        ValueError,
        ["2 columns", "4"],
    ),
}


@pytest.mark.parametrize(
    ("entry", "x", "error", "words"),
    each_at(TAKE_X, BAD_X, predict, ["NaN", "a column too few", "masked"]),
)
def test_bad_x_is_refused(entry, x, error, words, fitted, engine):
    refuses(lambda: entry(fitted, x=x), fitted, engine, error, ["x", *words])


# For diagnose, None stands for the rows saved with the model, for stack without y for those of the
# fit.
@pytest.mark.parametrize("entry", [e for e in TAKE_X if e not in (diagnose, stack)], ids=name_of)
def test_x_is_not_optional(entry, fitted, engine):
    refuses(
        lambda: entry(fitted, x=None),
        fitted,
        engine,
        TypeError,
        ["x", "array of numbers", "NoneType"],
    )


BAD_Y = {
    "NaN": (with_cell(np.nan, Y), ValueError, ["finite", "row 3"]),
    "infinity": (with_cell(np.inf, Y), ValueError, ["finite", "row 3"]),
    "no dimension": (1.0, ValueError, ["[N, 1] or [N]", "[]"]),
    "two columns": (np.hstack([Y, Y]), ValueError, ["[N, 1] or [N]", "[12, 2]"]),
    "transposed": (Y.T, ValueError, ["[N, 1] or [N]", "[1, 12]"]),
    "three dimensions": (Y[None], ValueError, ["[N, 1]", "[1, 12, 1]"]),
    "no rows": (Y[:0], ValueError, ["at least one row"]),
    "a row too few": (Y[:-1], ValueError, ["same number of rows", "12", "11"]),
    "a row too many": (np.vstack([Y, Y[:1]]), ValueError, ["same number of rows", "12", "13"]),
    "complex": (Y + 0j, TypeError, ["complex"]),
    "booleans": (Y > 2, TypeError, ["booleans"]),
    "dates": (Y.astype("M8[D]"), TypeError, ["dates"]),
    "strings": (["a"] * NUM_ROWS, TypeError, ["real numbers"]),
    "strings in objects": (objects("1.0", Y), TypeError, ["strings"]),
    "None in objects": (objects(None, Y), ValueError, ["finite", "row 3"]),
    "NumPy booleans in objects": (objects(np.True_, Y), TypeError, ["booleans"]),
    "ragged": (ragged(), TypeError, ["rectangular", "different lengths"]),
    "sparse": (sparse.csr_matrix(Y), TypeError, ["sparse", "toarray"]),
    "masked": (np.ma.masked_less(Y, 1.0), TypeError, ["masked"]),
    "the name of a column": ("mass", TypeError, ["array of numbers", "str"]),
    "a series of strings": (pd.Series(["a"] * NUM_ROWS), TypeError, ["strings"]),
    "a series of categories": (
        pd.Series(["a"] * NUM_ROWS, dtype="category"),
        TypeError,
        ["strings"],
    ),
}


@pytest.mark.parametrize(
    ("entry", "y", "error", "words"),
    each_at(TAKE_Y, BAD_Y, evaluate, ["NaN", "a row too few", "two columns"]),
)
def test_bad_y_is_refused(entry, y, error, words, fitted, engine):
    refuses(lambda: entry(fitted, y=y), fitted, engine, error, ["y", *words])


@pytest.mark.parametrize("entry", TAKE_Y, ids=name_of)
def test_y_is_not_optional(entry, fitted, engine):
    words = ["y", "array of numbers", "NoneType"]
    refuses(lambda: entry(fitted, y=None), fitted, engine, TypeError, words)


BAD_NOISE = {
    "NaN": (with_cell(np.nan, NOISE[:, None]), ValueError, ["finite", "row 3"]),
    "infinity": (with_cell(np.inf, NOISE[:, None]), ValueError, ["finite", "row 3"]),
    "zero": (with_cell(0.0, NOISE[:, None]), ValueError, ["positive", "0.0", "row 3"]),
    "negative": (-NOISE, ValueError, ["positive", "-0.25", "row 0"]),
    "one number": (0.1, ValueError, ["[12] or [12, 1]", "[]"]),
    "a row too few": (NOISE[:-1], ValueError, ["[12] or [12, 1]", "[11"]),
    "two columns": (np.ones((NUM_ROWS, 2)), ValueError, ["[12] or [12, 1]", "[12, 2]"]),
    "transposed": (NOISE[None], ValueError, ["[12] or [12, 1]", "[1, 12]"]),
    "complex": (NOISE + 0j, TypeError, ["complex"]),
    "booleans": (NOISE > 0, TypeError, ["booleans"]),
    "strings": (["0.1"] * NUM_ROWS, TypeError, ["real numbers"]),
    "a name": ("learned", TypeError, ["array of numbers", "str"]),
    "sparse": (sparse.csr_matrix(NOISE[:, None]), TypeError, ["sparse"]),
    "masked": (np.ma.masked_array(NOISE), TypeError, ["masked"]),
}


@pytest.mark.parametrize(
    ("entry", "noise", "error", "words"),
    each_at(TAKE_NOISE, BAD_NOISE, evaluate, ["zero", "a row too few"]),
)
def test_bad_row_noise_is_refused(entry, noise, error, words, fitted, engine):
    refuses(lambda: entry(fitted, noise=noise), fitted, engine, error, ["noise_scale", *words])


# A fit learns the scale of its rows; values it cannot represent are tested further below.
@pytest.mark.parametrize("entry", [e for e in TAKE_X if e is not fit], ids=name_of)
def test_x_too_large_for_the_dtype_is_refused_by_column(entry, fitted, engine):
    refuses(
        lambda: entry(fitted, x=with_cell(1e300)),
        fitted,
        engine,
        ValueError,
        ["x", "float32", "row 3", "column 1"],
    )


@pytest.mark.parametrize("entry", [e for e in TAKE_Y if e is not fit], ids=name_of)
def test_y_too_large_for_the_dtype_is_refused_by_column(entry, fitted, engine):
    refuses(
        lambda: entry(fitted, y=with_cell(1e300, Y)),
        fitted,
        engine,
        ValueError,
        ["y", "float32", "row 3", "column 0"],
    )


def test_row_noise_that_vanishes_in_the_dtype_of_the_model_is_refused(fitted, engine):
    refuses(
        lambda: fit(fitted, noise=NOISE * 1e-60),
        fitted,
        engine,
        ValueError,
        ["noise_scale", "float32"],
    )


@pytest.mark.parametrize("entry", TAKE_Y, ids=name_of)
def test_targets_outside_the_domain_of_the_logarithm_are_refused(entry, synthetic_ensemble, engine):
    model = BayesianMLP.from_ensemble(synthetic_ensemble(y_transform=["log10", "standardize"]))
    refuses(
        lambda: entry(model, y=with_cell(-1.0, Y)),
        model,
        engine,
        ValueError,
        ["y", "positive", "log10", "-1.0", "row 3"],
    )


# Column names.


@pytest.mark.tensorflow
@pytest.mark.parametrize("entry", [e for e in TAKE_X if e is not fit], ids=name_of)
@pytest.mark.parametrize("columns", [["a", "c"], [0, 1]], ids=str)
def test_missing_columns_are_named(entry, columns, engine):
    model = BayesianMLP([2, 5, 1], prior=Normal(1.0))
    training = pd.DataFrame(X, columns=["a", "b"])
    fake_fit(model, training)
    engine.calls.clear()

    def call():
        frame = pd.DataFrame(X, columns=columns)
        if entry is validate:
            return fake_fit(model, training, validation_data=(frame, Y))
        return entry(model, x=frame)

    refuses(call, model, engine, ValueError, ["b; its columns are " + ", ".join(map(str, columns))])


@pytest.mark.tensorflow
@pytest.mark.parametrize("columns", [["a", "a"], [1, "1"]], ids=str)
def test_two_columns_of_one_name_are_refused_at_the_fit(columns, fitted, engine):
    frame = pd.DataFrame(X, columns=columns)
    words = [f"x has 2 columns {columns[0]}; keep only one"]
    refuses(lambda: fit(fitted, x=frame), fitted, engine, ValueError, words)


@pytest.mark.tensorflow
@pytest.mark.parametrize("entry", [e for e in TAKE_X if e not in (fit, validate)], ids=name_of)
@pytest.mark.parametrize("nameless", [False, True])
def test_the_same_names_or_none_are_taken(entry, nameless, engine):
    model, frame = BayesianMLP([2, 5, 1], prior=Normal(1.0)), pd.DataFrame(X, columns=["a", "b"])
    fake_fit(model, frame, validation_data=(X if nameless else frame, Y))
    assert entry(model, x=X if nameless else frame) is not None
