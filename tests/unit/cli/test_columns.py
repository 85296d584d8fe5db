"""What the columns of a table are to the commands: labels as they are written."""

import numpy as np
import pytest

from tfbnn.cli.columns import Labels
from tfbnn.data.tables import read_table


def labels_of(folder, *cells):
    path = folder / "labels.csv"
    path.write_text("\n".join(["label,a", *(f"{cell},1.5" for cell in cells)]))
    table = read_table(path, labels=["label"])
    return Labels.learn(table, ["label"]).read(table)[:, 0].tolist()


@pytest.mark.parametrize(
    "cells",
    [
        ["10", "1_0", "1_1"],
        ["1_1", "1_2", "1_3"],
        ["01", "02", "1"],
        ["100", "1e2", "5e1"],
        ["007", "010", "042"],
        ["１", "1", "2"],
    ],
)
def test_labels_that_only_resemble_numbers_stay_apart(tmp_path, cells):
    assert labels_of(tmp_path, *cells) == cells


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1", "-2", "3"], [1, -2, 3]),
        (["1.0", "2.0"], [1, 2]),
        (["9007199254740993", "9007199254740992"], [2**53 + 1, 2**53]),
    ],
)
def test_labels_that_are_numbers_are_exact(tmp_path, cells, numbers):
    assert labels_of(tmp_path, *cells) == numbers


def test_cells_that_only_resemble_numbers_are_no_features(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a,b\n0_0,1,1_000\n1_1,2,3\n")
    with pytest.raises(ValueError, match="line 2, column b: expected a finite number, got '1_000'"):
        read_table(path)
    assert read_table(path, columns=["a"]).columns == ("a",)
    path.write_text("id,a\n0_0,1\n1_1,2\n")
    np.testing.assert_array_equal(read_table(path).values, [[1], [2]])
