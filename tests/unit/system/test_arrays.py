"""Arrays as products and loops want them, and rows in files that NumPy has mapped."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from tfbnn.spec.rows import array_hash
from tfbnn.system import arrays
from tfbnn.system.arrays import by_rows, give_back, mapped_file, rows_at, with_ones

pytestmark = pytest.mark.fast


@pytest.fixture
def saved(tmp_path):
    """(Rows, the path of a file that has them)."""
    rows = np.random.default_rng(0).normal(size=(100_000, 8))
    np.save(tmp_path / "rows.npy", rows)
    return rows, tmp_path / "rows.npy"


def test_a_file_is_known_behind_views(saved):
    rows, path = saved
    mapped = np.load(path, mmap_mode="r")
    for view in (mapped, mapped[:50], np.asarray(mapped[5:])[:, None], mapped.T):
        assert isinstance(mapped_file(view), mmap.mmap)
    for other in (rows, np.load(path, mmap_mode="r+"), np.load(path, mmap_mode="c")):
        assert mapped_file(other) is None
    np.load(path, mmap_mode="c")[:] = 0.0
    give_back(rows, mapped)
    np.testing.assert_array_equal(mapped, rows)


def test_what_was_changed_in_memory_alone_stays(saved):
    _, path = saved
    own = np.load(path, mmap_mode="c")
    own[0] = 7.0
    give_back(own)
    assert (own[0] == 7.0).all()


def test_a_few_rows_at_a_time_give_what_all_at_once_give(saved, monkeypatch):
    rows, path = saved
    whole, indices = array_hash(rows), np.arange(3, len(rows), 7)
    monkeypatch.setattr(arrays, "ROWS_AT_ONCE", 30_000)
    for array in (rows, np.load(path, mmap_mode="r")):
        np.testing.assert_array_equal(by_rows(np.negative, array), -rows)
        np.testing.assert_array_equal(rows_at(array, indices), rows[indices])
        assert array_hash(array) == whole


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="says what Linux says")
def test_pages_that_were_read_are_given_back(saved):
    _, path = saved
    mapped = np.load(path, mmap_mode="r")

    def resident():
        """KB of the file in the memory of this process."""
        lines = iter(Path("/proc/self/smaps").read_text().splitlines())
        next(line for line in lines if line.endswith(str(path)))
        return int(next(line for line in lines if line.startswith("Rss:")).split()[1])

    mapped.sum()
    assert resident() > 6000
    give_back(mapped[:10])
    assert resident() == 0
    by_rows(np.negative, mapped)
    rows_at(mapped, np.arange(0, len(mapped), 3))
    array_hash(mapped)
    assert resident() == 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_line_of_ones_below_in_c_order(order):
    columns = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], order=order)
    found = with_ones(columns, "float32")
    np.testing.assert_array_equal(found, [[1, 2, 3], [4, 5, 6], [1, 1, 1]])
    assert found.dtype == np.float32 and found.flags.c_contiguous
