"""Every kind of bad input at every public entry point; good input in every disguise."""

import os
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import tfbnn
from tfbnn import BayesianMLP, DataWarning, NotFittedError
from tfbnn.data.validation import as_matrix
from tfbnn.likelihoods import Gaussian

NUM_ROWS = 12
# Eighths are exact in float16, the narrowest of the disguises below.
X = np.round(np.random.default_rng(0).normal(size=(NUM_ROWS, 2)) * 16) / 8 + [0.0, 1.0]
Y = np.round(np.random.default_rng(1).uniform(0.5, 4.0, size=(NUM_ROWS, 1)) * 8) / 8
NOISE = np.full(NUM_ROWS, 0.25)
THETA = np.linspace(-1.0, 1.0, 22)


class FakeEngine:
    """Stands for pretraining and sampling: records what reaches them and returns random draws."""

    def __init__(self):
        self.calls = []
        self.num_kept = None  # how many draws are there when the run ends; None: all
        self.interrupted = False

    def pretrain(self, *args, **kwargs):
        self.calls.append(("pretrain", args, kwargs))
        raise AssertionError("pretraining was reached")

    def run_chains(self, spec, settings, data, theta, *, num_results, **kwargs):
        from tfbnn.run.result import SamplingResult

        self.calls.append(("run_chains", (spec, settings, data, theta), kwargs))
        kept = num_results if self.num_kept is None else self.num_kept
        shape, chains = (len(theta), kept), np.zeros(len(theta))
        noise = np.random.default_rng(0).normal(size=(*shape, theta.shape[1]))
        names = ("lp", "acceptance_rate", "step_size", "energy")
        return SamplingResult(
            draws=(theta[:, None] + 0.1 * noise).astype(theta.dtype),
            sample_stats={name: noise[..., 0].copy() for name in names}
            | {"n_steps": np.ones(shape, int), "diverging": np.zeros(shape, bool)},
            acceptance_rate=chains,
            num_divergent=chains,
            num_gradients={"warmup": chains, "sampling": chains},
            step_size=chains,
            start_log_prob=chains,
            seconds={"compile": 0.0, "warmup": 0.0, "sampling": 0.0},
            interrupted=self.interrupted,
        )

    @property
    def data(self):
        """The tensors of the last run, as NumPy arrays."""
        return self.calls[-1][1][2]


@pytest.fixture
def engine(monkeypatch):
    fake = FakeEngine()
    monkeypatch.setattr("tfbnn.engine.starts.find.pretrain", fake.pretrain)
    monkeypatch.setattr("tfbnn.engine.running.driver.run_chains", fake.run_chains)
    return fake


@pytest.fixture
def fitted(synthetic_ensemble):
    """A fitted model of two inputs and one target, in float32."""
    return BayesianMLP.from_ensemble(synthetic_ensemble(dtype="float32"))


def fake_fit(model, x=X, y=Y, **settings):
    """A fit that the fake engine answers."""
    settings = {"pretraining": None, "num_chains": 2, "num_results": 6, "verbose": 0} | settings
    return model.fit_posterior(x, y, **settings)


def fit(model, x=X, y=Y, noise=None):
    return model.fit_posterior(x, y, noise_scale=noise)


def validate(model, x=X, y=Y, noise=None):
    return model.fit_posterior(X, Y, validation_data=(x, y, noise))


def predict(model, x=X, y=Y, noise=None):
    return model.predict(x, include_noise=True, quantiles=[0.1, 0.9], noise_scale=noise)


def predict_draws(model, x=X, y=Y, noise=None):
    return model.predict_draws(x)


def evaluate(model, x=X, y=Y, noise=None):
    return model.evaluate(x, y, noise_scale=noise)


def log_prob(model, x=X, y=Y, noise=None):
    return model.log_prob(THETA, x, y, noise_scale=noise)


def diagnose(model, x=X, y=Y, noise=None):
    return model.diagnose(x)


def stack(model, x=X, y=Y, noise=None):
    return model.stack_chains(x, y, noise_scale=noise)


TAKE_X = [fit, validate, predict, predict_draws, evaluate, log_prob, diagnose, stack]
TAKE_Y = [fit, validate, evaluate, log_prob, stack]
TAKE_NOISE = [fit, validate, predict, evaluate, log_prob, stack]


def name_of(function):
    return function.__name__


