"""Packages that come with an extra of this one."""

import importlib
from types import ModuleType


def required(name: str, need: str, extra: str) -> ModuleType:
    """The module `name`.

    Args:
        name: Of the module.
        need: What needs it, and what it is called, such as "Plots need Matplotlib".
        extra: The extra that has it, and what else would help, such as "tfbnn[plots]".

    Raises:
        ImportError: When it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = f"{need}, which is not installed. Install the extra {extra}."
        raise ImportError(message) from error
