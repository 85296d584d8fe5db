"""Step sizes that are given: used as they are, and too large ones counted."""

import numpy as np

from tests.support.small_runs import RUN, X, Y, small_fit, small_model
from tfbnn.kernels import HMC
from tfbnn.likelihoods import Gaussian

# Without XLA: what it compiles would be used once.
SHORT = dict(num_results=10, pretraining=None, jit_compile=False)


def test_given_step_size_is_used_as_it_is():
    model, run = small_fit(kernel=HMC(step_size=0.0123, num_leapfrog_steps=2), **SHORT)
    np.testing.assert_allclose(run.step_size, 0.0123, rtol=1e-6)
    np.testing.assert_allclose(model.posterior.sample_stats["step_size"], 0.0123, rtol=1e-6)
    assert run.accept_target is None


def test_huge_step_size_is_counted_as_divergent():
    model = small_model(likelihood=Gaussian(0.01))
    settings = RUN | SHORT | dict(kernel=HMC(step_size=5.0, num_leapfrog_steps=4))
    run = model.fit_posterior(X, Y, **settings | {"num_burnin_steps": 0})
    assert run.num_divergent.sum() == 20
    assert np.isfinite(model.posterior.draws).all()
    assert "Divergences  20 (100 %)" in run.report()