def refuses(call, model, engine, error, words):
    """Checks that `call` raises `error` with these words, early, and leaves the model alone."""
    before = model.posterior
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message
    assert message.count("\n") < 3
    assert not any("tensorflow" in str(entry.path) for entry in caught.traceback)
    assert engine.calls == []
    assert model.posterior is before


def with_cell(value, rows=X):
    changed = rows.copy()
    changed[3, -1] = value
    return changed


def objects(value, rows=X):
    """An object array of numbers with one entry replaced."""
    changed = rows.astype(object)
    changed[3, -1] = value
    return changed


def ragged():
    return [[1.0, 2.0], [3.0]] * (NUM_ROWS // 2)


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
    "strings": (X.astype(str), TypeError, ["real numbers", "<U"]),
    "bytes": (X.astype("S8"), TypeError, ["real numbers", "S8"]),
    "strings in objects": (objects("1.0"), TypeError, ["strings"]),
    "ragged": (ragged(), TypeError, ["rectangular", "different lengths"]),
    "ragged in objects": (objects([1.0, 2.0]), TypeError, ["rectangular"]),
    "records": (np.zeros(NUM_ROWS, "f8,f8"), TypeError, ["real numbers"]),
    "sparse matrix": (sparse.csr_matrix(X), TypeError, ["sparse", "toarray"]),
    "sparse array": (sparse.coo_array(X), TypeError, ["sparse", "toarray"]),
    "masked": (np.ma.masked_less(X, 0), TypeError, ["masked"]),
    "masked, nothing hidden": (np.ma.masked_array(X), TypeError, ["masked"]),
    "a file name": ("points.csv", TypeError, ["array of numbers", "str"]),
    "a dict": ({"a": [1.0], "b": [2.0]}, TypeError, ["array of numbers", "dict"]),
    "a set": ({1.0, 2.0}, TypeError, ["numbers"]),
    "a generator": ((row for row in X), TypeError, ["numbers"]),
    "frame with strings": (
        pd.DataFrame({"a": X[:, 0], "b": ["u"] * NUM_ROWS}),
        TypeError,
        ["strings"],
    ),
    "frame with booleans": (
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0}),
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


@pytest.mark.parametrize("entry", TAKE_X, ids=name_of)
@pytest.mark.parametrize(("x", "error", "words"), BAD_X.values(), ids=BAD_X)
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


@pytest.mark.parametrize("entry", TAKE_Y, ids=name_of)
@pytest.mark.parametrize(("y", "error", "words"), BAD_Y.values(), ids=BAD_Y)
def test_bad_y_is_refused(entry, y, error, words, fitted, engine):
    refuses(lambda: entry(fitted, y=y), fitted, engine, error, ["y", *words])


@pytest.mark.parametrize("entry", [e for e in TAKE_Y if e is not stack], ids=name_of)
def test_y_is_not_optional(entry, fitted, engine):
    words = ["y", "array of numbers", "NoneType"]
    refuses(lambda: entry(fitted, y=None), fitted, engine, TypeError, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((X, None), ["y_validation=None", "Pass both"]),
        ((None, Y), ["x_validation=None", "Pass both"]),
        ((), ["fitted in this process", "Pass x_validation and y_validation"]),
    ],
    ids=["x alone", "y alone", "neither after loading"],
)
def test_stacking_needs_rows(arguments, words, fitted, engine):
    refuses(lambda: fitted.stack_chains(*arguments), fitted, engine, ValueError, words)


def test_noise_without_validation_rows_is_refused(fitted, engine):
    refuses(
        lambda: fitted.stack_chains(noise_scale=NOISE),
        fitted,
        engine,
        ValueError,
        ["noise_scale", "x_validation"],
    )


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


@pytest.mark.parametrize("entry", TAKE_NOISE, ids=name_of)
@pytest.mark.parametrize(("noise", "error", "words"), BAD_NOISE.values(), ids=BAD_NOISE)
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


@pytest.mark.parametrize("entry", [e for e in TAKE_X if e is not fit], ids=name_of)
@pytest.mark.parametrize("columns", [["b", "a"], ["a", "c"], [0, 1]], ids=str)
def test_other_column_names_or_another_order_are_refused(entry, columns, engine):
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, pd.DataFrame(X, columns=["a", "b"]))
    engine.calls.clear()

    def call():
        frame = pd.DataFrame(X, columns=columns)
        if entry is validate:
            training = pd.DataFrame(X, columns=["a", "b"])
            return fake_fit(model, training, validation_data=(frame, Y))
        return entry(model, x=frame)

    refuses(call, model, engine, ValueError, ["['a', 'b']", str([str(c) for c in columns])])


