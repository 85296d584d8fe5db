"""Settings of the samplers, for `fit_posterior(kernel=...)`."""

from tfbnn.engine import kernels
from tfbnn.engine.kernels import *  # noqa: F403 - the list of samplers stands there, once

__all__ = kernels.__all__
