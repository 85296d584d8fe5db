"""The report of `tfbnn.sample`."""

import numpy as np

from tfbnn.engine.functional.samples import _span


def test_what_an_own_kernel_does_not_tell_is_not_known():
    assert _span(np.full(4, np.nan)) == "not known of this kernel"
    assert _span(np.array([0.7, 0.8])) == "0.7 to 0.8" and _span(np.array([0.7])) == "0.7"
