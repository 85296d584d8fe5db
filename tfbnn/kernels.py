"""Settings of the samplers, for `fit_posterior(kernel=...)`."""

from tfbnn.engine.kernels import HMC, NUTS, available
from tfbnn.exceptions import refuse_planned

__all__ = ["HMC", "NUTS", "available"]

_PLANNED = (
    "RandomWalkMetropolis",
    "MALA",
    "TruncatedMALA",
    "SMMALA",
    "UnderdampedLangevin",
    "Microcanonical",
    "ChEESHMC",
    "PowerPosterior",
    "Repriorised",
)

__getattr__ = refuse_planned(__name__, _PLANNED, ["HMC", "NUTS"])
