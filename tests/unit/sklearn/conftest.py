"""Fixtures of the estimators' tests."""

from functools import wraps

import pytest

from tests.support.estimators import FakeFits
from tfbnn.fit.model import BayesianMLP


@pytest.fixture
def fits(monkeypatch):
    """`FakeFits` in place of all sampling."""
    fake = FakeFits()

    @wraps(BayesianMLP.fit_posterior)  # estimators pass the settings that it has arguments for
    def fit_posterior(model, *rows, **options):
        return fake.fit_posterior(model, *rows, **options)

    monkeypatch.setattr(BayesianMLP, "fit_posterior", fit_posterior)
    return fake
