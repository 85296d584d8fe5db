"""Settings of the samplers, for `fit_posterior(kernel=...)`."""

from tfbnn.engine.kernels.registry import available, kernel_classes
from tfbnn.spec.habits import absent

__all__ = ["available", *kernel_classes()]


def __getattr__(name: str) -> object:
    if name in kernel_classes():
        return kernel_classes()[name]
    raise absent("tfbnn.kernels", name, __all__)


def __dir__() -> list[str]:
    return sorted(["available", *kernel_classes()])
