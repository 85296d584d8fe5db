"""Fixtures of the estimators' tests."""

import pytest

from tests.support.estimators import FakeFits
from tfbnn.fit.model import BayesianMLP


@pytest.fixture
def fits(monkeypatch):
    """`FakeFits` in place of all sampling."""
    fake = FakeFits()

    def fit_posterior(model, *rows, **options):
        return fake.fit_posterior(model, *rows, **options)

    monkeypatch.setattr(BayesianMLP, "fit_posterior", fit_posterior)
    return fake
