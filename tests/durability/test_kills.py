"""Runs killed with SIGKILL: at random moments, at named points, five times in a row.

The trials are those of `killing.py`; `benchmarks/studies/faults/run.py` makes more of them.
"""

import pytest

from tests.support.durability import killing
from tests.support.durability.trials import trials

pytestmark = pytest.mark.processes


def test_killed_at_random_moments(tmp_path):
    found = trials(killing, "random", 40, tmp_path)
    assert found["faults"] == []
    # The others had ended by themselves.
    assert found["killed"] >= 20 and not found["tensorflow"]


@pytest.mark.parametrize("point", killing.POINTS)
def test_killed_at_a_named_point(tmp_path, point):
    found = trials(killing, point, 2, tmp_path)
    assert found == {"killed": 2, "faults": [], "tensorflow": False}


def test_killed_five_times_in_a_row(tmp_path):
    found = trials(killing, "five in a row", 3, tmp_path)
    assert found["faults"] == []
    assert found["killed"] >= 5


def test_the_harness_finds_fault_with_a_file_that_is_changed_in_place(tmp_path):
    assert trials(killing, "random", 20, tmp_path, "in-place")["faults"]
