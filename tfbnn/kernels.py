"""Settings of the samplers, for `fit_posterior(kernel=...)`."""

from tfbnn.engine.kernels import (
    HMC,
    MALA,
    NUTS,
    RandomWalkMetropolis,
    TruncatedMALA,
    UnderdampedLangevin,
    available,
)
from tfbnn.exceptions import refuse_planned

__all__ = [
    "HMC",
    "MALA",
    "NUTS",
    "RandomWalkMetropolis",
    "TruncatedMALA",
    "UnderdampedLangevin",
    "available",
]

_PLANNED = ("SMMALA", "Microcanonical", "ChEESHMC", "PowerPosterior", "Repriorised")

__getattr__ = refuse_planned(__name__, _PLANNED, [name for name in __all__ if name != "available"])
