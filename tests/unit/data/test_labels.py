"""Class labels: exact, of one kind, and never numbers in disguise."""

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tfbnn import BayesianMLP
from tfbnn.data.labels import as_labels, class_numbers, group_numbers, learn_classes
from tfbnn.likelihoods import Categorical

HASHES = [5, 2**63 + 1, 2**63 + 2]


@pytest.mark.parametrize("given", [np.array(HASHES, dtype=np.uint64), HASHES])
def test_labels_keep_all_of_64_bits(given):
    labels = as_labels(given, "y", num_targets=1)
    classes = learn_classes(labels, 3, "y")
    assert classes == tuple(HASHES)
    assert class_numbers(labels, classes, "y").ravel().tolist() == [0, 1, 2]
    # Rows without the large ones are of another dtype, and the same labels.
    few = as_labels([5, 5], "y", num_targets=1)
    assert class_numbers(few, classes, "y").ravel().tolist() == [0, 0]


def test_large_labels_survive_a_file(synthetic_ensemble, tmp_path):
    settings = {"layer_sizes": (2, 4, 3), "likelihood": Categorical(), "classes": tuple(HASHES)}
    model = BayesianMLP.from_ensemble(synthetic_ensemble(**settings))
    model.save(tmp_path / "model.h5")
    loaded, x = tfbnn.load(tmp_path / "model.h5"), make_rows(20, 2, 1)[0]
    assert loaded.classes == tuple(HASHES)
    assert set(loaded.predict_classes(x).ravel().tolist()) <= set(HASHES)


@pytest.mark.parametrize(
    ("labels", "error", "words"),
    [
        ([True, 0, 2], TypeError, "bool, int"),
        ([1, "a"], TypeError, "int, str"),
        (np.array([np.timedelta64(3)] * 2, dtype=object), TypeError, "timedelta64"),
        ([1, np.ma.masked], TypeError, "masked"),
        ([5, 2**64], ValueError, "64 bits"),
        ([-1, 2**63], ValueError, "64 bits"),
        ([2**53 + 1, 1.0], ValueError, "whole numbers"),
    ],
)
def test_what_is_no_label(labels, error, words):
    with pytest.raises(error, match=words):
        as_labels(labels, "y", num_targets=1)


def test_groups_are_numbered_as_they_first_occur_whatever_they_are_called():
    for labels in (["b", "a", "b", "c"], [7, 3, 7, 5], [7.0, 3.0, 7.0, 5.0]):
        assert group_numbers(labels, 4).tolist() == [0, 1, 0, 2]
    assert group_numbers(None, 4) is None
    with pytest.raises(ValueError, match="groups must have one label per row, 4, received 3"):
        group_numbers(["a", "b", "c"], 4)
    with pytest.raises(TypeError, match="groups must hold .* missing values"):
        group_numbers(["a", None, "b", "c"], 4)
    with pytest.raises(
        ValueError, match="groups must hold labels, .* received 1.5.* Number the groups"
    ):
        group_numbers([1.5, 1.5, 2.0, 2.0], 4)