@pytest.mark.parametrize("entry", [e for e in TAKE_X if e not in (fit, validate)], ids=name_of)
@pytest.mark.parametrize("nameless", [False, True])
def test_the_same_names_or_none_are_taken(entry, nameless, engine):
    model, frame = BayesianMLP([2, 5, 1]), pd.DataFrame(X, columns=["a", "b"])
    fake_fit(model, frame, validation_data=(X if nameless else frame, Y))
    assert entry(model, x=X if nameless else frame) is not None


def test_names_are_saved_with_the_model(engine, tmp_path):
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, pd.DataFrame(X, columns=["a", "b"]))
    model.save(tmp_path / "model.h5")
    with pytest.raises(ValueError, match=r"\['a', 'b'\].*\['b', 'a'\]"):
        tfbnn.load(tmp_path / "model.h5").predict(pd.DataFrame(X, columns=["b", "a"]))


# Good input in every disguise.


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


def read_only(values):
    copy = values.copy()
    copy.setflags(write=False)
    return copy


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
each_disguise = pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)


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


@pytest.mark.parametrize("entry", TAKE_X, ids=name_of)
@each_disguise
def test_x_in_any_disguise_gives_the_same_bits_and_is_left_alone(
    entry, disguise, fitted, engine, tmp_path
):
    expected = result_bits(entry, fitted, engine, x=X.copy())
    x = disguise(X, tmp_path)
    before = content(x)
    assert result_bits(entry, fitted, engine, x=x) == expected
    assert content(x) == before


@pytest.mark.parametrize("entry", TAKE_Y, ids=name_of)
@each_disguise
def test_y_in_any_disguise_gives_the_same_bits_and_is_left_alone(
    entry, disguise, fitted, engine, tmp_path
):
    expected = result_bits(entry, fitted, engine, y=Y.copy())
    y = disguise(Y, tmp_path)
    before = content(y)
    assert result_bits(entry, fitted, engine, y=y) == expected
    assert content(y) == before


@pytest.mark.parametrize("entry", TAKE_Y, ids=name_of)
@pytest.mark.parametrize(
    "flat",
    [lambda y: y[:, 0], lambda y: y[:, 0].tolist(), lambda y: pd.Series(y[:, 0])],
    ids=["vector", "list", "series"],
)
def test_one_target_may_be_a_vector(entry, flat, fitted, engine):
    expected = result_bits(entry, fitted, engine, y=Y)
    assert result_bits(entry, fitted, engine, y=flat(Y)) == expected


@pytest.mark.parametrize("entry", TAKE_NOISE, ids=name_of)
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


def test_a_fit_keeps_copies_of_its_rows_for_stacking(engine):
    pytest.importorskip("arviz")
    x, y = X.copy(), Y.copy()
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, x, y, noise_scale=NOISE)
    x[:], y[:] = np.nan, np.nan
    with pytest.warns(UserWarning, match="Pareto k"):  # six draws per chain are too few
        stacking = model.stack_chains()
    assert stacking.num_rows == NUM_ROWS and stacking.pareto_k.shape == (2, NUM_ROWS)
    np.testing.assert_array_equal(model.posterior.chain_weights, stacking.weights)


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


