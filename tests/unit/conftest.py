"""Fixtures of tests that go through public entry points without sampling."""

import pytest

import tfbnn
from tests.support.commands import write_tables_and_models
from tests.support.entries import FakeEngine


@pytest.fixture
def engine(monkeypatch):
    """A `FakeEngine` in place of pretraining and sampling."""
    fake = FakeEngine()
    monkeypatch.setattr("tfbnn.engine.starts.find.pretrain", fake.pretrain)
    monkeypatch.setattr("tfbnn.engine.running.driver.run_chains", fake.run_chains)
    return fake


@pytest.fixture
def fitted(synthetic_ensemble):
    """A fitted model of two inputs and one target, in float32."""
    return tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(dtype="float32"))


@pytest.fixture(scope="session")
def tables_and_models(tmp_path_factory):
    """The folder that `write_tables_and_models` fills, which no test may change."""
    folder = tmp_path_factory.mktemp("tables")
    write_tables_and_models(folder)
    return folder
