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


def test_workers_refuse_a_function_that_is_another_one_where_they_are(monkeypatch):
    monkeypatch.setattr(densities, "PLACE", 3.0)
    with pytest.raises(tfbnn.RunFolderError, match="worker processes import its module anew"):
        tfbnn.sample(densities.at_place, STARTS, "hmc", num_workers=2, verbose=0)
