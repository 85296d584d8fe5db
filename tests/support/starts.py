"""Fits that are made for the sake of their starts."""

from tfbnn.kernels import HMC


def fit_starts(model, x, y, **options):
    """A fit that samples next to nothing. Without XLA: what it compiles would be used once."""
    settings = dict(
        kernel=HMC(num_leapfrog_steps=1, step_size=1e-6, preconditioner="identity"),
        num_chains=3,
        num_results=1,
        num_burnin_steps=0,
        jit_compile=False,
        verbose=0,
    )
    return model.fit_posterior(x, y, **(settings | options))
