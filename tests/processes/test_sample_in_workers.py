"""`tfbnn.sample` in worker processes."""

import numpy as np
import pytest

import tfbnn
from tests.support import densities

STARTS = np.random.default_rng(0).normal(size=(4, 2)).astype("float32")


@pytest.mark.filterwarnings("ignore::tfbnn.exceptions.VerdictWarning")
def test_workers_make_the_bits_of_one_process():
    arguments = dict(
        log_prob=(densities.log_prior, densities.log_likelihood),
        initial_state=STARTS,
        kernel=tfbnn.kernels.HMC(num_leapfrog_steps=4),
        num_results=100,
        num_burnin_steps=50,
        verbose=0,
    )
    here = tfbnn.sample(**arguments)
    there = tfbnn.sample(**arguments, num_workers=2)
    assert there.draws.tobytes() == here.draws.tobytes()
    for name, values in here.sample_stats.items():
        assert there.sample_stats[name].tobytes() == values.tobytes(), name
