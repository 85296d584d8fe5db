"""Intervals of shares that were counted."""

import numpy as np

from tfbnn.system.arrays import Array


def wilson_interval(share: Array, num_rows: Array | int) -> tuple[Array, Array]:
    """Ends of the 68 % interval of the true share of which `num_rows` rows show this one.

    They are the shares that are one of their own standard deviations off (Wilson 1927, J. Am. Stat.
    Assoc. 22, 209). So they stay within 0 and 1, and no bar of few rows reaches down to nothing.
    """
    middle = (share + 0.5 / num_rows) / (1.0 + 1.0 / num_rows)
    spread = np.sqrt(share * (1.0 - share) / num_rows + 0.25 / num_rows**2) / (1.0 + 1.0 / num_rows)
    return middle - spread, middle + spread
