"""Warnings point at the line of the user, and come once."""

import threading

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from tfbnn.sklearn import BayesianMLPRegressor
from tfbnn.sklearn.estimator import UnconvergedWarning
from tfbnn.system.words import warn, without_warnings


def test_it_points_at_the_first_line_outside_the_package():
    with pytest.warns(UserWarning, match="here") as caught:
        warn("here")
    assert caught[0].filename == __file__


def test_in_a_thread_it_warns_too():
    with pytest.warns(UserWarning, match="there"):
        thread = threading.Thread(target=warn, args=("there",))
        thread.start()
        thread.join()


def test_fits_of_a_search_point_at_the_search(monkeypatch):
    def fit(estimator, X, y):
        estimator.n_features_in_ = X.shape[1]
        estimator._tell_verdict(Spoilt())
        return estimator

    monkeypatch.setattr(BayesianMLPRegressor, "fit", fit)
    monkeypatch.setattr(BayesianMLPRegressor, "predict", lambda estimator, X: X[:, 0])
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.warns(UnconvergedWarning) as caught:
        cross_val_score(BayesianMLPRegressor(), x, x[:, 0], cv=2)
    assert {warning.filename for warning in caught} == {__file__}


class Spoilt:
    """A run whose draws are of no use."""

    verdict = "not yet"

    class diagnosis:
        headline = "not yet"


def test_warnings_left_out_in_one_thread_are_issued_in_another():
    inside, over = threading.Event(), threading.Event()

    def leave_out():
        with without_warnings(UserWarning):
            warn("left out")
            inside.set()
            over.wait(60)

    thread = threading.Thread(target=leave_out)
    thread.start()
    inside.wait(60)
    with pytest.warns(UserWarning) as caught:
        warn("here")
    over.set()
    thread.join()
    assert [str(warning.message) for warning in caught] == ["here"]
