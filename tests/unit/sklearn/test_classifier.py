"""`BayesianMLPClassifier` around fits that sample nothing: labels, probabilities, refusals."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from tfbnn.likelihoods import Bernoulli, Categorical, Gaussian
from tfbnn.sklearn import BayesianMLPClassifier

pytestmark = pytest.mark.usefixtures("fits")
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(30, 2))
THREE = np.array(["up", "down", "strange"])


LABELS = [
    *(THREE, THREE.astype(object), np.array(["b", "a"]), np.array([1, 5, -3]), np.array([0, 1])),
    *(np.array([-1, 1]), np.array([2.0, 1.0]), np.array([True, False])),
]


@pytest.mark.parametrize("labels", LABELS, ids=repr)
def test_labels_of_any_kind_come_back(labels):
    y = labels[np.arange(30) % len(labels)]
    classifier = BayesianMLPClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(classifier.classes_, np.unique(labels))
    assert classifier.model_.classes == tuple(np.unique(labels).tolist())
    probabilities = classifier.predict_proba(X)
    assert probabilities.shape == (30, len(labels))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    found = classifier.predict(X)
    assert found.dtype == y.dtype
    np.testing.assert_array_equal(found, classifier.classes_[probabilities.argmax(axis=1)])
    np.testing.assert_array_equal(found, classifier.model_.predict_classes(X))
    np.testing.assert_allclose(np.exp(classifier.predict_log_proba(X)), probabilities)


def test_two_classes_have_one_logit_unless_asked_otherwise(fits):
    y = np.arange(30) % 2
    BayesianMLPClassifier(random_state=0).fit(X, y)
    classifier = BayesianMLPClassifier(likelihood=Categorical(), random_state=0).fit(X, y)
    BayesianMLPClassifier(random_state=0).fit(X, np.arange(30) % 3)
    found = [(call.asked.likelihood, call.asked.layer_sizes) for call in fits.calls]
    two, three = (Categorical(), (2, 50, 2)), (Categorical(), (2, 50, 3))
    assert found == [(Bernoulli(), (2, 50, 1)), two, three]
    assert classifier.predict_proba(X).shape == (30, 2)


def test_names_of_a_frame_are_kept_and_weights_count_rows(fits):
    frame, counts = pd.DataFrame(X, columns=["a", "b"]), np.arange(30) % 3
    classifier = BayesianMLPClassifier().fit(frame, pd.Series(THREE[counts]), sample_weight=counts)
    assert classifier.model_.posterior.feature_names == ("a", "b")
    assert classifier.predict(frame).shape == (30,)
    np.testing.assert_array_equal(fits.calls[0].rows.x, np.repeat(X, counts, axis=0))


@pytest.mark.parametrize(
    "y, settings, error, match",
    [
        (["a"] * 30, {}, ValueError, "two classes at least, received one class: .*'a'"),
        (np.linspace(0.0, 1.0, 30), {}, ValueError, "Unknown label type"),
        (np.arange(30) % 3, {"likelihood": Bernoulli()}, ValueError, "labels of 3"),
        (np.arange(30) % 3, {"likelihood": Gaussian()}, TypeError, "BayesianMLPRegressor"),
        (np.arange(60).reshape(30, 2) % 2, {}, ValueError, "1d array"),
    ],
)
def test_what_has_no_classes_is_refused(fits, y, settings, error, match):
    with pytest.raises(error, match=match):
        BayesianMLPClassifier(**settings).fit(X, y)
    assert not fits.calls


def test_folds_are_cut_by_class(fits):
    y = np.repeat([0, 1, 2], 10)
    scores = cross_val_score(BayesianMLPClassifier(), X, y, cv=5, error_score="raise")
    assert len(scores) == 5
    labels = [call.rows.y[:, 0].astype(int) for call in fits.calls]
    assert all(np.bincount(one).tolist() == [8] * 3 for one in labels)
