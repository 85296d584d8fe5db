"""Runs killed with SIGKILL: at random moments, at named points, five times in a row.

The trials are those of `killing.py`; `benchmarks/studies/faults/run.py` makes more of them.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.support.durability import killing

pytestmark = pytest.mark.processes


def trials(what, count, folder, store="segments", seed=1):
    """What came of some trials, made in a process without TensorFlow."""
    done = subprocess.run(
        [sys.executable, "-m", killing.__name__, what, str(count), str(seed), str(folder), store],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # it forks
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["tensorflow"]
    return found


def test_killed_at_random_moments(tmp_path):
    found = trials("random", 60, tmp_path)
    assert found["faults"] == []
    # The others had ended by themselves.
    assert found["killed"] >= 30


@pytest.mark.parametrize("point", killing.POINTS)
def test_killed_at_a_named_point(tmp_path, point):
    assert trials(point, 2, tmp_path) == {"killed": 2, "faults": [], "tensorflow": False}


def test_killed_five_times_in_a_row(tmp_path):
    found = trials("five in a row", 3, tmp_path)
    assert found["faults"] == []
    assert found["killed"] >= 5


def test_the_harness_finds_fault_with_a_file_that_is_changed_in_place(tmp_path):
    assert trials("random", 30, tmp_path, store="in-place")["faults"]
