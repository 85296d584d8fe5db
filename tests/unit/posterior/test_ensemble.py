"""Who may write in the arrays of an ensemble."""

from dataclasses import replace

import numpy as np
import pytest

from tfbnn.posterior.ensemble import Readouts


def test_arrays_are_read_only_and_stay_writable_for_who_made_them(synthetic_ensemble):
    draws, values = np.zeros((2, 15, 21)), np.ones((2, 15))
    ensemble = replace(
        synthetic_ensemble(), draws=draws, sample_stats={"lp": values}, readouts=Readouts(values)
    )
    for array in (ensemble.draws, ensemble.sample_stats["lp"], ensemble.readouts.mean):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2.0
    draws[0] = values[0] = 2.0
    assert ensemble.draws[0, 0, 0] == 2.0
