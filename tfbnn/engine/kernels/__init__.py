"""The samplers, one file each: the files of this folder are imported, and register them."""

import importlib
import pkgutil

from tfbnn.engine.kernels.registry import (
    available,
    kernel_classes,
    kernel_from_json,
    kernel_named,
    kernel_to_json,
    resolve_kernel,
)

__all__ = [
    "available",
    "kernel_classes",
    "kernel_from_json",
    "kernel_named",
    "kernel_to_json",
    "resolve_kernel",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