# Odd but usable data.


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
        pretraining=tfbnn.Pretraining(epochs=2),
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
    np.testing.assert_allclose(np.std(engine.data.x, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.std(engine.data.y, axis=1), 1.0, rtol=1e-6)
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


def test_large_inputs_that_fit_give_finite_predictions(fitted):
    assert np.isfinite(fitted.predict(X * 1e30).mean).all()


# Settings of fit_posterior.

BAD_SETTINGS = [
    ({"num_chains": 0}, ValueError, ["num_chains", "at least 1", "0"]),
    ({"num_chains": 2.0}, TypeError, ["num_chains", "integer", "2.0"]),
    ({"num_chains": "4"}, TypeError, ["num_chains", "integer", "'4'"]),
    ({"num_chains": None}, TypeError, ["num_chains", "integer", "None"]),
    ({"num_chains": True}, TypeError, ["num_chains", "integer", "True"]),
    ({"num_results": 0}, ValueError, ["num_results", "at least 1", "0"]),
    ({"num_results": -5}, ValueError, ["num_results", "at least 1", "-5"]),
    ({"num_results": 1e3}, TypeError, ["num_results", "integer", "1000.0"]),
    ({"num_burnin_steps": -1}, ValueError, ["num_burnin_steps", "at least 0", "-1"]),
    ({"num_burnin_steps": np.nan}, TypeError, ["num_burnin_steps", "integer", "nan"]),
    ({"num_steps_between_results": -1}, ValueError, ["num_steps_between_results", "at least 0"]),
    ({"num_steps_between_results": [1]}, TypeError, ["num_steps_between_results", "integer"]),
    ({"seed": -1}, ValueError, ["seed", "at least 0", "-1"]),
    ({"seed": None}, TypeError, ["seed", "integer", "None"]),
    ({"seed": 0.5}, TypeError, ["seed", "integer", "0.5"]),
    ({"seed": np.random.default_rng(0)}, TypeError, ["seed", "integer"]),
    ({"pretraining": True}, TypeError, ["pretraining", "Pretraining", "True"]),
    ({"pretraining": {"epochs": 3}}, TypeError, ["pretraining", "Pretraining"]),
    ({"pretraining": tfbnn.Pretraining}, TypeError, ["pretraining", "Pretraining"]),
    (
        {"pretraining": tfbnn.Pretraining(early_stopping=5)},
        ValueError,
        ["early_stopping", "validation_data"],
    ),
    ({"jit_compile": "yes"}, TypeError, ["jit_compile", "True or False", "'yes'"]),
    ({"jit_compile": 1}, TypeError, ["jit_compile", "True or False"]),
    ({"output": 3}, TypeError, ["output", "path", "3"]),
    ({"output": "absent/run"}, FileNotFoundError, ["absent", "Create it first"]),
    ({"output": __file__}, ValueError, ["test_bad_input.py", "not a run folder"]),
    ({"output": os.path.dirname(__file__)}, ValueError, ["tests", "not a run folder"]),
    ({"resume": True}, ValueError, ["resume=True", "output=None"]),
    ({"resume": "yes"}, TypeError, ["resume", "True or False", "'yes'"]),
    ({"commit_interval": -1}, ValueError, ["commit_interval", ">= 0", "-1"]),
    ({"commit_interval": None}, TypeError, ["commit_interval", "number", "None"]),
    ({"verbose": 7}, ValueError, ["verbose", "'auto', 0 or 1", "7"]),
    ({"verbose": "loud"}, ValueError, ["verbose", "'auto', 0 or 1", "'loud'"]),
    ({"callbacks": print}, TypeError, ["callbacks"]),
    ({"callbacks": None}, TypeError, ["callbacks"]),
    ({"callbacks": [1]}, TypeError, ["callback", "callable", "1"]),
    ({"validation_data": X}, ValueError, ["validation_data", "(x, y)", "ndarray"]),
    ({"validation_data": (X,)}, ValueError, ["validation_data", "(x, y)"]),
    ({"validation_data": (X, Y, NOISE, 1)}, ValueError, ["validation_data", "(x, y)"]),
    ({"validation_data": 0.2}, ValueError, ["validation_data", "(x, y)", "float"]),
    ({"validation_data": "test"}, ValueError, ["validation_data", "(x, y)", "str"]),
    ({"kernel": "hcm"}, ValueError, ["kernel", "hmc", "nuts", "'hcm'"]),
    ({"kernel": None}, TypeError, ["kernel", "hmc", "nuts", "None"]),
    ({"kernel": 3}, TypeError, ["kernel", "hmc", "nuts", "3"]),
    ({"kernel": ["hmc"]}, TypeError, ["kernel", "hmc", "nuts"]),
    ({"kernel": tfbnn.Pretraining()}, TypeError, ["kernel", "hmc", "nuts"]),
    ({"kernel": lambda target_log_prob_fn: None}, TypeError, ["kernel", "TransitionKernel"]),
    ({"kernel": lambda: None}, TypeError, ["kernel", "target_log_prob_fn"]),
    # What this version does not have.
    ({"num_workers": 0}, ValueError, ["num_workers=0"]),
    ({"num_workers": "all"}, ValueError, ["'auto'", "received 'all'"]),
    ({"num_workers": 1.5}, TypeError, ["num_workers=1.5"]),
    ({"kernel": "gibbs"}, ValueError, ["'gibbs'", "hmc", "nuts"]),
]


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    BAD_SETTINGS,
    ids=[", ".join(words) for _, _, words in BAD_SETTINGS],
)
@pytest.mark.parametrize("pretraining", [None, tfbnn.Pretraining()], ids=["", "pretraining"])
def test_bad_settings_are_refused_before_the_engine_starts(
    settings, error, words, pretraining, fitted, engine
):
    settings = {"pretraining": pretraining} | settings
    refuses(lambda: fitted.fit_posterior(X, Y, **settings), fitted, engine, error, words)


