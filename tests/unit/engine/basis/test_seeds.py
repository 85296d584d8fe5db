"""Random keys: distinct, pinned, and those of absolute indices."""

import numpy as np

from tests.support.engine_checks import check_keys_are_distinct
from tfbnn.engine.basis import seeds


def test_many_keys_are_distinct():
    check_keys_are_distinct()


def test_keys_belong_to_absolute_indices():
    whole = seeds.keys(5, "transition", 2, 0, 20)
    np.testing.assert_array_equal(whole[13:], seeds.keys(5, "transition", 2, 13, 7))


def test_keys_are_pinned():
    """A change of scheme would silently change every seeded run."""
    assert seeds.keys(0, "transition", 0, 0, 1).tolist() == [[1890804379, -1986400012]]


def test_streams_are_apart():
    assert not np.array_equal(seeds.keys(0, "a", 0, 0, 4), seeds.keys(0, "b", 0, 0, 4))
