"""Searches for starts, and fits that are made for the sake of their starts."""

from dataclasses import replace

import tfbnn
from tests.support.small_runs import X, Y
from tfbnn.kernels import HMC

PRETRAINING = tfbnn.Pretraining(epochs=4, batch_size=10, newton_iterations=2, num_starts=3)
EARLY = tfbnn.Pretraining(epochs=30, batch_size=10, early_stopping=3, newton_iterations=2)
JUDGED = replace(PRETRAINING, newton_iterations=4, early_stopping=3, validation_split=0.25)
SHORT = dict(num_results=6, num_burnin_steps=10, jit_compile=False)
# Searches for starts of `small_runs`: mini-batches, more starts than chains, scores that stop early,
# rows that judge, a sample of the rows, a population.
SEARCHES = {
    "mini-batches": dict(pretraining=PRETRAINING, **SHORT),
    "early stopping": dict(
        pretraining=EARLY, validation_data=(X[:9], -Y[:9]), num_chains=3, **SHORT
    ),
    "held-out rows": dict(pretraining=JUDGED, **SHORT),
    "a sample of rows": dict(pretraining=replace(PRETRAINING, search_rows=25), **SHORT),
    "a population": dict(
        pretraining=tfbnn.Pretraining(num_particles=4, newton_iterations=2), **SHORT
    ),
}


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


def search(
    table, spec, validation=None, num_chains=2, seed=0, num_starts=None, share=0.25, **settings
):
    """Starts for rows as they are, without a fit; by default draws of the prior but for their noise."""
    from tfbnn.data.transforms import fit_pipeline
    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.starts.find import find_starts
    from tfbnn.run.options import Sampling
    from tfbnn.run.progress import Notifier
    from tfbnn.spec.rows import TransformedRows

    pipelines = fit_pipeline((), table.x, "x"), fit_pipeline((), table.y, "y")
    pretraining = tfbnn.Pretraining(
        **{"epochs": 0, "newton_iterations": 0} | settings,
        validation_split=share,
        num_starts=num_starts,
    )
    return find_starts(
        spec,
        TransformedRows(*pipelines, table, validation),
        make_data(*table, spec.dtype),
        pretraining,
        Sampling(seed=seed, num_chains=num_chains, jit_compile=False),
        Notifier(),
    )