def test_after_a_refused_first_fit_the_model_is_still_not_fitted(engine):
    model = BayesianMLP([2, 5, 1])
    with pytest.raises(ValueError, match="finite"):
        model.fit_posterior(with_cell(np.nan), Y)
    with pytest.raises(NotFittedError, match="fit_posterior"):
        model.predict(X)


def test_after_a_failure_inside_the_engine_the_first_posterior_is_still_there(fitted, engine):
    before = fitted.predict(X).mean
    with pytest.raises(AssertionError, match="pretraining was reached"):
        fitted.fit_posterior(X, Y)
    np.testing.assert_array_equal(fitted.predict(X).mean, before)


def test_a_run_stopped_before_the_first_draw_leaves_the_first_posterior(fitted, engine):
    before, engine.num_kept = fitted.posterior, 0
    with pytest.warns(UserWarning, match="keeps its earlier posterior"):
        run = fake_fit(fitted)
    assert run.num_results == 0 and "too few draws" in run.report()
    assert fitted.posterior is before


@pytest.mark.filterwarnings("ignore:The run was stopped early:UserWarning")
def test_an_interrupted_run_raises_and_leaves_its_draws(engine):
    model, engine.num_kept, engine.interrupted = BayesianMLP([2, 5, 1]), 4, True
    with pytest.raises(KeyboardInterrupt):
        fake_fit(model)
    assert model.posterior.num_results == 4
    assert np.isfinite(model.predict(X).mean).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"num_chains": np.int64(2)},
        {"num_results": np.int32(6)},
        {"num_burnin_steps": np.int64(3)},
        {"num_steps_between_results": np.uint8(1)},
        {"seed": np.int64(7)},
        {"kernel": lambda: tfbnn.kernels.NUTS(max_tree_depth=np.int64(4))},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_model_fitted_with_numpy_numbers_can_be_saved(settings, engine, tmp_path):
    if "kernel" in settings:
        settings = {"kernel": settings["kernel"]()}
    model = BayesianMLP([2, 5, 1])
    fake_fit(model, **settings)
    model.save(tmp_path / "model.h5")
    assert tfbnn.load(tmp_path / "model.h5").posterior.num_results == 6


BAD_KERNELS = [
    ({"step_size": 0.0}, ValueError, "step_size must be > 0"),
    ({"step_size": -0.1}, ValueError, "step_size must be > 0"),
    ({"step_size": np.nan}, ValueError, "step_size must be > 0"),
    ({"step_size": np.inf}, ValueError, "step_size must be > 0"),
    ({"step_size": "auto"}, TypeError, "step_size must be a number"),
    ({"step_size": [0.1, 0.2]}, TypeError, "step_size must be a number"),
    ({"step_size": True}, TypeError, "step_size must be a number"),
    ({"adapt_step_size": "yes"}, TypeError, "adapt_step_size"),
    ({"target_accept_prob": 0.0}, ValueError, "target_accept_prob must be > 0 and < 1"),
    ({"target_accept_prob": 1.0}, ValueError, "target_accept_prob must be > 0 and < 1"),
    ({"target_accept_prob": np.nan}, ValueError, "target_accept_prob must be"),
    ({"target_accept_prob": "0.8"}, TypeError, "target_accept_prob must be a number"),
    ({"preconditioner": "cholesky"}, ValueError, "preconditioner .*'cholesky'"),
    ({"preconditioner": "hessian"}, ValueError, "preconditioner must be one of.*'hessian'"),
    ({"preconditioner": None}, TypeError, "preconditioner must be one of.*None"),
]


