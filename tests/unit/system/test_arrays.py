"""Arrays as products and loops want them."""

import numpy as np
import pytest

from tfbnn.system.arrays import with_ones


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_line_of_ones_below_in_c_order(order):
    columns = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], order=order)
    found = with_ones(columns, "float32")
    np.testing.assert_array_equal(found, [[1, 2, 3], [4, 5, 6], [1, 1, 1]])
    assert found.dtype == np.float32 and found.flags.c_contiguous
