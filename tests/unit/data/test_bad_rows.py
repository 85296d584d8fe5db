"""Every kind of bad rows at every public entry point."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.support import entries as at
from tests.support.entries import NOISE, NUM_ROWS, X, Y, name_of, objects, with_cell
from tfbnn import BayesianMLP


def frame(last):
    """A frame of two columns, of which the last is given."""
    return pd.DataFrame({"a": X[:, 0], "b": last})


def each_at(argument, entries, cases, first, everywhere=()):
    """Parameters (entry, argument, *case): every case at `first`, and some at all entries.

    All entries hand what they receive to one validation; that they do is what a few cases show.
    """
    return [
        pytest.param(entry, argument, *case, id=f"{argument} {name}-{name_of(entry)}")
        for name, case in cases.items()
        for entry in entries
        if entry is first or name in everywhere
    ]


DATES = X.astype("M8[s]")
NULLABLE = pd.array([None, *X[1:, 1]], dtype="Float64")
BAD_X = {
    "NaN": (with_cell(np.nan), ValueError, ["finite", "1 NaN", "row 3", "column 1"]),
    "infinity": (with_cell(np.inf), ValueError, ["finite", "row 3", "column 1"]),
    "None in objects": (objects(None), ValueError, ["finite", "row 3", "column 1"]),
    "no dimension": (np.float64(3.0), ValueError, ["[N, 2]", "[]"]),
    "one dimension": (X[:, 0], ValueError, ["[N, 2]", "[12]", "reshape"]),
    "three dimensions": (X[None], ValueError, ["[N, 2]", "[1, 12, 2]"]),
    "no rows": (X[:0], ValueError, ["at least one row", "[0, 2]"]),
    "no columns": (X[:, :0], ValueError, ["at least one", "[12, 0]"]),
    "an empty list": ([], ValueError, ["[N, 2]", "[0]"]),
    "a column too few": (X[:, :1], ValueError, ["2 columns", "1"]),
    "a column too many": (np.hstack([X, X[:, :1]]), ValueError, ["2 columns", "3"]),
    "complex": (X + 0j, TypeError, ["complex"]),
    "complex in objects": (objects(1 + 2j), TypeError, ["complex"]),
    "booleans": (X > 0, TypeError, ["booleans", "astype(float)"]),
    "booleans in objects": (objects(True), TypeError, ["booleans in row 3, column 1."]),
    "NumPy booleans in objects": (objects(np.True_), TypeError, ["booleans"]),
    "dates": (DATES, TypeError, ["dates"]),
    "time spans": (X.astype("m8[D]"), TypeError, ["time spans"]),
    "dates in objects": (objects(pd.Timestamp("2024-01-01")), TypeError, ["numbers"]),
    "strings": (X.astype(str), TypeError, ["real numbers", "strings", "data frame"]),
    "strings in objects": (objects("1.0"), TypeError, ["strings in row", "column 1"]),
    "ragged": (at.ragged(), TypeError, ["rectangular", "different lengths"]),
    "ragged in objects": (objects([1.0, 2.0]), TypeError, ["rectangular"]),
    "records": (np.zeros(NUM_ROWS, "f8,f8"), TypeError, ["real numbers"]),
    "sparse matrix": (sparse.csr_matrix(X), TypeError, ["sparse", "toarray"]),
    "sparse array": (sparse.coo_array(X), TypeError, ["sparse", "toarray"]),
    "masked": (np.ma.masked_less(X, 0), TypeError, ["masked"]),
    "a list of masked rows": ([*np.ma.masked_less(X, 0)], TypeError, ["masked"]),
    "a masked entry": ([*X[1:].tolist(), [1.0, np.ma.masked]], TypeError, ["masked"]),
    "an integer beyond all floats": (objects(10**400), ValueError, ["1.8e308"]),
    "time spans of NumPy in objects": (objects(np.timedelta64(3)), TypeError, ["time spans"]),
    "a file name": ("points.csv", TypeError, ["array of numbers", "str"]),
    "a dict": ({"a": [1.0], "b": [2.0]}, TypeError, ["array of numbers", "dict"]),
    "a generator": ((row for row in X), TypeError, ["numbers"]),
    "frame with text": (frame(["u", *X[1:, 1]]), TypeError, ["strings in row 0, column 1 ('b')"]),
    "frame with booleans among numbers": (frame([True, *X[1:, 1]]), TypeError, ["booleans"]),
    "frame, set": (frame([{1.0}, *X[1:, 1]]), TypeError, ["set in row 0, column 1 ('b'): {1.0}"]),
    "frame with dates": (frame(DATES[:, 1]), TypeError, ["dates in row 0, column 1 ('b')"]),
    "frame with a gap": (frame([None, *X[1:, 1]]), ValueError, ["finite", "row 0", "column 1"]),
    "nullable frame with a gap": (frame(NULLABLE), ValueError, ["finite", "row 0"]),
    "frame, a column too many": (pd.DataFrame(np.hstack([X, X])), ValueError, ["2 columns", "4"]),
}


# What is no number is tested with x.
BAD_Y = {
    "NaN": (with_cell(np.nan, Y), ValueError, ["finite", "row 3"]),
    "no dimension": (1.0, ValueError, ["[N, 1] or [N]", "[]"]),
    "two columns": (np.hstack([Y, Y]), ValueError, ["[N, 1] or [N]", "[12, 2]"]),
    "a row too few": (Y[:-1], ValueError, ["same number of rows", "12", "11"]),
    "a row too many": (np.vstack([Y, Y[:1]]), ValueError, ["same number of rows", "12", "13"]),
    "strings in objects": (objects("1.0", Y), TypeError, ["strings"]),
    "categories": (pd.Series(["a"] * NUM_ROWS, dtype="category"), TypeError, ["strings"]),
}


BAD_NOISE = {
    "NaN": (with_cell(np.nan, NOISE[:, None]), ValueError, ["finite", "row 3"]),
    "zero": (with_cell(0.0, NOISE[:, None]), ValueError, ["positive", "0.0", "row 3"]),
    "negative": (-NOISE, ValueError, ["positive", "-0.25", "row 0"]),
    "one number": (0.1, ValueError, ["[12] or [12, 1]", "[]"]),
    "a row too few": (NOISE[:-1], ValueError, ["[12] or [12, 1]", "[11"]),
    "two columns": (np.ones((NUM_ROWS, 2)), ValueError, ["[12] or [12, 1]", "[12, 2]"]),
}
# For diagnose, None stands for the rows saved with the model, for stack without y for those of the
# fit.
SAVED = (at.diagnose, at.stack)
NONE = {"None": (None, TypeError, ["array of numbers", "NoneType"])}
# A fit learns the scale of its rows; values it cannot represent are in test_odd_rows.py.
LARGE_X = {"too large": (with_cell(1e300), ValueError, ["float32", "row 3", "column 1"])}
LARGE_Y = {"too large": (with_cell(1e300, Y), ValueError, ["float32", "row 3", "column 0"])}


@pytest.mark.parametrize(
    ("entry", "argument", "value", "error", "words"),
    [
        *each_at("x", at.TAKE_X, BAD_X, at.predict, ["NaN", "a column too few", "masked"]),
        *each_at("y", at.TAKE_Y, BAD_Y, at.evaluate, ["NaN", "a row too few", "two columns"]),
        *each_at("noise", at.TAKE_NOISE, BAD_NOISE, at.evaluate, ["zero", "a row too few"]),
        *each_at("x", [e for e in at.TAKE_X if e not in SAVED], NONE, at.predict, NONE),
        *each_at("y", at.TAKE_Y, NONE, at.evaluate, NONE),
        *each_at("x", [e for e in at.TAKE_X if e is not at.fit], LARGE_X, at.predict, LARGE_X),
        *each_at("y", [e for e in at.TAKE_Y if e is not at.fit], LARGE_Y, at.evaluate, LARGE_Y),
        (at.fit, "noise", NOISE * 1e-60, ValueError, ["float32"]),
    ],
)
def test_bad_rows_are_refused(entry, argument, value, error, words, fitted, engine):
    name = "noise_scale" if argument == "noise" else argument
    at.refuses(lambda: entry(fitted, **{argument: value}), fitted, engine, error, [name, *words])


@pytest.mark.parametrize("entry", at.TAKE_Y, ids=name_of)
def test_targets_outside_the_domain_of_the_logarithm_are_refused(entry, synthetic_ensemble, engine):
    model = BayesianMLP.from_ensemble(synthetic_ensemble(y_transform=["log10", "standardize"]))
    words = ["y", "positive", "log10", "-1.0", "row 3"]
    at.refuses(lambda: entry(model, y=with_cell(-1.0, Y)), model, engine, ValueError, words)
