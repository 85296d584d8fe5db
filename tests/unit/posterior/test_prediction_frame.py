"""`Prediction.to_frame`: the columns of `tfbnn predict`, and the index of the rows."""

import sys

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tfbnn.likelihoods import Bernoulli, Categorical

X = make_rows(7, 2, 1)[0]


def test_without_pandas_the_message_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        fitted.predict(X).to_frame()


def test_a_part_of_a_prediction_has_no_names(fitted):
    prediction = fitted.predict(X)
    with pytest.raises(ValueError, match="to_frame needs column names"):
        type(prediction)(prediction.mean, prediction.stddev).to_frame()
    assert "labels" not in repr(prediction)


def test_numbers_names_and_index(fitted):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"], index=list("pqrstuv"))
    prediction = fitted.predict(frame, quantiles=[0.16, 0.84], return_trust=True)
    table = prediction.to_frame()
    assert list(table.columns) == ["mean", "stddev", "q0.16", "q0.84", "trust"]
    assert list(table.index) == list(frame.index)
    np.testing.assert_array_equal(table["mean"], np.ravel(prediction.mean))
    np.testing.assert_array_equal(table["q0.84"], np.ravel(prediction.quantiles[1]))
    np.testing.assert_array_equal(table["trust"], prediction.trust)
    assert table["trust"].dtype.kind == "i"
    for x in (X, X.tolist()):  # rows without an index are counted
        assert list(fitted.predict(x).to_frame().index) == list(range(7))


THREE = {"layer_sizes": (2, 4, 3), "likelihood": Categorical(), "classes": ("x", "y", "z")}


@pytest.mark.parametrize(
    "settings, columns",
    [
        ({"vector_target": True}, "mean stddev"),
        ({"vector_target": False}, "mean stddev"),
        (
            {"layer_sizes": (2, 4, 2), "provenance": {"target_names": ["u", "v"]}},
            "u_mean u_stddev v_mean v_stddev",
        ),
        (THREE, "p_x p_x_stddev p_y p_y_stddev p_z p_z_stddev"),
        ({"likelihood": Bernoulli(), "classes": (0, 1)}, "p_1 p_1_stddev"),
    ],
    ids=["vector", "column", "targets", "classes", "two classes"],
)
def test_columns_are_named_by_targets_and_classes(synthetic_ensemble, settings, columns):
    pytest.importorskip("pandas")
    model = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(**settings))
    prediction = model.predict(X)
    table = prediction.to_frame()
    assert list(table.columns) == columns.split()
    mean = prediction.columns.mean
    np.testing.assert_array_equal(table.iloc[:, 0::2], mean)
    if model.classes is not None:
        logits = list(model.predict(X, space="transformed").to_frame().columns)
        assert logits == columns.replace("p_", "logit_").split()