# Kernels around another one, which has these settings, have tests of their own.
OTHERS = ("available", "PowerPosterior", "Repriorised")
KERNELS = [name for name in tfbnn.kernels.__all__ if name not in OTHERS]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("settings", "error", "match"), BAD_KERNELS, ids=str)
def test_bad_settings_of_any_kernel_are_refused(kernel, settings, error, match):
    with pytest.raises(error, match=match):
        getattr(tfbnn.kernels, kernel)(**settings)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda k: k.HMC(num_leapfrog_steps=0), ValueError, "num_leapfrog_steps must be at least"),
        (lambda k: k.HMC(num_leapfrog_steps=2.5), TypeError, "num_leapfrog_steps must be an int"),
        (lambda k: k.HMC(trajectory_jitter=-0.1), ValueError, "trajectory_jitter must be >= 0"),
        (lambda k: k.HMC(trajectory_jitter=1.0), ValueError, "trajectory_jitter must be .*< 1"),
        (lambda k: k.HMC(trajectory_jitter=None), TypeError, "trajectory_jitter must be a number"),
        (lambda k: k.NUTS(max_tree_depth=0), ValueError, "max_tree_depth must be at least 1"),
        (lambda k: k.NUTS(max_tree_depth="10"), TypeError, "max_tree_depth must be an integer"),
        # TFP writes down all 2^depth steps of a tree before the first one.
        (lambda k: k.NUTS(max_tree_depth=64), ValueError, "max_tree_depth"),
        (lambda k: k.UnderdampedLangevin(persistence=1.0), ValueError, "persistence must be .*< 1"),
        (lambda k: k.UnderdampedLangevin(persistence="9"), TypeError, "persistence must be a num"),
        (lambda k: k.UnderdampedLangevin(adjusted=1), TypeError, "adjusted"),
        (lambda k: k.Microcanonical(adjusted="no"), TypeError, "adjusted"),
        (
            lambda k: k.Microcanonical(trajectory_length=0),
            ValueError,
            "trajectory_length must be >",
        ),
        (lambda k: k.Microcanonical(energy_variance=-1), ValueError, "energy_variance must be > 0"),
        (lambda k: k.Microcanonical(max_leapfrog_steps=0), ValueError, "max_leapfrog_steps"),
        (lambda k: k.ChEESHMC(max_leapfrog_steps=9.5), TypeError, "max_leapfrog_steps"),
        (lambda k: k.ChEESHMC(trajectory_length="1"), TypeError, "trajectory_length must be a num"),
        (lambda k: k.ChEESHMC(step_size=0.1), ValueError, "trajectory_length must be given"),
        (lambda k: k.TruncatedMALA(preconditioner="gauss_newton"), ValueError, "box"),
        (lambda k: k.SMMALA(preconditioner="diagonal"), ValueError, "the metric takes its place"),
        (lambda k: k.SMMALA(metric="fisher"), ValueError, "metric must be one of.*'fisher'"),
        (lambda k: k.SMMALA(softabs_alpha=0), ValueError, "softabs_alpha must be > 0"),
        (lambda k: k.SMMALA(softabs_alpha="1"), TypeError, "softabs_alpha must be a number"),
        (lambda k: k.HMC(0.1), TypeError, "positional"),
        (lambda k: k.HMC(leapfrog_steps=3), TypeError, "leapfrog_steps"),
    ],
)
def test_bad_settings_of_one_kernel_are_refused(make, error, match):
    with pytest.raises(error, match=match):
        make(tfbnn.kernels)


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"epochs": -1}, ValueError, "epochs must be at least 0"),
        ({"epochs": 2.0}, TypeError, "epochs must be an integer"),
        ({"epochs": None}, TypeError, "epochs must be an integer"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
        ({"batch_size": "all"}, TypeError, "batch_size must be an integer"),
        ({"learning_rate": 0}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate": -1e-3}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate": np.nan}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate": "1e-3"}, TypeError, "learning_rate must be a number"),
        ({"learning_rate_schedule": "linear"}, ValueError, "learning_rate_schedule .*'linear'"),
        ({"learning_rate_schedule": None}, ValueError, "learning_rate_schedule .*None"),
        ({"early_stopping": 0}, ValueError, "early_stopping must be at least 1"),
        ({"early_stopping": True}, TypeError, "early_stopping must be an integer"),
        ({"newton_iterations": -1}, ValueError, "newton_iterations .*-1"),
        ({"newton_iterations": "many"}, TypeError, "newton_iterations .*'many'"),
        ({"epoch": 3}, TypeError, "epoch"),
    ],
    ids=str,
)
def test_bad_settings_of_pretraining_are_refused(settings, error, match):
    with pytest.raises(error, match=match):
        tfbnn.Pretraining(**settings)


