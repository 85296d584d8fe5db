"""Convergence diagnostics with NumPy: statistics of chains, and the diagnosis of one run."""

from tfbnn.diagnostics.diagnosis import Diagnosis, diagnose
from tfbnn.diagnostics.statistics import (
    autocorrelation,
    between_chain_variance_share,
    bulk_ess,
    ebfmi,
    geyer_ess,
    mcse_mean,
    recommended_thinning,
    rhat,
    split_rhat,
    tail_ess,
)

__all__ = [
    "Diagnosis",
    "autocorrelation",
    "between_chain_variance_share",
    "bulk_ess",
    "diagnose",
    "ebfmi",
    "geyer_ess",
    "mcse_mean",
    "recommended_thinning",
    "rhat",
    "split_rhat",
    "tail_ess",
]
