"""Settings of the samplers, for `fit_posterior(kernel=...)`."""

from tfbnn.engine.kernels import HMC, NUTS, available

__all__ = ["HMC", "NUTS", "available"]
