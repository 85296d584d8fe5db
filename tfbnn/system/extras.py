"""Packages that come with an extra of this one."""

import importlib
from types import ModuleType


def required(name: str, need: str, extra: str, otherwise: str = "") -> ModuleType:
    """The module `name`.

    Args:
        name: Of the module.
        need: What needs it, and what it is called, such as "Plots need Matplotlib".
        extra: The extra that has it, such as "plots".
        otherwise: What else would help, such as "convert the table to CSV".

    Raises:
        ImportError: When it is not installed, or cannot be imported, with the command that installs
            it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError)
        fault = "is not installed" if absent else f"cannot be imported ({error})"
        remedy = f"pip install 'tfbnn[{extra}]'" + (f", or {otherwise}" if otherwise else "")
        raise ImportError(f"{need}, which {fault}: {remedy}.") from error
