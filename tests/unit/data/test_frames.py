"""Data frames: columns by name, booleans as numbers, and names that come back."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.entries import (
    NOISE,
    X,
    Y,
    diagnose,
    evaluate,
    fake_fit,
    fit,
    log_prob,
    name_of,
    predict,
    predict_draws,
    stack,
    validate,
)
from tfbnn import BayesianMLP
from tfbnn.data.bad_rows import BadRowError, places_named
from tfbnn.data.frames import column_names_of, select_columns
from tfbnn.data.table import Table
from tfbnn.exceptions import DataWarning
from tfbnn.priors import Normal
from tfbnn.spec.rows import Known, rows_to_fit

NAMES = ("mass", "mix")
FRAME = pd.DataFrame(X, columns=NAMES)
WIDER = FRAME.assign(model="cMSSM", mix2=1.0)[["mix2", "mix", "model", "mass"]]
WITHOUT_TENSORFLOW = (predict, predict_draws, evaluate, diagnose, stack)


@pytest.fixture
def named(synthetic_ensemble):
    return BayesianMLP.from_ensemble(synthetic_ensemble(feature_names=NAMES, dtype="float32"))


def answer(entry, model, x):
    result = entry(model, x=x)
    if entry is predict:
        return [result.mean.tolist(), result.stddev.tolist()]
    if entry is diagnose:
        return result.rhat_function.tolist()
    return result.weights.tolist() if entry is stack else str(result)


@pytest.mark.parametrize("entry", WITHOUT_TENSORFLOW, ids=name_of)
def test_columns_are_taken_by_name_in_any_order(entry, named):
    assert answer(entry, named, FRAME[["mix", "mass"]]) == answer(entry, named, X)
    table = Table(NAMES[::-1], X[:, ::-1])
    assert answer(entry, named, table) == answer(entry, named, X)


def test_targets_are_taken_by_name_in_any_order(synthetic_ensemble):
    ensemble = synthetic_ensemble(layer_sizes=(2, 3, 2))
    names = ensemble.provenance.stating(target_names=["a", "b"])
    model = BayesianMLP.from_ensemble(replace(ensemble, provenance=names))
    frame = pd.DataFrame(model.predict(X).mean, columns=["a", "b"])
    assert np.max(model.evaluate(X, frame[["b", "a"]])["rmse"]) < 1e-6
    # A table whose columns have other names has them in order.
    assert np.max(model.evaluate(X, frame.set_axis(["c", "d"], axis=1))["rmse"]) < 1e-6


def as_frame(noise):
    return pd.DataFrame(noise, columns=["a", "b"])


@pytest.mark.parametrize(
    "of_noise",
    [as_frame, np.asarray, lambda noise: as_frame(noise).set_axis(["c", "d"], axis=1)],
    ids=["named", "array", "other names"],
)
def test_noise_goes_with_the_targets_that_it_is_of(synthetic_ensemble, of_noise):
    """By its own names, else by the place of the target beside it."""
    ensemble = synthetic_ensemble(layer_sizes=(2, 3, 2))
    names = ensemble.provenance.stating(target_names=["a", "b"])
    model = BayesianMLP.from_ensemble(replace(ensemble, provenance=names))
    frame = as_frame(model.predict(X).mean + 0.1)
    noise = np.full(frame.shape, [0.1, 5.0])
    expected = str(model.evaluate(X, frame, noise_scale=noise))
    passed = of_noise(noise[:, ::-1])
    passed = passed.set_axis(passed.columns[::-1], axis=1) if of_noise is as_frame else passed
    assert str(model.evaluate(X, frame[["b", "a"]], noise_scale=passed)) == expected
    if of_noise is as_frame:
        assert str(model.evaluate(X, frame, noise_scale=passed)) == expected


def test_targets_of_validation_and_later_rows_are_taken_by_name():
    targets = as_frame(np.arange(10.0)[:, None] + [0.0, 100.0])
    inputs, swapped = np.arange(10.0)[:, None], targets[["b", "a"]]
    spec = BayesianMLP([1, 3, 2]).spec
    rows, validation = rows_to_fit(spec, inputs, targets, None, (inputs, swapped))
    np.testing.assert_array_equal(validation.y, rows.y)
    earlier = Known(None, None, None, target_names=("a", "b"))
    noise = np.full(targets.shape, [5.0, 0.1])
    later, validation = rows_to_fit(spec, inputs, swapped, noise, (inputs, targets), earlier)
    np.testing.assert_array_equal(later.y, rows.y)
    np.testing.assert_array_equal(later.noise, noise[:, ::-1])
    np.testing.assert_array_equal(validation.y, rows.y)
    assert column_names_of(swapped, ("a", "b")) == {"target_names": ["a", "b"]}


@pytest.mark.parametrize("entry", WITHOUT_TENSORFLOW, ids=name_of)
def test_other_columns_are_ignored_with_a_word(entry, named):
    expected = answer(entry, named, X)
    with pytest.warns(DataWarning, match="not fitted with, which are ignored: 'mix2', 'model'"):
        assert answer(entry, named, WIDER) == expected


@pytest.mark.parametrize("entry", WITHOUT_TENSORFLOW, ids=name_of)
def test_missing_and_repeated_columns_are_named(entry, named):
    with pytest.raises(ValueError, match=r"has no column mix; its columns are mass"):
        entry(named, x=FRAME[["mass"]])
    with pytest.raises(ValueError, match="2 columns mix; keep only one"):
        entry(named, x=FRAME[["mass", "mix", "mix"]])


@pytest.mark.tensorflow
def test_log_prob_takes_columns_by_name(named):
    assert log_prob(named, x=FRAME[["mix", "mass"]]) == log_prob(named, x=X)


def test_values_of_selected_columns_keep_their_bits():
    frame = pd.DataFrame({"b": np.float32([0.1, 3.0]), "text": ["x", "y"], "a": [2**40, 5]})
    with pytest.warns(DataWarning):
        selected = select_columns(frame, ("a", "b"), "x")
    assert np.asarray(selected).tolist() == [[2**40, np.float32(0.1)], [5, 3.0]]


@pytest.mark.parametrize(
    "flags",
    [
        lambda flags: pd.DataFrame({"mass": X[:, 0], "mix": flags}),
        lambda flags: pd.DataFrame({"mix": pd.array(flags, "boolean"), "mass": X[:, 0]}),
        lambda flags: pd.DataFrame({"mass": pd.Series(X[:, 0], dtype=object), "mix": flags}),
    ],
)
def test_columns_of_booleans_are_0_and_1(named, flags):
    expected = named.predict(np.column_stack([X[:, 0], X[:, 1] > 1])).mean
    np.testing.assert_array_equal(named.predict(flags(X[:, 1] > 1)).mean, expected)


def test_a_frame_of_nothing_but_booleans(synthetic_ensemble):
    model = BayesianMLP.from_ensemble(synthetic_ensemble())
    np.testing.assert_array_equal(
        model.predict(pd.DataFrame(X > 1)).mean, model.predict((X > 1) * 1.0).mean
    )


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (pd.Series(Y[:, 0], name="xsec"), ["xsec"]),
        (pd.DataFrame(np.hstack([Y, Y]), columns=["u", "v"]), ["u", "v"]),
        (pd.DataFrame(Y), None),
        (pd.Series(Y[:, 0]), None),
        (Y, None),
        (Y.tolist(), None),
    ],
)
def test_names_of_targets(y, names):
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


@pytest.mark.tensorflow
def test_validation_rows_are_taken_by_name(engine):
    model = BayesianMLP([2, 5, 1], prior=Normal(1.0))
    fake_fit(model, FRAME, validation_data=(FRAME[["mix", "mass"]] + 1.0, Y))
    np.testing.assert_array_equal(model.posterior.x_reference, X + 1.0)


@pytest.mark.tensorflow
@pytest.mark.parametrize("entry", [fit, validate, log_prob], ids=name_of)
def test_columns_before_a_fit_are_those_of_the_network(entry):
    with pytest.raises(
        ValueError, match=r"2 columns, one per input of the network, received \[12, 1\]"
    ) as e:
        entry(BayesianMLP([2, 5, 1], prior=Normal(1.0), x_transform=None), x=X[:, :1])
    assert "of the fit" not in str(e.value)


def test_a_bad_row_is_found_in_the_file(named):
    table = Table(NAMES, X, "points.csv", lines=np.arange(12) + 5)
    x = X.copy()
    x[3, 1] = 1e300
    with pytest.raises(
        BadRowError, match=r"x does not .*row 3 \(points.csv, line 8\), column 1 \('mix'\)"
    ):
        named.predict(Table(NAMES, x, "points.csv", lines=table.lines))
    with pytest.raises(
        BadRowError, match=r"y must .*row 2 \(points.csv, line 7\), column 0\. Drop"
    ):
        named.evaluate(table, np.where(np.arange(12) == 2, np.nan, Y[:, 0]))
    with pytest.raises(
        BadRowError, match=r"noise_scale must .* in row 4 \(points.csv, line 9\)\. It"
    ):
        named.evaluate(table, Y, noise_scale=np.where(np.arange(12) == 4, 0.0, NOISE))
    with pytest.raises(BadRowError, match=r"row 3, column 1 \('mix'\)\."):
        named.predict(FRAME.assign(mix=x[:, 1])[["mix", "mass"]])


def test_rows_of_validation_are_found_in_their_own_file():
    train, other = (Table(NAMES, X, f"{name}.csv", lines=np.arange(12)) for name in ("a", "b"))
    for argument, source in (("y", "a.csv"), ("validation y", "b.csv")):
        with pytest.raises(BadRowError, match=f"{source}, line 5"), places_named(train, other):
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


def test_tables_of_pyarrow_have_names_text_and_flags():
    pa = pytest.importorskip("pyarrow")
    columns = {
        "mass": X[:, 0],
        "c": ["u", "v"] * 6,
        "kind": pa.array(["s", "t"] * 6).dictionary_encode(),
        "ok": [True, False] * 6,
    }
    spec = BayesianMLP([4, 5, 1]).spec
    for table in (pa.table(columns), pa.table(columns).to_batches()[0]):
        rows, _ = rows_to_fit(spec, table, pa.table({"xsec": Y[:, 0]}), None, None)
        assert rows.feature_names == ("mass", "c=v", "kind=t", "ok")
        np.testing.assert_array_equal(rows.x[:, 0], X[:, 0])
        np.testing.assert_array_equal(rows.y, Y)
        found = select_columns(table, rows.coding.names, "x")
        np.testing.assert_array_equal(rows.coding.encoded(found, "x"), rows.x)
    lists = pa.table({"mass": X[:, 0], "l": [[1]] * 12})
    with pytest.raises(TypeError, match=r"column 'l' of x must hold numbers or text.*list<"):
        rows_to_fit(spec, lists, Y, None, None)


def test_a_model_takes_tables_of_pyarrow_in_any_order(named):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"mix": X[:, 1], "mass": X[:, 0]})
    np.testing.assert_array_equal(named.predict(table).mean, named.predict(X).mean)


class LazyFrame:
    columns = ("a", "b")


def test_lazy_frames_are_to_be_collected():
    spec = BayesianMLP([2, 5, 1]).spec
    for rows in ((LazyFrame(), Y), (X, LazyFrame())):
        with pytest.raises(TypeError, match=r"LazyFrame. Pass [xy].collect\(\)"):
            rows_to_fit(spec, *rows, None, None)


def test_what_is_no_number_is_named_by_row_and_column():
    spec = BayesianMLP([2, 5, 1]).spec
    flags = pd.get_dummies(pd.DataFrame({"a": X[:, 0], "c": list("uv") * 6}), drop_first=True)
    with pytest.raises(TypeError, match=r"booleans in row 0, column 1. .*astype\(float\)"):
        rows_to_fit(spec, flags.to_numpy(), Y, None, None)
    odd = FRAME.astype(object)
    odd.iloc[4, 1] = {1.0}
    with pytest.raises(TypeError, match=r"set in row 4, column 1 \('mix'\): \{1.0\}"):
        rows_to_fit(spec, odd, Y, None, None)
