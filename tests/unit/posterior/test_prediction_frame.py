"""`Prediction.to_frame`: the columns of `tfbnn predict`, and the index of the rows."""

import sys

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tfbnn.likelihoods import Bernoulli, Categorical

X = make_rows(7, 2, 1)[0]


def model_of(synthetic_ensemble, **settings):
    return tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(**settings))


def test_without_pandas_the_message_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        fitted.predict(X).to_frame()


def test_a_part_of_a_prediction_has_no_names(fitted):
    prediction = fitted.predict(X)
    with pytest.raises(ValueError, match="to_frame needs column names"):
        type(prediction)(prediction.mean, prediction.stddev).to_frame()
    assert "labels" not in repr(prediction)


class TestFrames:
    @pytest.fixture(autouse=True)
    def pandas(self):
        return pytest.importorskip("pandas")

    def test_numbers_names_and_index(self, fitted, pandas):
        frame = pandas.DataFrame(X, columns=["a", "b"], index=list("pqrstuv"))
        prediction = fitted.predict(frame, quantiles=[0.16, 0.84], return_trust=True)
        table = prediction.to_frame()
        assert list(table.columns) == ["mean", "stddev", "q0.16", "q0.84", "trust"]
        assert list(table.index) == list("pqrstuv") and list(frame.join(table).columns)[:3] == [
            "a",
            "b",
            "mean",
        ]
        np.testing.assert_array_equal(table["mean"], np.ravel(prediction.mean))
        np.testing.assert_array_equal(table["q0.84"], np.ravel(prediction.quantiles[1]))
        np.testing.assert_array_equal(table["trust"], prediction.trust)
        assert table["trust"].dtype.kind == "i"

    def test_rows_without_an_index_are_counted(self, fitted):
        for x in (X, X.tolist()):
            assert list(fitted.predict(x).to_frame().index) == list(range(7))

    @pytest.mark.parametrize("vector_target", [True, False])
    def test_the_shape_of_the_target_does_not_matter(self, synthetic_ensemble, vector_target):
        model = model_of(synthetic_ensemble, vector_target=vector_target)
        assert model.predict(X).to_frame().shape == (7, 2)

    def test_several_targets(self, synthetic_ensemble):
        names = {"target_names": ["u", "v"]}
        model = model_of(synthetic_ensemble, layer_sizes=(2, 4, 2), provenance=names)
        table = model.predict(X).to_frame()
        assert list(table.columns) == ["u_mean", "u_stddev", "v_mean", "v_stddev"]
        np.testing.assert_array_equal(table["v_mean"], model.predict(X).mean[:, 1])

    def test_classes(self, synthetic_ensemble):
        settings = {"layer_sizes": (2, 4, 3), "likelihood": Categorical(), "y_transform": None}
        model = model_of(synthetic_ensemble, classes=("x", "y", "z"), **settings)
        table = model.predict(X).to_frame()
        assert list(table.columns) == [
            "p_x",
            "p_x_stddev",
            "p_y",
            "p_y_stddev",
            "p_z",
            "p_z_stddev",
        ]
        np.testing.assert_allclose(table[["p_x", "p_y", "p_z"]].sum(axis=1), 1.0)
        transformed = model.predict(X, space="transformed").to_frame()
        assert list(transformed.columns)[:2] == ["logit_x", "logit_x_stddev"]

    def test_two_classes(self, synthetic_ensemble):
        settings = {"layer_sizes": (2, 4, 1), "likelihood": Bernoulli(), "y_transform": None}
        model = model_of(synthetic_ensemble, classes=(0, 1), **settings)
        assert list(model.predict(X).to_frame().columns) == ["p_1", "p_1_stddev"]
