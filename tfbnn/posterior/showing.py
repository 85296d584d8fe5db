"""What models and their draws say of themselves in a line."""

from __future__ import annotations

import numpy as np

from tfbnn.diagnostics.wording import counted
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.network_spec import NetworkSpec


def line_of(name: str, spec: NetworkSpec, ensemble: Ensemble | None) -> str:
    """Such as "<BayesianMLP 5-20-20-1, tanh, Gaussian: 4 x 1000 draws, calibrated>".

    Args:
        name: Of the class.
        spec: The model.
        ensemble: Its draws, or None before a fit.
    """
    state = "not fitted" if ensemble is None else draws_text(ensemble)
    return f"<{name} {spec.architecture_text}, {type(spec.likelihood).__name__}: {state}>"


def draws_text(ensemble: Ensemble) -> str:
    """What the draws are: "4 x 1000 draws", and what else has to be known of them."""
    origin, power = ensemble.provenance, ensemble.spec.likelihood_power
    what = f"{ensemble.num_chains} x {counted(ensemble.num_results, 'draw')}"
    if origin.not_sampled is not None:
        what = f"not sampled, {origin.not_sampled}"
    elif ensemble.is_compressed:
        what = f"{counted(ensemble.num_draws, 'draw')} chosen by compress"
    remarks = {
        f"likelihood to the power {power:g}": power < 1.0,
        "chains weighted": np.ptp(ensemble.chain_weights) > 0,
        "calibrated": ensemble.calibration is not None,
    }
    return ", ".join([what, *(remark for remark, holds in remarks.items() if holds)])