# Settings of predictions, and theta.


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"quantiles": [0.0]}, ValueError, ["quantiles", "> 0 and < 1", "0.0"]),
        ({"quantiles": [0.5, 1.0]}, ValueError, ["quantiles", "> 0 and < 1", "1.0"]),
        ({"quantiles": 84}, ValueError, ["quantiles", "> 0 and < 1", "84"]),
        ({"quantiles": -0.1}, ValueError, ["quantiles", "> 0 and < 1"]),
        ({"quantiles": [np.nan]}, ValueError, ["quantiles", "> 0 and < 1"]),
        ({"quantiles": "median"}, TypeError, ["quantiles", "number", "'median'"]),
        ({"quantiles": [[0.1, 0.9]]}, TypeError, ["quantiles", "number"]),
        ({"quantiles": True}, TypeError, ["quantiles", "number", "True"]),
        ({"space": "log"}, ValueError, ["space", "original", "transformed", "'log'"]),
        ({"space": None}, TypeError, ["space", "original", "transformed", "None"]),
        ({"include_noise": "no"}, TypeError, ["include_noise", "True or False", "'no'"]),
        ({"include_noise": None}, TypeError, ["include_noise", "True or False", "None"]),
    ],
    ids=str,
)
def test_bad_settings_of_predict_are_refused(settings, error, words, fitted, engine):
    refuses(lambda: fitted.predict(X, **settings), fitted, engine, error, words)


def test_a_bad_space_of_predict_draws_is_refused(fitted, engine):
    refuses(
        lambda: fitted.predict_draws(X, space="log10"),
        fitted,
        engine,
        ValueError,
        ["space", "original", "transformed", "'log10'"],
    )


@pytest.mark.parametrize(
    ("theta", "error", "words"),
    [
        (THETA[:-1], ValueError, ["[..., 22]", "[21]"]),
        (THETA[:, None], ValueError, ["[..., 22]", "[22, 1]"]),
        (1.0, ValueError, ["[..., 22]", "[]"]),
        ([], ValueError, ["[..., 22]", "[0]"]),
        (None, (TypeError, ValueError), []),
        (THETA + 0j, TypeError, ["complex"]),
        (THETA.astype(str), TypeError, ["real numbers"]),
        (["a"] * 22, TypeError, ["real numbers"]),
        (THETA > 0, TypeError, ["booleans"]),
        (THETA.astype("M8[s]"), TypeError, ["dates"]),
        (ragged(), TypeError, ["rectangular"]),
        (np.ma.masked_less(THETA, 0), TypeError, ["masked"]),
        (sparse.csr_matrix(THETA), TypeError, ["sparse"]),
    ],
    ids=[
        "short",
        "column",
        "number",
        "empty",
        "None",
        "complex",
        "strings",
        "list of strings",
        "booleans",
        "dates",
        "ragged",
        "masked",
        "sparse",
    ],
)
def test_bad_theta_is_refused(theta, error, words, fitted, engine):
    refuses(lambda: fitted.log_prob(theta, X, Y), fitted, engine, error, ["theta", *words])


def test_no_draws_of_theta_have_no_densities(fitted):
    assert fitted.log_prob(np.zeros((0, 22)), X, Y).shape == (0,)


@pytest.mark.parametrize(
    ("noise_scale", "known"),
    [(0.1, None), (0.1, NOISE), ("learned", None), ("learned", NOISE)],
    ids=["fixed", "fixed, known", "learned", "learned, known"],
)
def test_the_reference_case_is_accepted_everywhere(noise_scale, known, engine):
    """The rows that all refusals above start from are good."""
    model = BayesianMLP([2, 5, 1], likelihood=Gaussian(noise_scale))
    fake_fit(model, noise_scale=known, validation_data=(X, Y, known))
    assert len(engine.calls) == 1
    assert np.isfinite(predict(model, noise=known).stddev).all()
    assert np.isfinite(evaluate(model, noise=known)["crps"])
    theta = np.zeros(model.spec.layout.num_parameters)
    assert np.isfinite(model.log_prob(theta, X, Y, noise_scale=known))


def test_log_prob_after_a_fit_with_row_noise_needs_row_noise(synthetic_ensemble):
    ensemble = synthetic_ensemble(row_noise=True)
    model = BayesianMLP.from_ensemble(ensemble)
    with pytest.raises(ValueError, match="log_prob needs noise_scale"):
        model.log_prob(ensemble.draws, np.zeros((3, 2)), np.ones(3))
