"""Data frames: columns by name, booleans as numbers, and names that come back."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support import entries as at
from tests.support.entries import NOISE, X, Y, fake_fit, name_of
from tfbnn import BayesianMLP
from tfbnn.data.bad_rows import BadRowError, positions_named
from tfbnn.data.frames import (
    column_names_of,
    select_columns,
)
from tfbnn.data.labels import as_labels
from tfbnn.data.table import Table
from tfbnn.exceptions import DataWarning
from tfbnn.priors import Normal
from tfbnn.spec.rows import Known, rows_to_fit

NAMES = ("mass", "mix")
FRAME = pd.DataFrame(X, columns=NAMES)
WIDER = FRAME.assign(model="cMSSM", mix2=1.0)[["mix2", "mix", "model", "mass"]]
LOG_PROB = pytest.param(at.log_prob, marks=pytest.mark.tensorflow)
ENTRIES = [at.predict, at.predict_draws, at.evaluate, at.diagnose, at.stack, LOG_PROB]


@pytest.fixture
def named(synthetic_ensemble):
    return BayesianMLP.from_ensemble(synthetic_ensemble(feature_names=NAMES, dtype="float32"))


def answer(entry, model, x):
    result = entry(model, x=x)
    if entry is at.predict:
        return [result.mean.tolist(), result.stddev.tolist()]
    if entry is at.diagnose:
        return result.rhat_function.tolist()
    return result.weights.tolist() if entry is at.stack else str(result)


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_columns_are_taken_by_name(entry, named):
    """In any order, among others, which are ignored with a word; not if one is missing or there twice."""
    expected = answer(entry, named, X)
    for x in (FRAME[["mix", "mass"]], Table(NAMES[::-1], X[:, ::-1])):
        assert answer(entry, named, x) == expected
    with pytest.warns(DataWarning, match="not fitted with, which are ignored: 'mix2', 'model'"):
        assert answer(entry, named, WIDER) == expected
    for x, words in (
        (FRAME[["mass"]], "has no column mix; its columns are mass"),
        (FRAME.set_axis([0, 1], axis=1), "has no column mass, mix; its columns are 0, 1"),
        (FRAME[["mass", "mix", "mix"]], "2 columns mix; keep only one"),
    ):
        with pytest.raises(ValueError, match=words):
            entry(named, x=x)
    with pytest.raises(TypeError, match=r"received a Table. Pass .*x.to_pandas\(\)"):
        entry(named, x=pytest.importorskip("pyarrow").Table.from_pandas(FRAME))


@pytest.mark.parametrize("columns", [["a", "a"], [1, "1"]], ids=str)
def test_two_columns_of_one_name_are_refused_at_the_fit(columns):
    spec, frame = BayesianMLP([2, 5, 1]).spec, FRAME.set_axis(columns, axis=1)
    with pytest.raises(ValueError, match=f"x has 2 columns {columns[0]}; keep only one"):
        rows_to_fit(spec, frame, Y, None, None)


@pytest.fixture
def two_targets(synthetic_ensemble):
    """A model whose targets are called a and b, and a frame of them."""
    ensemble = synthetic_ensemble(layer_sizes=(2, 3, 2))
    names = ensemble.provenance.stating(target_names=["a", "b"])
    model = BayesianMLP.from_ensemble(replace(ensemble, provenance=names))
    return model, pd.DataFrame(model.predict(X).mean, columns=["a", "b"])


def test_targets_are_taken_by_name_in_any_order(two_targets):
    model, frame = two_targets
    assert np.max(model.evaluate(X, frame[["b", "a"]])["rmse"]) < 1e-6
    # A table whose columns have other names has them in order.
    assert np.max(model.evaluate(X, frame.set_axis(["c", "d"], axis=1))["rmse"]) < 1e-6


def test_noise_goes_with_the_targets_that_it_is_of(two_targets):
    """By its own names, else by the place of the target beside it."""
    model, frame = two_targets[0], two_targets[1] + 0.1
    noise = pd.DataFrame(np.full(frame.shape, [0.1, 5.0]), columns=["a", "b"])
    expected, turned = str(model.evaluate(X, frame, noise_scale=noise)), noise[["b", "a"]]
    for beside in (turned, turned.to_numpy(), turned.set_axis(["c", "d"], axis=1)):
        assert str(model.evaluate(X, frame[["b", "a"]], noise_scale=beside)) == expected
    assert str(model.evaluate(X, frame, noise_scale=turned)) == expected


def test_rows_of_validation_and_later_ones_are_taken_by_name():
    values = np.arange(10.0)[:, None]
    targets = pd.DataFrame(values + [0.0, 100.0], columns=["a", "b"])
    inputs, swapped = pd.DataFrame(values + [0.0, 7.0], columns=NAMES), targets[["b", "a"]]
    spec = BayesianMLP([2, 3, 2]).spec
    rows, validation = rows_to_fit(spec, inputs, targets, None, (inputs[["mix", "mass"]], swapped))
    np.testing.assert_array_equal(validation.x, rows.x)
    np.testing.assert_array_equal(validation.y, rows.y)
    with pytest.raises(ValueError, match="validation x has no column mix"):
        rows_to_fit(spec, inputs, targets, None, (inputs[["mass"]], targets))
    earlier = Known(None, None, None, target_names=("a", "b"))
    noise = np.full(targets.shape, [5.0, 0.1])
    later, validation = rows_to_fit(spec, inputs, swapped, noise, (inputs, targets, noise), earlier)
    np.testing.assert_array_equal(later.y, rows.y)
    np.testing.assert_array_equal(later.noise, noise[:, ::-1])
    np.testing.assert_array_equal(validation.y, rows.y)
    assert column_names_of(swapped, ("a", "b")) == {"target_names": ["a", "b"]}
    # After an earlier fit to arrays the names are those of these rows.
    nothing = Known(None, None, None)
    _, validation = rows_to_fit(spec, inputs, targets, None, (inputs, swapped), nothing)
    np.testing.assert_array_equal(validation.y, rows.y)


def test_validation_rows_have_noise_where_the_others_have():
    spec = BayesianMLP([2, 3, 1]).spec
    with pytest.raises(ValueError, match="validation_data needs noise_scale, as the training rows"):
        rows_to_fit(spec, X, Y, NOISE, (X, Y))
    assert rows_to_fit(spec, X, Y, NOISE, (X, Y, NOISE))[1].noise is not None


def test_values_of_selected_columns_keep_their_bits():
    frame = pd.DataFrame({"b": np.float32([0.1, 3.0]), "text": ["x", "y"], "a": [2**40, 5]})
    with pytest.warns(DataWarning):
        selected = select_columns(frame, ("a", "b"), "x")
    assert np.asarray(selected).tolist() == [[2**40, np.float32(0.1)], [5, 3.0]]


def test_columns_of_booleans_are_0_and_1(named):
    mass, flags = X[:, 0], X[:, 1] > 1
    for x, expected in (
        (pd.DataFrame({"mass": mass, "mix": flags}), [mass, flags]),
        (pd.DataFrame({"mix": pd.array(flags, "boolean"), "mass": mass}), [mass, flags]),
        (pd.DataFrame({"mass": pd.Series(mass, dtype=object), "mix": flags}), [mass, flags]),
        (FRAME > 1, [mass > 1, flags]),
    ):
        expected = named.predict(np.column_stack(expected).astype(float)).mean
        np.testing.assert_array_equal(named.predict(x).mean, expected)


def test_names_of_targets():
    for y, names in (
        (pd.Series(Y[:, 0], name="xsec"), ["xsec"]),
        (pd.DataFrame(np.hstack([Y, Y]), columns=["u", "v"]), ["u", "v"]),
        *((y, None) for y in (pd.DataFrame(Y), pd.Series(Y[:, 0]), Y, Y.tolist())),
    ):
        assert column_names_of(y) == ({} if names is None else {"target_names": names})


@pytest.mark.tensorflow
def test_names_are_kept_with_the_model(engine, tmp_path):
    model = BayesianMLP([2, 5, 1], prior=Normal(1.0))
    fake_fit(model)  # imports TensorFlow, whose warnings are not looked for here
    with pytest.warns(DataWarning, match=r"Columns \['mix'\] of x are constant"):
        fake_fit(model, FRAME.assign(mix=0.5), pd.Series(Y[:, 0], name="xsec"))
    model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5").posterior
    assert loaded.feature_names == NAMES and loaded.target_names == ["xsec"]


def test_a_bad_row_is_found_in_the_file(named):
    table = Table(NAMES, X, "points.csv", lines=np.arange(12) + 5)
    x, y, noise = X.copy(), Y[:, 0].copy(), NOISE.copy()
    x[3, 1], y[2], noise[4] = 1e300, np.nan, 0.0
    of_file = replace(table, values=x)
    of_frame = FRAME.assign(mix=x[:, 1])[["mix", "mass"]]
    position = r"row 3 \(points.csv, line 8\), column 1 \('mix'\)"
    for call, words in (
        (lambda: named.predict(of_file), f"x does not .*{position}"),
        (lambda: named.predict(of_frame), r"row 3, column 1 \('mix'\)\."),
        (
            lambda: named.evaluate(table, y),
            r"y must .*row 2 \(points.csv, line 7\), column 0\. Drop",
        ),
        (
            lambda: named.evaluate(table, Y, noise_scale=noise),
            r"noise_scale must .* in row 4 \(points.csv, line 9\)\. It",
        ),
    ):
        with pytest.raises(BadRowError, match=words):
            call()


def test_rows_of_validation_are_found_in_their_own_file():
    train, other = (Table(NAMES, X, f"{name}.csv", lines=np.arange(12)) for name in ("a", "b"))
    for argument, source in (("y", "a.csv"), ("validation y", "b.csv")):
        with pytest.raises(BadRowError, match=f"{source}, line 5"), positions_named(train, other):
            raise BadRowError(argument, "bad", "Drop it.", 5)


@pytest.mark.parametrize("name", ["y", "noise_scale", "validation y", "groups"])
def test_rows_with_the_same_labels_in_another_order_are_refused(name):
    """They are paired by place, and one of them was sorted or merged."""
    x, y = pd.DataFrame(X), pd.Series(Y[:, 0])
    turned = pd.Series(Y[::-1, 0], index=y.index[::-1])
    data = {
        "y": (x, turned, None, None),
        "noise_scale": (x, y, turned, None),
        "validation y": (x, y, None, (x, turned)),
        "groups": (x, y, None, None, None, "refuse", turned.rank().astype(int)),
    }
    spec = BayesianMLP([2, 5, 1]).spec
    with pytest.raises(ValueError, match=rf"{name} has the index of .*\.loc\[.*to_numpy\(\)"):
        rows_to_fit(spec, *data[name])
    for other in (y, y.set_axis(y.index + 3), y.to_numpy(), turned.to_numpy()):
        rows, _ = rows_to_fit(spec, x, other, None, None)
        np.testing.assert_array_equal(rows.y[:, 0], np.asarray(other))


def test_noise_in_another_order_is_refused_by_predict_and_evaluate(named):
    noise = pd.Series(NOISE, index=FRAME.index[::-1])
    for call in (named.evaluate, named.predict):
        rows = (FRAME, Y) if call == named.evaluate else (FRAME,)
        with pytest.raises(ValueError, match="noise_scale has the index of x in another order"):
            call(*rows, noise_scale=noise)


def test_tables_of_pyarrow_are_to_be_converted():
    pa = pytest.importorskip("pyarrow")
    table, spec = pa.table({"a": X[:, 0], "b": X[:, 1]}), BayesianMLP([2, 5, 1]).spec
    for x, y in ((table, Y), (table.to_batches()[0], Y), (X, pa.table({"y": Y[:, 0]}))):
        with pytest.raises(TypeError, match=r"to_pandas\(\)"):
            rows_to_fit(spec, x, y, None, None)
    with pytest.raises(TypeError, match=r"groups.to_pandas\(\)"):
        rows_to_fit(spec, X, Y, None, None, groups=pa.table({"g": [1, 2, 3] * 4}))
    gap = pa.table({"kind": pa.array([None, "t", "s"] * 4).dictionary_encode()})
    with pytest.raises((TypeError, ValueError), match="None"):
        as_labels(gap["kind"], "y", num_targets=1)


class LazyFrame:
    columns = ("a", "b")


def test_lazy_frames_are_to_be_collected():
    spec = BayesianMLP([2, 5, 1]).spec
    for rows in ((LazyFrame(), Y), (X, LazyFrame())):
        with pytest.raises(TypeError, match=r"LazyFrame. Pass [xy].collect\(\)"):
            rows_to_fit(spec, *rows, None, None)
