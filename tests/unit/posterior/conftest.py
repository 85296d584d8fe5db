"""A model for tests of predictions."""

import pytest

from tests.support.predictions import LOG, rows_for
from tfbnn import BayesianMLP


@pytest.fixture(scope="session")
def single(synthetic_ensemble):
    """A float32 ensemble, for which the order of additions matters most."""
    ensemble = synthetic_ensemble((3, 8, 8, 2), y_transform=LOG, dtype="float32", num_results=40)
    return BayesianMLP.from_ensemble(ensemble), rows_for(ensemble, num_rows=60)[0]
