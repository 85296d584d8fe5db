"""The record of a run that nobody made."""

import numpy as np

from tfbnn.run.report import Run


def make_run(diagnosis, **changes):
    """A Run with this diagnosis, and other attributes as in `changes`."""
    record = dict(
        kernel="HMC(num_leapfrog_steps=8)",
        num_chains=2,
        num_results=20,
        num_burnin_steps=30,
        num_steps_between_results=0,
        accept_target=0.651,
        accept_reason="default for smooth activations",
        acceptance_rate=np.array([0.584, 0.9405]),
        step_size=np.array([0.1, 0.2]),
        num_divergent=np.array([0, 1]),
        num_gradients={"warmup": np.array([240, 240]), "sampling": np.array([160, 160])},
        start_log_prob=np.array([-5.0, 3.0]),
        seconds={"startup": 1.0, "warmup": 2.0, "sampling": 1.0},
        pretraining="ADAM, 300 epochs",
        geometry="diagonal, as asked",
        notes=("BIASED by a little",),
        diagnosis=diagnosis,
    )
    return Run(**(record | changes))
