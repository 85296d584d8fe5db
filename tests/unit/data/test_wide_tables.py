"""Tables of thousands of columns: the work grows with their number, not with its square."""

import pytest

from tfbnn.cli.columns import feature_columns
from tfbnn.data.csv_tables import column_places

NUM_COLUMNS = 200


class Name(str):
    """A name that counts how often it is compared with another."""

    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.fixture
def names():
    """The function that makes the names anew: what is the same object is not compared."""
    Name.compared = 0
    return lambda: tuple(Name(f"gene_{number}") for number in range(NUM_COLUMNS))


def test_finding_columns(names):
    assert column_places(names()[::-1], names(), "t.csv") == [*range(NUM_COLUMNS)][::-1]
    assert Name.compared <= 2 * NUM_COLUMNS


def test_finding_the_features_of_a_model(names, synthetic_ensemble):
    ensemble = synthetic_ensemble((NUM_COLUMNS, 1), feature_names=names())
    assert feature_columns(ensemble, names(), "t.csv", apart=["y"]) == [*names()]
    assert Name.compared <= 4 * NUM_COLUMNS  # one for the list that is compared here
