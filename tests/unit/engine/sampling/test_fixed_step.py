"""A step size that is given: used as it is, and counted where it is too large."""

import numpy as np

from tests.support.small_runs import RUN, X, Y, small_model
from tfbnn.kernels import HMC
from tfbnn.likelihoods import Gaussian


def test_a_huge_step_size_stays_and_is_counted_as_divergent():
    """One that adapted would fall by orders of magnitude while the chains warm up."""
    model = small_model(likelihood=Gaussian(0.01))
    settings = dict(num_burnin_steps=10, num_results=10, pretraining=None, jit_compile=False)
    kernel = HMC(step_size=5.0, num_leapfrog_steps=4)
    run = model.fit_posterior(X, Y, **RUN | settings | {"kernel": kernel})
    np.testing.assert_allclose(run.step_size, 5.0, rtol=1e-6)
    assert run.accept_target is None
    np.testing.assert_allclose(model.posterior.sample_stats["step_size"], 5.0, rtol=1e-6)
    assert run.num_divergent.sum() == 20
    assert np.isfinite(model.posterior.draws).all()
    assert "Divergences  20 (100 %)" in run.report()
