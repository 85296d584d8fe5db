"""Tables of thousands of columns: the work grows with their number, not with its square."""

import numpy as np
import pytest

from tfbnn.cli.columns import ModelInputs
from tfbnn.data.csv_tables import CsvRows
from tfbnn.data.learn_coding import learn_coding
from tfbnn.data.table import Table, column_indices

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
    assert column_indices(names()[::-1], names(), "t.csv") == [*range(NUM_COLUMNS)][::-1]
    assert Name.compared <= 2 * NUM_COLUMNS


def test_finding_the_features_of_a_model(names, synthetic_ensemble):
    ensemble = synthetic_ensemble((NUM_COLUMNS, 1), feature_names=names())
    inputs = ModelInputs(ensemble, "t.csv", ["y"])
    inputs.pick(names())
    assert inputs.features == [*names()]
    assert Name.compared <= 5 * NUM_COLUMNS  # one for the list that is compared here


def test_coding_one_column_of_text(names):
    values = np.ones((4, NUM_COLUMNS + 1), dtype=object)
    values[:, 0] = ["u", "v", "u", "v"]
    table = Table(("sex", *names()), values, words=frozenset(["sex"]))
    coding = learn_coding(table, "x")
    assert coding.input_names[0] == "sex=v"
    assert coding.encoded(table, "x").shape == (4, NUM_COLUMNS + 1)
    assert Name.compared <= 4 * NUM_COLUMNS


def test_a_header_longer_than_a_cell_may_be():
    """The csv module refuses cells of 128 KiB, which a header is for the wrong separator."""
    names = [f"gene_{number:06d}" for number in range(20_000)]
    for separator in (",", ";", "\t", " "):
        rows = CsvRows([separator.join(names), separator.join(["1"] * len(names))], "t.csv")
        assert rows.columns == tuple(names)
        assert rows.numbers(list(rows), names).shape == (1, len(names))
