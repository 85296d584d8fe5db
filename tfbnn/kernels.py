"""Settings of the samplers, for `fit_posterior(kernel=...)`."""

from tfbnn.engine import kernels
from tfbnn.engine.kernels import *  # noqa: F403 - the list of samplers stands there, once
from tfbnn.exceptions import refuse_planned

__all__ = kernels.__all__

_PLANNED = ("Repriorised",)

__getattr__ = refuse_planned(__name__, _PLANNED, [name for name in __all__ if name != "available"])
