"""Public methods of a class in order, for the pages of the Python reference."""

import importlib
import inspect

__all__ = ["methods_of"]


def methods_of(module: str, name: str) -> dict[str, str]:
    """Return the public methods and properties of a class as name -> directive, in the order of the source.

    Methods of classes of other libraries, such as `get_params` of scikit-learn, are left out.
    """
    cls = getattr(importlib.import_module(module), name)
    found = {}
    for base in cls.__mro__:
        if not base.__module__.startswith("tfbnn"):
            continue
        for key, value in vars(base).items():
            directive = _directive(value)
            if directive and not key.startswith("_") and getattr(value, "__doc__", None):
                found.setdefault(key, directive)
    return found


def _directive(value: object) -> str | None:
    if isinstance(value, property):
        return "autoproperty"
    function = getattr(value, "__func__", value)
    return "automethod" if inspect.isfunction(function) else None
